package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// BulkAction is what one click does to many tasks.
type BulkAction string

// The bulk actions.
const (
	BulkRetry     BulkAction = "retry"
	BulkCancel    BulkAction = "cancel"
	BulkRedeliver BulkAction = "redeliver"
)

// BulkState is where a bulk action stands.
type BulkState string

// The states of a bulk action.
const (
	BulkQueued    BulkState = "queued"
	BulkRunning   BulkState = "running"
	BulkCompleted BulkState = "completed"
	BulkCancelled BulkState = "cancelled"
)

// Bulk is one action on many tasks, done by a background task that resumes where it stopped.
type Bulk struct {
	ID        string          `db:"id"`
	ProjectID string          `db:"project_id"`
	Action    BulkAction      `db:"action"`
	Filter    json.RawMessage `db:"filter"`
	ActorKind string          `db:"actor_kind"`
	ActorID   string          `db:"actor_id"`
	ActorName string          `db:"actor_name"`
	// Total is how many tasks matched at the start; Done were acted on, Skipped had changed meanwhile.
	Total      int64      `db:"total"`
	Done       int64      `db:"done"`
	Skipped    int64      `db:"skipped"`
	CursorID   int64      `db:"cursor_id"`
	State      BulkState  `db:"state"`
	CreatedAt  time.Time  `db:"created_at"`
	FinishedAt *time.Time `db:"finished_at"`
}

const bulkColumns = `id, project_id, action, filter, actor_kind, actor_id, actor_name, total, done, skipped, cursor_id, state, created_at, finished_at`

// BulkByID loads one bulk action of the project, or store.ErrNotFound.
func BulkByID(ctx context.Context, db store.DB, project, id string) (Bulk, error) {
	return oneBulk(ctx, db, `where id = $1 and project_id = $2`, id, project)
}

// LockBulk is BulkByID for the background task that works it: the row stays locked until the caller's transaction ends.
func LockBulk(ctx context.Context, tx pgx.Tx, project, id string) (Bulk, error) {
	return oneBulk(ctx, tx, `where id = $1 and project_id = $2 for update`, id, project)
}

func oneBulk(ctx context.Context, db store.DB, where string, args ...any) (Bulk, error) {
	rows, err := db.Query(ctx, `select `+bulkColumns+` from bulk_actions `+where, args...)
	if err != nil {
		return Bulk{}, fmt.Errorf("load a bulk action: %w", err)
	}
	b, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Bulk])
	if err != nil {
		return Bulk{}, fmt.Errorf("load a bulk action: %w", store.MapError(err))
	}
	return b, nil
}

// ListBulks lists a project's newest bulk actions.
func ListBulks(ctx context.Context, db store.DB, project string, limit int) ([]Bulk, error) {
	rows, err := db.Query(ctx, `select `+bulkColumns+` from bulk_actions where project_id = $1 order by created_at desc limit $2`, project, limit)
	if err != nil {
		return nil, fmt.Errorf("list bulk actions: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Bulk])
}

// InsertBulk stores a bulk action as part of the caller's transaction, which also queues the task that works it and audits.
func InsertBulk(ctx context.Context, tx pgx.Tx, actor tenant.Actor, project string, action BulkAction, filter any, total int64) (Bulk, error) {
	raw, err := json.Marshal(filter)
	if err != nil {
		return Bulk{}, fmt.Errorf("encode a filter: %w", err)
	}
	id := store.NewID("bulk")
	_, err = tx.Exec(ctx, `insert into bulk_actions (id, project_id, action, filter, actor_kind, actor_id, actor_name, total) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
		id, project, action, raw, actor.Kind, actor.ID, actor.Name, total)
	if err != nil {
		return Bulk{}, fmt.Errorf("store a bulk action: %w", err)
	}
	return BulkByID(ctx, tx, project, id)
}

// SaveBulk writes back how far a bulk action came.
func SaveBulk(ctx context.Context, tx pgx.Tx, b Bulk) error {
	_, err := tx.Exec(ctx, `update bulk_actions set done = $3, skipped = $4, cursor_id = $5, state = $6,
		finished_at = case when $6 in ('completed', 'cancelled') then now() end where id = $1 and project_id = $2`,
		b.ID, b.ProjectID, b.Done, b.Skipped, b.CursorID, b.State)
	if err != nil {
		return fmt.Errorf("save a bulk action: %w", err)
	}
	return nil
}

// CancelBulk stops a bulk action; what it did stays done. A finished one answers a *store.ConflictError.
func (c *Client) CancelBulk(ctx context.Context, actor tenant.Actor, project, id string) (Bulk, error) {
	var b Bulk
	err := store.InTx(ctx, c.pool, func(tx pgx.Tx) error {
		var err error
		if b, err = LockBulk(ctx, tx, project, id); err != nil {
			return err
		}
		if err := actor.RequireIn(project, b.Action.permission()); err != nil {
			return err
		}
		if b.State == BulkCompleted || b.State == BulkCancelled {
			return &store.ConflictError{Code: CodeFinished, Sentence: "This bulk action is " + string(b.State) + "; there is nothing left to stop."}
		}
		b.State = BulkCancelled
		if err := SaveBulk(ctx, tx, b); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, actor, "bulk.stop", "bulk", id, map[string]any{"done": b.Done, "total": b.Total})
	})
	return b, err
}

func (a BulkAction) permission() tenant.Permission {
	switch a {
	case BulkCancel:
		return tenant.PermCancel
	case BulkRedeliver:
		return tenant.PermRedeliver
	default:
		return tenant.PermRetry
	}
}

// states are those whose tasks the action can do something to.
func (a BulkAction) states() []TaskState {
	if a == BulkCancel {
		return []TaskState{StatePending, StateRetryable, StateSnoozed, StateRunning}
	}
	return []TaskState{StateRetryable, StateSnoozed, StateDiscarded, StateCancelled}
}

// errBulkState says that a filter's state and an action do not go together.
func errBulkState(a BulkAction, s TaskState) error {
	return store.Invalid("state", fmt.Sprintf("Tasks that are %s cannot be %s. Choose another state.", s, map[BulkAction]string{BulkRetry: "retried", BulkCancel: "cancelled"}[a]))
}

// isSkip tells the refusals that a bulk action passes over from errors that stop it.
func isSkip(err error) bool {
	var conflict *store.ConflictError
	return errors.As(err, &conflict) || errors.Is(err, store.ErrNotFound)
}
