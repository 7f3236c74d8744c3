package mailer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// transportRow is what is stored of a project's transport.
type transportRow struct {
	own     bool
	sealed  []byte
	version int64
}

func (m *Mailer) transportRow(ctx context.Context, db store.DB, project string) (transportRow, error) {
	if project == "" {
		return transportRow{}, nil
	}
	t := transportRow{own: true}
	err := db.QueryRow(ctx, `select sealed, version from mail_transports where project_id = $1`, project).Scan(&t.sealed, &t.version)
	if errors.Is(err, pgx.ErrNoRows) {
		return transportRow{}, nil
	}
	if err != nil {
		return t, fmt.Errorf("read the transport of a project: %w", err)
	}
	return t, nil
}

func (m *Mailer) openSettings(project string, sealed []byte) (Settings, error) {
	raw, err := m.box.Open(sealed, "mail_transports", project)
	if err != nil {
		return Settings{}, fmt.Errorf("open the transport of a project: %w", err)
	}
	var s Settings
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("read the transport of a project: %w", err)
	}
	return s, nil
}

// SetTransport gives a project a transport of its own. Secrets that are left empty keep their present value, so that a form need
// not show them.
func (m *Mailer) SetTransport(ctx context.Context, actor tenant.Actor, project string, s Settings) (Settings, error) {
	if err := actor.RequireIn(project, tenant.PermManageTeam); err != nil {
		return s, err
	}
	before, own, err := m.SettingsOf(ctx, m.pool, project)
	if err != nil {
		return s, err
	}
	if own {
		s.keepSecrets(before)
	}
	if s, err = s.Check(); err != nil {
		return s, err
	}
	if err := m.checkReach(s); err != nil {
		return s, err
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return s, fmt.Errorf("encode the transport: %w", err)
	}
	return s, store.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			insert into mail_transports (project_id, kind, sealed) values ($1, $2, $3)
			on conflict (project_id) do update set kind = excluded.kind, sealed = excluded.sealed, version = mail_transports.version + 1, updated_at = now()`,
			project, string(s.Kind), m.box.Seal(raw, "mail_transports", project))
		if err != nil {
			return fmt.Errorf("store the transport: %w", err)
		}
		if _, err := tx.Exec(ctx, `delete from mail_pauses where project_id = $1`, project); err != nil {
			return fmt.Errorf("end the pause of the transport before: %w", err)
		}
		return tenant.Audit(ctx, tx, actor.In(project), "mail.set_transport", "project", project, map[string]any{"kind": s.Kind, "about": s.About(), "from": s.From})
	})
}

// keepSecrets fills in what a form leaves empty, as long as it is about the same account.
func (s *Settings) keepSecrets(before Settings) {
	if s.SMTP.Password == "" && s.SMTP.Host == before.SMTP.Host && s.SMTP.Username == before.SMTP.Username {
		s.SMTP.Password = before.SMTP.Password
	}
	if s.API.Key == "" && s.API.Shape == before.API.Shape && s.API.URL == before.API.URL {
		s.API.Key = before.API.Key
	}
	if s.DKIM.Key == "" && s.DKIM.Domain != "" && s.DKIM.Domain == before.DKIM.Domain {
		s.DKIM.Key = before.DKIM.Key
	}
	if s.FeedbackSecret == "" && s.Kind == before.Kind && s.API.Shape == before.API.Shape {
		s.FeedbackSecret = before.FeedbackSecret
	}
}

// checkReach asks the guard whether the transport may be called at all, so that the form says so and not the first mail.
func (m *Mailer) checkReach(s Settings) error {
	switch s.Kind {
	case SMTP:
		if err := m.door.CheckRelay(s.SMTP.Host, s.SMTP.Port); err != nil {
			return store.Invalid("host", err.Error())
		}
	case API:
		if _, err := m.door.CheckURL(s.API.url()); err != nil {
			return store.Invalid("url", err.Error())
		}
	}
	return nil
}

// ClearTransport makes a project use the installation's transport again.
func (m *Mailer) ClearTransport(ctx context.Context, actor tenant.Actor, project string) error {
	if err := actor.RequireIn(project, tenant.PermManageTeam); err != nil {
		return err
	}
	return store.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from mail_transports where project_id = $1`, project)
		if err != nil {
			return fmt.Errorf("remove the transport: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return nil
		}
		if _, err := tx.Exec(ctx, `delete from mail_pauses where project_id = $1`, project); err != nil {
			return fmt.Errorf("end the pause of the transport: %w", err)
		}
		return tenant.Audit(ctx, tx, actor.In(project), "mail.clear_transport", "project", project, nil)
	})
}
