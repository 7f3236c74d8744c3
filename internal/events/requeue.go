package events

import (
	"context"
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
		before, err := lockEventTx(ctx, tx, project, id)
		if err != nil {
			return err
		}
		if before.PoisonedAt.IsZero() {
			return &store.ConflictError{Code: CodeNotPoisoned, Sentence: "This event was not given up, so there is nothing to requeue."}
		}
		rows, err := tx.Query(ctx, `
			update events set poisoned_at = null, relay_failures = 0, relay_error = null, relay_after = null
			where project_id = $1 and id = $2
			returning `+slimColumns+`, skipped, null::bytea`, project, id)
		if err != nil {
			return err
		}
		if event, err = pgx.CollectExactlyOneRow(rows, scanEvent); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_notify($1, '')`, channel); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, actor.In(project), "event.requeue", "event", id,
			map[string]any{"failures": before.RelayFailures, "error": before.RelayError})
	})
	if err != nil {
		return Event{}, fmt.Errorf("requeue event: %w", err)
	}
	return event, nil
}

func lockEventTx(ctx context.Context, tx pgx.Tx, project, id string) (Event, error) {
	rows, err := tx.Query(ctx, `
		select `+slimColumns+`, skipped, null::bytea
		from events where project_id = $1 and id = $2 for update`, project, id)
	if err != nil {
		return Event{}, err
	}
	e, err := pgx.CollectExactlyOneRow(rows, scanEvent)
	return e, store.MapError(err)
}
