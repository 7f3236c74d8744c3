package alerts

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// CodeResolved is the code of the conflict when an alert that is resolved is to be acknowledged.
const CodeResolved = "alert_resolved"

// Acknowledge says that the actor has taken an alert on. It is one transaction with its audit row. One that is acknowledged
// already keeps the name that it has; one that is resolved answers a *store.ConflictError. The actor needs PermAcknowledge in
// the project; an alert of the installation is there for its admins only.
func Acknowledge(ctx context.Context, pool *pgxpool.Pool, actor tenant.Actor, project, id string) (Alert, error) {
	return act(ctx, pool, actor, project, id, "alert.acknowledge", func(tx pgx.Tx, a Alert) (bool, error) {
		switch a.State {
		case StateAcknowledged:
			return false, nil
		case StateResolved:
			return false, &store.ConflictError{Code: CodeResolved, Sentence: "This alert is resolved; there is nothing left to acknowledge."}
		}
		_, err := tx.Exec(ctx, `update alerts set state = 'acknowledged', acknowledged_at = now(), acknowledged_by = $2 where id = $1`, id, nameOf(actor))
		return true, err
	})
}

// Resolve says that the actor has done with an alert, as Acknowledge otherwise. It comes back, as a new one, only for what
// happens from now on, or when its cause has gone and come back. One that is resolved already stays as it is.
func Resolve(ctx context.Context, pool *pgxpool.Pool, actor tenant.Actor, project, id string) (Alert, error) {
	return act(ctx, pool, actor, project, id, "alert.resolve", func(tx pgx.Tx, a Alert) (bool, error) {
		if a.State == StateResolved {
			return false, nil
		}
		_, err := tx.Exec(ctx, `update alerts set state = 'resolved', resolved_at = now(), resolved_by = $2 where id = $1`, id, nameOf(actor))
		return true, err
	})
}

// nameOf is how an alert names whoever acted on it. It is never empty, which would mean that nobody did.
func nameOf(a tenant.Actor) string { return cmp.Or(a.Name, a.ID, string(a.Kind)) }

func act(ctx context.Context, pool *pgxpool.Pool, actor tenant.Actor, project, id, action string, change func(tx pgx.Tx, a Alert) (bool, error)) (Alert, error) {
	if err := actor.RequireIn(project, tenant.PermAcknowledge); err != nil {
		return Alert{}, err
	}
	var after Alert
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		view := ViewOf(actor, project)
		before, err := alertByID(ctx, tx, view, id, "for update")
		if err != nil {
			return err
		}
		changed, err := change(tx, before)
		if err != nil {
			return err
		}
		if changed {
			detail := map[string]any{"kind": before.Kind, "subject": before.Subject, "was": before.State, "count": before.Count}
			if err := tenant.Audit(ctx, tx, actor.In(before.ProjectID), action, "alert", id, detail); err != nil {
				return err
			}
		}
		after, err = AlertByID(ctx, tx, view, id)
		return err
	})
	if err != nil {
		return Alert{}, fmt.Errorf("%s: %w", action, err)
	}
	return after, nil
}
