package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
)

// Redelivered is the answer to an event's redelivery.
type Redelivered struct {
	// TaskIDs are the deliveries that are on their way now, one for each endpoint.
	TaskIDs []int64 `json:"taskIds"`
	// Skipped names the endpoints that got none, with the reason.
	Skipped []events.SkippedEndpoint `json:"skipped"`
	// Duplicate says that the idempotency key was used before; nothing further is on its way.
	Duplicate bool `json:"-"`
}

// RedeliverEvent delivers an event once more: to the named endpoints, or to all that take it now. A delivery that ended
// without success is tried again; where one succeeded, or there was none, a new one is made. Naming an endpoint that is
// disabled is a *store.ConflictError endpoint_disabled; without names those are skipped.
func (s *Endpoints) RedeliverEvent(ctx context.Context, actor tenant.Actor, eventID string, endpointIDs ...string) (Redelivered, error) {
	return s.RedeliverEventOnce(ctx, actor, eventID, "", endpointIDs...)
}

// RedeliverEventOnce is RedeliverEvent with an idempotency key: a second one with it answers the first. An empty key is none.
func (s *Endpoints) RedeliverEventOnce(ctx context.Context, actor tenant.Actor, eventID, key string, endpointIDs ...string) (Redelivered, error) {
	if err := actor.RequireIn(actor.ProjectID, tenant.PermRedeliver); err != nil {
		return Redelivered{}, err
	}
	var out Redelivered
	err := store.InTx(ctx, s.pool, func(tx pgx.Tx) (err error) {
		o := once{key: key, action: "event.redeliver", eventID: eventID, request: endpointIDs}
		out, out.Duplicate, err = onceTx(ctx, tx, actor.ProjectID, o, func() (Redelivered, error) {
			return s.redeliverEventTx(ctx, tx, actor, eventID, endpointIDs)
		})
		return err
	})
	if err != nil {
		return Redelivered{}, fmt.Errorf("redeliver an event: %w", err)
	}
	return out, nil
}

func (s *Endpoints) redeliverEventTx(ctx context.Context, tx pgx.Tx, actor tenant.Actor, eventID string, endpointIDs []string) (Redelivered, error) {
	project := actor.ProjectID
	var out Redelivered
	ev, err := lockEventTx(ctx, tx, project, eventID)
	if err != nil {
		return out, err
	}
	endpoints, err := s.redeliverTargets(ctx, tx, project, ev, endpointIDs)
	if err != nil {
		return out, err
	}
	latest, err := latestDeliveries(ctx, tx, project, eventID)
	if err != nil {
		return out, err
	}
	for i := range endpoints {
		if err := s.redeliverToTx(ctx, tx, project, ev, &endpoints[i], latest, &out); err != nil {
			return out, err
		}
	}
	return out, tenant.Audit(ctx, tx, actor, "event.redeliver", "event", eventID,
		map[string]any{"endpointIds": endpointIDs, "deliveries": len(out.TaskIDs), "skipped": len(out.Skipped)})
}

// lockEventTx reads an event and keeps two redeliveries of it apart.
func lockEventTx(ctx context.Context, tx pgx.Tx, project, id string) (fanoutEvent, error) {
	rows, err := tx.Query(ctx, `select seq, id, type, coalesce(subscriber, '') as subscriber, null::timestamptz as expires_at
		from events where project_id = $1 and id = $2 for update`, project, id)
	if err != nil {
		return fanoutEvent{}, fmt.Errorf("read the event: %w", err)
	}
	ev, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[fanoutEvent])
	if err != nil {
		return fanoutEvent{}, fmt.Errorf("read the event: %w", store.MapError(err))
	}
	return ev, nil
}

// redeliverTargets are the named endpoints, or all that take the event and those that would if they were not disabled.
func (s *Endpoints) redeliverTargets(ctx context.Context, tx pgx.Tx, project string, ev fanoutEvent, ids []string) ([]fanoutEndpoint, error) {
	endpoints, err := lockedEndpointsTx(ctx, tx, project, ids...)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return slices.DeleteFunc(endpoints, func(e fanoutEndpoint) bool {
			reason := e.skip(ev, s.now())
			return reason != "" && reason != SkipDisabled
		}), nil
	}
	for _, id := range ids {
		i := slices.IndexFunc(endpoints, func(e fanoutEndpoint) bool { return e.ID == id })
		switch {
		case i < 0:
			return nil, store.ErrNotFound
		case endpoints[i].Disabled:
			return nil, errDisabled()
		}
	}
	return endpoints, nil
}

// latestDelivery is the newest task of an event for one endpoint.
type latestDelivery struct {
	EndpointID string `db:"endpoint_id"`
	ID         int64  `db:"id"`
	State      string `db:"state"`
}

func latestDeliveries(ctx context.Context, db store.DB, project, eventID string) (map[string]latestDelivery, error) {
	rows, err := db.Query(ctx, `
		select distinct on (endpoint_id) endpoint_id, id, state::text as state from (
			select endpoint_id, id, state from river_job
			where project_id = $1 and event_id = $2 and kind = $3 and endpoint_id is not null and state <> 'running'
			union all
			select endpoint_id, id, state from river_job
			where project_id = $1 and event_id = $2 and kind = $3 and endpoint_id is not null and state = 'running'
		) as d order by endpoint_id, id desc`, project, eventID, Deliver.Name)
	if err != nil {
		return nil, fmt.Errorf("find the event's deliveries: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[latestDelivery])
	if err != nil {
		return nil, fmt.Errorf("find the event's deliveries: %w", err)
	}
	latest := make(map[string]latestDelivery, len(found))
	for _, l := range found {
		latest[l.EndpointID] = l
	}
	return latest, nil
}

func (s *Endpoints) redeliverToTx(ctx context.Context, tx pgx.Tx, project string, ev fanoutEvent, e *fanoutEndpoint, latest map[string]latestDelivery, out *Redelivered) error {
	if e.Disabled {
		out.Skipped = append(out.Skipped, events.SkippedEndpoint{ID: e.ID, Reason: string(SkipDisabled)})
		return nil
	}
	last, found := latest[e.ID]
	switch {
	case found && (last.State == "discarded" || last.State == "cancelled"):
		if _, err := s.client.RetryTx(ctx, tx, project, last.ID, jobs.TriggerRedeliver); err != nil {
			return err
		}
		out.TaskIDs = append(out.TaskIDs, last.ID)
	case found && last.State != "completed":
		out.Skipped = append(out.Skipped, events.SkippedEndpoint{ID: e.ID, Reason: jobs.CodeAlreadyQueued})
		return nil
	default:
		item := e.delivery(project, ev, jobs.TriggerRedeliver, s.now())
		item.ScheduledAt = time.Time{} // A person asks for this one now, also of a failing endpoint.
		id, err := jobs.InsertTx(ctx, s.client, tx, Deliver, item.Args, item.Insert)
		if err != nil {
			return err
		}
		out.TaskIDs = append(out.TaskIDs, id)
	}
	_, err := tx.Exec(ctx, `
		update missed_events set redelivered_at = now()
		where project_id = $1 and endpoint_id = $2 and event_seq = $3 and redelivered_at is null`, project, e.ID, ev.Seq)
	if err != nil {
		return fmt.Errorf("note that a missed event is on its way: %w", err)
	}
	return nil
}
