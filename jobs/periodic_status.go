package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// PeriodicRun is the newest run of a periodic job.
type PeriodicRun struct {
	TaskID int64
	State  TaskState
	// Error is the sentence of a run that failed.
	Error             string
	StartedAt         time.Time
	FinishedAt        time.Time
	FailuresInARow    int // newest runs without a success among them, counted up to ten
	SucceededNeverYet bool
}

// LastRun finds the newest finished or running run of a periodic job; false when it has never run.
func LastRun(ctx context.Context, db store.DB, p Periodic) (PeriodicRun, bool, error) {
	rows, err := db.Query(ctx, `
		select id, state::text, coalesce(attempted_at, created_at), finalized_at, coalesce(errors[array_upper(errors, 1)] ->> 'error', '') from (
			(select id, state, attempted_at, created_at, finalized_at, errors from river_job where project_id is null and kind = $1 and state = 'running' order by id desc limit 1)
			union all
			(select id, state, attempted_at, created_at, finalized_at, errors from river_job where project_id is null and kind = $1 and state = 'completed' order by id desc limit 10)
			union all
			(select id, state, attempted_at, created_at, finalized_at, errors from river_job where project_id is null and kind = $1 and state = 'discarded' order by id desc limit 10)
		) as runs order by id desc limit 10`, p.Name)
	if err != nil {
		return PeriodicRun{}, false, fmt.Errorf("find runs of %s: %w", p.Name, err)
	}
	runs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (PeriodicRun, error) {
		var r PeriodicRun
		var state string
		var finished *time.Time
		err := row.Scan(&r.TaskID, &state, &r.StartedAt, &finished, &r.Error)
		r.State = TaskState(state)
		if finished != nil {
			r.FinishedAt = *finished
		}
		return r, err
	})
	if err != nil {
		return PeriodicRun{}, false, fmt.Errorf("find runs of %s: %w", p.Name, err)
	}
	if len(runs) == 0 {
		return PeriodicRun{}, false, nil
	}
	last := runs[0]
	last.SucceededNeverYet = true
	for _, r := range runs {
		if r.State == StateCompleted {
			last.SucceededNeverYet = false
			break
		}
		if r.State == StateDiscarded {
			last.FailuresInARow++
		}
	}
	return last, true, nil
}

// LeadsSince is since when the node that leads has done so, zero while none does.
func LeadsSince(ctx context.Context, db store.DB) (time.Time, error) {
	var since time.Time
	err := db.QueryRow(ctx, `select elected_at from river_leader where expires_at > now()`).Scan(&since)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, fmt.Errorf("read since when a node leads: %w", err)
	}
	return since, nil
}

// RunPeriodic queues a run of a periodic job now. One that waits or runs already answers a *store.ConflictError.
func (c *Client) RunPeriodic(ctx context.Context, actor tenant.Actor, p Periodic) error {
	if err := actor.Require(tenant.PermAdmin); err != nil {
		return err
	}
	return store.InTx(ctx, c.pool, func(tx pgx.Tx) error {
		args, opts, err := prepare(c, p.kind(), noArgs{}, Insert{Unique: true})
		if err != nil {
			return err
		}
		res, err := c.river.InsertTx(ctx, tx, args, opts)
		if err != nil {
			return fmt.Errorf("queue a run of %s: %w", p.Name, err)
		}
		if res.UniqueSkippedAsDuplicate {
			return &store.ConflictError{Code: CodeAlreadyQueued, Sentence: "A run of " + p.Name + " is queued or under way already."}
		}
		return tenant.Audit(ctx, tx, actor, "periodic.run", "periodic", p.Name, nil)
	})
}
