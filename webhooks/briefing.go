package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// briefing is what a delivery must know at the moment of sending: the event, and everything about the endpoint that may have
// changed since it was remembered. One round trip reads it.
type briefing struct {
	// Version is the endpoint's, to send by no older settings and secrets.
	Version int64
	// Gone says in a sentence why the endpoint takes nothing any more; empty while it does.
	Gone string
	// Paused is by a person.
	Paused bool
	// Profile is the endpoint's, else the project's.
	Profile string
	health
	// Backlog tells that more of the endpoint's deliveries wait in the table.
	Backlog bool

	EventFound bool
	Type       string
	Data       []byte
	At         time.Time
	ExpiresAt  *time.Time
}

func readBriefing(ctx context.Context, db store.DB, args DeliverArgs) (briefing, error) {
	var b briefing
	var deleted, disabled bool
	var since, pause, at *time.Time
	err := db.QueryRow(ctx, `
		select e.version, e.deleted_at is not null, e.disabled_at is not null, e.paused_at is not null, coalesce(e.profile, p.profile),
		       l.failing_since, l.failures_in_a_row, l.pause_until,
		       exists (select from river_job j where j.endpoint_id = e.id and j.state = 'pending'),
		       v.id is not null, coalesce(v.type, ''), v.data, coalesce(v.occurred_at, v.created_at), v.expires_at
		from endpoints e
		join projects p on p.id = e.project_id
		join endpoint_lanes l on l.endpoint_id = e.id
		left join events v on v.project_id = e.project_id and v.id = @event
		where e.project_id = @project and e.id = @endpoint`,
		pgx.StrictNamedArgs{"project": args.ProjectID, "endpoint": args.EndpointID, "event": args.EventID},
	).Scan(&b.Version, &deleted, &disabled, &b.Paused, &b.Profile, &since, &b.failures, &pause, &b.Backlog,
		&b.EventFound, &b.Type, &b.Data, &at, &b.ExpiresAt)
	switch {
	case store.MapError(err) == store.ErrNotFound:
		return briefing{Gone: "The endpoint does not exist any more."}, nil
	case err != nil:
		return briefing{}, fmt.Errorf("read what to deliver: %w", err)
	case deleted:
		b.Gone = "The endpoint was deleted before the delivery's turn came."
	case disabled:
		b.Gone = "The endpoint was disabled before the delivery's turn came."
	}
	b.failingSince, b.pauseUntil, b.At = orZero(since), orZero(pause), orZero(at)
	return b, nil
}
