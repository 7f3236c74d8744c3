package events

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// CodeNotPoisoned is the code of the conflict when an event that was not given up is to be requeued.
const CodeNotPoisoned = "not_poisoned"

// Requeue gives a poisoned event back to the relay, with all its turns ahead of it, wakes the relays and notes who did it.
// The actor needs PermRedeliver in the project.
func Requeue(ctx context.Context, pool *pgxpool.Pool, actor tenant.Actor, project, id string) (Event, error) {
	if err := actor.RequireIn(project, tenant.PermRedeliver); err != nil {
		return Event{}, err
	}
	var event Event
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		found, err := readEvent(ctx, tx, project, id, "null::bytea")
		if err != nil {
			return err
		}
		var failures int
		var cause string
		err = tx.QueryRow(ctx, `
			with before as materialized (
				select seq, relay_failures, coalesce(relay_error, '') as relay_error from event_outbox
				where seq = $1 and poisoned_at is not null for update
			)
			update event_outbox w set poisoned_at = null, relay_failures = 0, relay_error = null, relay_after = null
			from before where w.seq = before.seq
			returning before.relay_failures, before.relay_error`, found.Seq).Scan(&failures, &cause)
		if errors.Is(store.MapError(err), store.ErrNotFound) {
			return &store.ConflictError{Code: CodeNotPoisoned, Sentence: "This event was not given up, so there is nothing to requeue."}
		}
		if err != nil {
			return err
		}
		if event, err = readEvent(ctx, tx, project, id, "null::bytea"); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_notify($1, '')`, channel); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, actor.In(project), "event.requeue", "event", id, map[string]any{"failures": failures, "error": cause})
	})
	if err != nil {
		return Event{}, fmt.Errorf("requeue event: %w", err)
	}
	return event, nil
}
