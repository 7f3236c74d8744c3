package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

const (
	bulkChunk = 200 // tasks in one transaction
	bulkSlice = 20 * time.Second
)

// BulkArgs are the arguments of a task that works a bulk action.
type BulkArgs struct {
	ProjectID string `json:"projectId"`
	BulkID    string `json:"bulkId"`
}

// BulkTasks retries or cancels all tasks that match a filter.
var BulkTasks = Kind[BulkArgs]{Name: "task.bulk", Queue: QueueIndex}

// bulkFilter is what a bulk action on tasks stores: the filter, and the newest task there was at the click.
type bulkFilter struct {
	TaskFilter
	Through int64 `json:"through"`
}

// CountBulk counts the tasks that an action would touch, for the preview.
func (c *Client) CountBulk(ctx context.Context, db store.DB, project string, action BulkAction, f TaskFilter) (int64, error) {
	states, err := bulkStates(action, f)
	if err != nil {
		return 0, err
	}
	args := pgx.StrictNamedArgs{"project": project}
	ids, err := f.idRange(ctx, db)
	if err != nil {
		return 0, err
	}
	where := f.where(args) + ids.where(args)
	var b strings.Builder
	b.WriteString("select coalesce(sum(n), 0)::bigint from (")
	for i, part := range partsOfAll(states) {
		if i > 0 {
			b.WriteString(" union all ")
		}
		fmt.Fprintf(&b, "select count(*) as n from river_job where state = '%s'%s%s", part.state, and(part.where), where)
	}
	b.WriteString(") as t")
	var n int64
	if err := db.QueryRow(ctx, b.String(), args).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the tasks of a bulk action: %w", err)
	}
	return n, nil
}

// StartBulk queues one background task that retries or cancels everything that matches now. It is one transaction with its audit row.
func (c *Client) StartBulk(ctx context.Context, actor tenant.Actor, project string, action BulkAction, f TaskFilter) (Bulk, error) {
	if err := actor.RequireIn(project, action.permission()); err != nil {
		return Bulk{}, err
	}
	total, err := c.CountBulk(ctx, c.pool, project, action, f)
	if err != nil {
		return Bulk{}, err
	}
	var bulk Bulk
	err = store.InTx(ctx, c.pool, func(tx pgx.Tx) error {
		filter := bulkFilter{TaskFilter: f}
		if err := tx.QueryRow(ctx, `select coalesce(max(id), 0) from river_job`).Scan(&filter.Through); err != nil {
			return fmt.Errorf("find the newest task: %w", err)
		}
		var err error
		if bulk, err = InsertBulk(ctx, tx, actor, project, action, filter, total); err != nil {
			return err
		}
		if _, err = InsertTx(ctx, c, tx, BulkTasks, BulkArgs{ProjectID: project, BulkID: bulk.ID},
			Insert{ProjectID: project, Label: map[string]string{"subject": string(action) + " " + fmt.Sprint(total) + " tasks"}}); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, actor, "bulk."+string(action), "bulk", bulk.ID, map[string]any{"filter": f, "total": total})
	})
	return bulk, err
}

// WorkBulk is the handler of BulkTasks: chunk by chunk, each a transaction of its own with its progress, so that a crash repeats nothing.
// It gives its worker back after a while, so that a large action does not keep small ones waiting.
func (c *Client) WorkBulk(ctx context.Context, job *Job[BulkArgs]) error {
	until := c.now().Add(bulkSlice)
	for {
		more, err := c.workChunk(ctx, job.Args)
		if err != nil {
			return err
		}
		if !more {
			c.counts.forget(job.Args.ProjectID)
			return nil
		}
		if c.now().After(until) {
			return Snooze(0, "bulk_continues")
		}
	}
}

func (c *Client) workChunk(ctx context.Context, args BulkArgs) (more bool, err error) {
	err = store.InTx(ctx, c.pool, func(tx pgx.Tx) error {
		b, err := LockBulk(ctx, tx, args.ProjectID, args.BulkID)
		if err != nil {
			return err
		}
		if more = b.State == BulkQueued || b.State == BulkRunning; !more {
			return nil
		}
		var f bulkFilter
		if err := json.Unmarshal(b.Filter, &f); err != nil {
			return Discard(fmt.Errorf("read the filter of a bulk action: %w", err), ReasonUndecodable)
		}
		ids, err := c.bulkIDs(ctx, tx, b, f)
		if err != nil {
			return err
		}
		for _, id := range ids {
			acted, err := c.actOnOne(ctx, tx, b, id)
			if err != nil {
				return err
			}
			if acted {
				b.Done++
			} else {
				b.Skipped++
			}
			b.CursorID = id
		}
		b.State = BulkRunning
		if more = len(ids) == bulkChunk; !more {
			b.State = BulkCompleted
		}
		return SaveBulk(ctx, tx, b)
	})
	return more, err
}

// actOnOne retries or cancels one task. Refusals are found before anything is written, so they leave the transaction sound. A task
// that was tried since the click has had what the click asked for: two clicks make one attempt.
func (c *Client) actOnOne(ctx context.Context, tx pgx.Tx, b Bulk, id int64) (acted bool, err error) {
	task, err := c.lockTask(ctx, tx, b.ProjectID, id)
	if err == nil && b.Action == BulkRetry && task.AttemptedAt.After(b.CreatedAt) {
		return false, nil
	}
	if err == nil && b.Action == BulkCancel {
		err = c.cancelLocked(ctx, tx, task)
	} else if err == nil {
		if c.beforeRetry != nil {
			err = c.beforeRetry(ctx, tx, task)
		}
		if err == nil {
			_, err = c.retryLocked(ctx, tx, task, TriggerManual)
		}
	}
	if isSkip(err) {
		return false, nil
	}
	return err == nil, err
}

// bulkIDs are the next tasks of a bulk action, oldest first, so that an endpoint gets them in the order published.
func (c *Client) bulkIDs(ctx context.Context, tx pgx.Tx, b Bulk, f bulkFilter) ([]int64, error) {
	states, err := bulkStates(b.Action, f.TaskFilter)
	if err != nil {
		return nil, Discard(err, ReasonUndecodable)
	}
	args := pgx.StrictNamedArgs{"project": b.ProjectID, "after": b.CursorID, "through": f.Through, "limit": bulkChunk}
	period, err := f.idRange(ctx, tx)
	if err != nil {
		return nil, err
	}
	where := f.where(args) + period.where(args) + " and id > @after and id <= @through"
	var q strings.Builder
	q.WriteString("select id from (")
	for i, part := range partsOfAll(states) {
		if i > 0 {
			q.WriteString(" union all ")
		}
		fmt.Fprintf(&q, "(select id from river_job where state = '%s'%s%s order by id limit @limit)", part.state, and(part.where), where)
	}
	q.WriteString(") as t order by id limit @limit")
	rows, err := tx.Query(ctx, q.String(), args)
	if err != nil {
		return nil, fmt.Errorf("find the next tasks of a bulk action: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

func bulkStates(action BulkAction, f TaskFilter) ([]TaskState, error) {
	if f.State == "" {
		return action.states(), nil
	}
	if !slices.Contains(action.states(), f.State) {
		return nil, errBulkState(action, f.State)
	}
	return []TaskState{f.State}, nil
}

func partsOfAll(states []TaskState) []riverPart {
	var parts []riverPart
	for _, s := range states {
		parts = append(parts, partsOf(s)...)
	}
	return parts
}
