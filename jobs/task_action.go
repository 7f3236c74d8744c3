package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// Codes of the conflicts that an action on a task may meet.
const (
	CodeAlreadyQueued = "already_queued"
	CodeCompleted     = "completed"
	CodeRunning       = "running"
	CodeFinished      = "finished"
)

// Retry makes the same task due now: one more attempt, even when its attempts are used up. It is one transaction with its audit
// row. A task that is queued, running or completed answers a *store.ConflictError; a foreign id store.ErrNotFound.
func (c *Client) Retry(ctx context.Context, actor tenant.Actor, project string, id int64) (Task, error) {
	if err := actor.RequireIn(project, tenant.PermRetry); err != nil {
		return Task{}, err
	}
	var task Task
	err := store.InTx(ctx, c.pool, func(tx pgx.Tx) error {
		before, err := c.lockTask(ctx, tx, project, id)
		if err != nil {
			return err
		}
		if c.beforeRetry != nil {
			if err := c.beforeRetry(ctx, tx, before); err != nil {
				return err
			}
		}
		if task, err = c.retryLocked(ctx, tx, before, TriggerManual); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, actor, "task.retry", "task", fmt.Sprint(id), map[string]any{"was": before.State, "attempt": before.Attempt})
	})
	c.counts.forget(project)
	return task, err
}

// RetryTx is Retry without role and audit, for a caller that has seen to both, as part of its transaction.
func (c *Client) RetryTx(ctx context.Context, tx pgx.Tx, project string, id int64, trigger Trigger) (Task, error) {
	task, err := c.lockTask(ctx, tx, project, id)
	if err != nil {
		return Task{}, err
	}
	return c.retryLocked(ctx, tx, task, trigger)
}

func (c *Client) lockTask(ctx context.Context, tx pgx.Tx, project string, id int64) (Task, error) {
	return c.taskByID(ctx, tx, project, id, "for update")
}

func (c *Client) retryLocked(ctx context.Context, tx pgx.Tx, task Task, trigger Trigger) (Task, error) {
	switch {
	case task.State == StateCompleted:
		return task, &store.ConflictError{Code: CodeCompleted, Sentence: "This task is completed. To send its event once more, redeliver the event."}
	case task.State == StateRunning:
		return task, &store.ConflictError{Code: CodeRunning, Sentence: "An attempt is under way. Wait for its result, then retry if it failed."}
	case task.State == StatePending && !task.NextAttemptAt.After(c.now()):
		return task, &store.ConflictError{Code: CodeAlreadyQueued, Sentence: "This task is already queued and will run as soon as its turn comes."}
	}
	if _, err := c.river.JobRetryTx(ctx, tx, task.ID); err != nil {
		if store.IsUnique(err, "river_job_unique_idx") {
			return task, &store.ConflictError{Code: CodeAlreadyQueued, Sentence: "The same work is already queued as another task."}
		}
		return task, fmt.Errorf("retry a task: %w", err)
	}
	_, err := tx.Exec(ctx, `update river_job set queue = $4, metadata = metadata || jsonb_build_object('trigger', $3::text) where id = $1 and project_id = $2`,
		task.ID, task.ProjectID, string(trigger), task.Queue)
	if err != nil {
		return task, fmt.Errorf("note why a task is tried again: %w", err)
	}
	if err := Nudge(ctx, tx, task.Queue); err != nil {
		return task, err
	}
	return c.TaskByID(ctx, tx, task.ProjectID, task.ID)
}

// Cancel stops a task for good: at once where it waits, at the end of its attempt where one is under way. It is one transaction with
// its audit row. A finished task answers a *store.ConflictError; a foreign id store.ErrNotFound.
func (c *Client) Cancel(ctx context.Context, actor tenant.Actor, project string, id int64) (Task, error) {
	if err := actor.RequireIn(project, tenant.PermCancel); err != nil {
		return Task{}, err
	}
	var task Task
	err := store.InTx(ctx, c.pool, func(tx pgx.Tx) error {
		before, err := c.lockTask(ctx, tx, project, id)
		if err != nil {
			return err
		}
		if err := c.cancelLocked(ctx, tx, before); err != nil {
			return err
		}
		if err := tenant.Audit(ctx, tx, actor, "task.cancel", "task", fmt.Sprint(id), map[string]any{"was": before.State, "attempt": before.Attempt}); err != nil {
			return err
		}
		task, err = c.TaskByID(ctx, tx, project, id)
		return err
	})
	c.counts.forget(project)
	return task, err
}

func (c *Client) cancelLocked(ctx context.Context, tx pgx.Tx, task Task) error {
	switch task.State {
	case StateCompleted, StateDiscarded, StateCancelled:
		return &store.ConflictError{Code: CodeFinished, Sentence: "This task is " + string(task.State) + "; there is nothing left to cancel."}
	}
	if _, err := c.river.JobCancelTx(ctx, tx, task.ID); err != nil {
		return fmt.Errorf("cancel a task: %w", err)
	}
	return nil
}

// IsConflict reports whether err is a conflict with the given code.
func IsConflict(err error, code string) bool {
	var conflict *store.ConflictError
	return errors.As(err, &conflict) && conflict.Code == code
}
