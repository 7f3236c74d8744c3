package mailer

import (
	"context"
	"fmt"
	"time"

	"entrega/internal/store"
)

// keepCaptured stores a mail instead of sending it. It may hold a one-time link, so it is sealed.
func (s *Sender) keepCaptured(ctx context.Context, m Message, raw []byte) error {
	_, err := s.pool.Exec(ctx, `
		insert into captured_mails (notification_id, project_id, ref, sealed, captured_at)
		select n.id, n.project_id, n.recipient_ref, $2, $3 from notifications n where n.id = $1
		on conflict (notification_id) do update set sealed = excluded.sealed, captured_at = excluded.captured_at`,
		m.ID, s.box.Seal(raw, "captured_mails", m.ID), s.now())
	if err != nil {
		return fmt.Errorf("keep a captured mail: %w", err)
	}
	return nil
}

// CapturedRaw is the whole message as it was captured. It is for those who may see payloads.
func (m *Mailer) CapturedRaw(ctx context.Context, db store.DB, project, id string) (raw []byte, at time.Time, err error) {
	var sealed []byte
	err = db.QueryRow(ctx, `select sealed, captured_at from captured_mails where project_id = $1 and notification_id = $2`, project, id).Scan(&sealed, &at)
	if err != nil {
		return nil, at, fmt.Errorf("read a captured mail: %w", store.MapError(err))
	}
	raw, err = m.box.Open(sealed, "captured_mails", id)
	if err != nil {
		return nil, at, fmt.Errorf("open a captured mail: %w", err)
	}
	return raw, at, nil
}
