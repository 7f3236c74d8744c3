package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
)

const (
	// redeliverChunk is how many deliveries one transaction brings.
	redeliverChunk = 200
	// redeliverSlice is how long one run goes on before it gives its worker back.
	redeliverSlice   = 20 * time.Second
	redeliverTimeout = time.Minute

	reasonMoreToDo = "more_to_do"
)

// redeliver works a bulk action chunk by chunk. Each transaction moves the cursor with what it did, so that a run which is
// cut short goes on where it stopped.
func (d *Deliverer) redeliver(ctx context.Context, job *jobs.Job[jobs.BulkArgs]) error {
	until := d.now().Add(redeliverSlice)
	for {
		finished, err := d.redeliverChunk(ctx, job)
		if err != nil {
			return fmt.Errorf("redeliver a chunk: %w", err)
		}
		if finished {
			return nil
		}
		if d.now().After(until) {
			return jobs.Snooze(0, reasonMoreToDo)
		}
	}
}

// redeliverChunk reports whether the bulk action has come to its end, which is then one with the task's completion.
func (d *Deliverer) redeliverChunk(ctx context.Context, job *jobs.Job[jobs.BulkArgs]) (finished bool, err error) {
	project := job.Args.ProjectID
	var filter redeliverFilter
	err = store.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		bulk, err := jobs.LockBulk(ctx, tx, project, job.Args.BulkID)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(bulk.Filter, &filter); err != nil {
			return jobs.Discard(fmt.Errorf("read the filter: %w", err), jobs.ReasonUndecodable)
		}
		if bulk.State == jobs.BulkQueued || bulk.State == jobs.BulkRunning {
			if err := d.chunkTx(ctx, tx, filter, &bulk); err != nil {
				return err
			}
			if err := jobs.SaveBulk(ctx, tx, bulk); err != nil {
				return err
			}
		}
		if bulk.State == jobs.BulkRunning {
			return nil
		}
		finished = true
		return job.CompleteTx(ctx, tx)
	})
	if err != nil {
		return false, err
	}
	d.drained(filter.EndpointID)
	return finished, nil
}

// chunkTx brings the next deliveries: first those to try again, then the missed events. An endpoint that was disabled or
// deleted meanwhile ends the whole.
func (d *Deliverer) chunkTx(ctx context.Context, tx pgx.Tx, f redeliverFilter, bulk *jobs.Bulk) error {
	bulk.State = jobs.BulkRunning
	endpoints, err := lockedEndpointsTx(ctx, tx, bulk.ProjectID, f.EndpointID)
	if err != nil {
		return err
	}
	if len(endpoints) == 0 || endpoints[0].Disabled {
		bulk.State = jobs.BulkCancelled
		return nil
	}
	if f.Scope != ScopeMissed {
		full, err := d.retryChunkTx(ctx, tx, f, &endpoints[0], bulk)
		if err != nil || full {
			return err
		}
	}
	if f.Scope != ScopeDiscarded {
		full, err := d.missedChunkTx(ctx, tx, f, &endpoints[0], bulk)
		if err != nil || full {
			return err
		}
	}
	bulk.State = jobs.BulkCompleted
	return nil
}

// retryChunkTx tries deliveries behind the cursor again, in the order of their ids. Those beyond the window wait in the
// table; one that somebody else has set going is passed over. It reports whether there may be more.
func (d *Deliverer) retryChunkTx(ctx context.Context, tx pgx.Tx, f redeliverFilter, e *fanoutEndpoint, bulk *jobs.Bulk) (full bool, err error) {
	ids, err := f.nextTasks(ctx, tx, bulk)
	if err != nil {
		return false, err
	}
	var wait []int64
	for _, id := range ids {
		bulk.CursorID = id
		_, err := d.client.RetryTx(ctx, tx, bulk.ProjectID, id, jobs.TriggerRedeliver)
		var changed *store.ConflictError
		switch {
		case errors.As(err, &changed), errors.Is(err, store.ErrNotFound):
			bulk.Skipped++
			continue
		case err != nil:
			return false, err
		}
		bulk.Done++
		if e.Queued++; e.Queued > laneWindow {
			wait = append(wait, id)
		}
	}
	if err := holdTx(ctx, tx, bulk.ProjectID, wait); err != nil {
		return false, err
	}
	return len(ids) == redeliverChunk, nil
}

// nextTasks are the next deliveries behind the cursor. One that was tried since the click has had what the click asked for: two
// clicks make one attempt.
func (f redeliverFilter) nextTasks(ctx context.Context, tx pgx.Tx, bulk *jobs.Bulk) ([]int64, error) {
	args := f.taskArgs(bulk.ProjectID)
	args["after"], args["through"], args["limit"] = bulk.CursorID, f.Through, redeliverChunk
	args["clicked"] = bulk.CreatedAt
	const next = ` and id > @after and id <= @through and (attempted_at is null or attempted_at <= @clicked) order by id limit @limit`
	rows, err := tx.Query(ctx, `
		select id from ((select id from river_job where `+redeliverable[0]+next+`)
		                union all (select id from river_job where `+redeliverable[1]+next+`)) t
		order by id limit @limit`, args)
	if err != nil {
		return nil, fmt.Errorf("find discarded deliveries: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("find discarded deliveries: %w", err)
	}
	return ids, nil
}

// holdTx lets due tasks wait in the table for their lane.
func holdTx(ctx context.Context, tx pgx.Tx, project string, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `update river_job set state = 'pending' where project_id = $1 and id = any($2) and state = 'available'`, project, ids)
	if err != nil {
		return fmt.Errorf("let deliveries wait: %w", err)
	}
	return nil
}

// missedChunkTx makes first deliveries of missed events, in the order of their publishing. An event that retention has removed
// is passed over. It reports whether there may be more.
func (d *Deliverer) missedChunkTx(ctx context.Context, tx pgx.Tx, f redeliverFilter, e *fanoutEndpoint, bulk *jobs.Bulk) (full bool, err error) {
	args := f.args(bulk.ProjectID)
	args["limit"] = redeliverChunk
	rows, err := tx.Query(ctx, `
		with due as (
			select m.endpoint_id, m.event_seq from missed_events m where `+missable+` order by m.event_seq limit @limit for update
		), marked as (
			update missed_events m set redelivered_at = now() from due
			where m.endpoint_id = due.endpoint_id and m.event_seq = due.event_seq returning m.event_seq
		)
		select marked.event_seq as seq, coalesce(v.id, '') as id, coalesce(v.type, '') as type, coalesce(v.subscriber, '') as subscriber, v.expires_at
		from marked left join events v on v.project_id = @project and v.seq = marked.event_seq
		order by marked.event_seq`, args)
	if err != nil {
		return false, fmt.Errorf("find missed events: %w", err)
	}
	missed, err := pgx.CollectRows(rows, pgx.RowToStructByName[fanoutEvent])
	if err != nil {
		return false, fmt.Errorf("find missed events: %w", err)
	}
	var items []jobs.Item[DeliverArgs]
	now := d.now()
	for _, ev := range missed {
		if ev.ID == "" || ev.ExpiresAt != nil && !now.Before(*ev.ExpiresAt) {
			bulk.Skipped++
			continue
		}
		items = append(items, e.delivery(bulk.ProjectID, ev, jobs.TriggerRedeliver, now))
		bulk.Done++
	}
	if _, err := jobs.InsertManyTx(ctx, d.client, tx, Deliver, items); err != nil {
		return false, err
	}
	return len(missed) == redeliverChunk, nil
}
