package mailer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
)

const (
	// pauseFor is how long a transport rests that refused our credentials. Then one mail at a time tries it again.
	pauseFor = 5 * time.Minute
	// probeFor is how long such a try may take before another may begin.
	probeFor = handlerTimeout
	// probeWait is how long the other mails stay away meanwhile.
	probeWait = 5 * time.Second
	// bookkeeping bounds what is written after an answer, which goes on when the attempt's time is over.
	bookkeeping = 10 * time.Second
)

// Pause is a transport that rests.
type Pause struct {
	// ProjectID is the transport's owner; empty for the installation's.
	ProjectID string    `db:"project_id"`
	About     string    `db:"about"`
	Reason    string    `db:"reason"`
	Refusals  int64     `db:"refusals"`
	Since     time.Time `db:"paused_since"`
	RefusedAt time.Time `db:"refused_at"`
	Until     time.Time `db:"paused_until"`
}

// PauseOf is the pause that holds for a project's mail, if there is one.
func (m *Mailer) PauseOf(ctx context.Context, db store.DB, project string) (*Pause, error) {
	settings, own, err := m.SettingsOf(ctx, db, project)
	if err != nil {
		return nil, err
	}
	settings.From = m.fromOf(settings)
	owner := ""
	if own {
		owner = project
	}
	rows, err := db.Query(ctx, `
		select project_id, about, reason, refusals, paused_since, refused_at, paused_until from mail_pauses where project_id = $1 and fingerprint = $2`,
		owner, settings.fingerprint())
	if err != nil {
		return nil, fmt.Errorf("read the pause of a transport: %w", err)
	}
	p, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Pause])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the pause of a transport: %w", err)
	}
	return &p, nil
}

// ForgetOldPause ends a pause of the installation's transport that was about other settings than the present ones. It is for the
// start of a node, whose settings may have been mended.
func (m *Mailer) ForgetOldPause(ctx context.Context) error {
	_, err := m.pool.Exec(ctx, `delete from mail_pauses where project_id = '' and fingerprint <> $1`, m.installation.fingerprint())
	if err != nil {
		return fmt.Errorf("forget an old pause of the mail transport: %w", err)
	}
	return nil
}

// passGate lets a mail through to a transport that works, keeps it from one that rests, and lets one through that finds out whether
// the rest is over.
func (s *Sender) passGate(ctx context.Context, job *jobs.Job[SendArgs], t *transport) error {
	now := s.now()
	var fingerprint []byte
	var until time.Time
	err := s.pool.QueryRow(ctx, `select fingerprint, paused_until from mail_pauses where project_id = $1`, t.owner).Scan(&fingerprint, &until)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return s.notReady(ctx, job, fmt.Errorf("read the pause of a transport: %w", err))
	case !bytes.Equal(fingerprint, t.fingerprint):
		return nil
	case now.Before(until):
		return jobs.Snooze(until.Sub(now), ReasonTransportPaused)
	}
	tag, err := s.pool.Exec(ctx, `
		update mail_pauses set probe_until = $3
		where project_id = $1 and fingerprint = $2 and paused_until <= $4 and (probe_until is null or probe_until <= $4)`,
		t.owner, t.fingerprint, now.Add(probeFor), now)
	if err != nil {
		return s.notReady(ctx, job, fmt.Errorf("claim the try of a transport: %w", err))
	}
	if tag.RowsAffected() == 0 {
		return jobs.Snooze(probeWait, ReasonTransportPaused)
	}
	return nil
}

// noteTransport begins, prolongs or ends the pause that a result stands for.
func (s *Sender) noteTransport(ctx context.Context, t *transport, r Result) error {
	now := s.now()
	var err error
	switch {
	case r.Verdict == Refused:
		_, err = s.pool.Exec(ctx, `
			insert into mail_pauses as p (project_id, fingerprint, about, reason, paused_since, refused_at, paused_until)
			values (@owner, @fingerprint, @about, @reason, @now, @now, @until)
			on conflict (project_id) do update set
				paused_since = case when p.fingerprint = excluded.fingerprint then p.paused_since else excluded.paused_since end,
				refusals = case when p.fingerprint = excluded.fingerprint then p.refusals + 1 else 1 end,
				fingerprint = excluded.fingerprint, about = excluded.about, reason = excluded.reason, refused_at = excluded.refused_at,
				paused_until = excluded.paused_until, probe_until = null`,
			pgx.StrictNamedArgs{"owner": t.owner, "fingerprint": t.fingerprint, "about": t.settings.About(), "reason": r.Sentence, "now": now, "until": now.Add(pauseFor)})
	case r.Reached:
		_, err = s.pool.Exec(ctx, `delete from mail_pauses where project_id = $1 and (fingerprint <> $2 or probe_until is not null)`, t.owner, t.fingerprint)
	default:
		// The try came to nothing, and so says nothing: the next one is as far away as after a refusal.
		_, err = s.pool.Exec(ctx, `
			update mail_pauses set probe_until = null, paused_until = $3 where project_id = $1 and fingerprint = $2 and probe_until is not null`,
			t.owner, t.fingerprint, now.Add(pauseFor))
	}
	if err != nil {
		return fmt.Errorf("note the state of a transport: %w", err)
	}
	return nil
}
