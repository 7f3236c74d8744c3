package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// TaskState is the state of a task as people see it (1-product.md, "States of a task").
type TaskState string

// The states of a task.
const (
	StatePending   TaskState = "pending"
	StateRunning   TaskState = "running"
	StateRetryable TaskState = "retryable"
	StateSnoozed   TaskState = "snoozed"
	StateCompleted TaskState = "completed"
	StateDiscarded TaskState = "discarded"
	StateCancelled TaskState = "cancelled"
)

// TaskStates lists the states in the order of the panel's tabs.
func TaskStates() []TaskState {
	return []TaskState{StateRunning, StatePending, StateRetryable, StateSnoozed, StateCompleted, StateDiscarded, StateCancelled}
}

// Task is a project's view of a River job.
type Task struct {
	ID        int64
	ProjectID string
	Kind      string
	Queue     string
	State     TaskState
	// Cancelling tells that a person asked to cancel a running task.
	Cancelling bool
	// Attempt is how many attempts were spent, Max how many the policy gives.
	Attempt, Max int
	EndpointID   string
	EventID      string
	Label        map[string]string
	// Reason says why it is in its state, in the recorded word.
	Reason string
	Last   *LastResult
	// NextAttemptAt is zero when none is to come.
	NextAttemptAt time.Time
	CreatedAt     time.Time
	AttemptedAt   time.Time
	FinalizedAt   time.Time
}

// StateOf maps River's row to the state that people see. It is the one mapping: partsOf says the same to Postgres, and a test
// compares the two over every combination. River writes waits of 5 s or less straight to `available`, so the mark of the last
// outcome tells a task that waits from one that is due.
func StateOf(riverState, outcome string, scheduledAt, now time.Time) TaskState {
	switch riverState {
	case "available":
		switch {
		case !scheduledAt.After(now):
			return StatePending
		case outcome == outcomeRetry:
			return StateRetryable
		case outcome == outcomeSnooze:
			return StateSnoozed
		default:
			return StatePending
		}
	case "scheduled":
		if outcome == outcomeRetry || outcome == outcomeSnooze {
			return StateSnoozed
		}
		return StatePending
	default:
		return TaskState(riverState)
	}
}

// riverPart is one of River's states that a task state is made of, with the condition that picks its rows.
type riverPart struct{ state, where string }

// partsOf turns a task state round: which of River's rows have it. Each part is one walk along an index.
func partsOf(s TaskState) []riverPart {
	switch s {
	case StatePending:
		return []riverPart{
			{"available", "(scheduled_at <= now() or outcome is null or outcome not in ('retry', 'snooze'))"},
			{"pending", ""},
			{"scheduled", "(outcome is null or outcome not in ('retry', 'snooze'))"}}
	case StateRetryable:
		return []riverPart{{"retryable", ""}, {"available", "scheduled_at > now() and outcome = 'retry'"}}
	case StateSnoozed:
		return []riverPart{{"scheduled", "outcome in ('retry', 'snooze')"}, {"available", "scheduled_at > now() and outcome = 'snooze'"}}
	case "":
		return []riverPart{{"available", ""}, {"cancelled", ""}, {"completed", ""}, {"discarded", ""}, {"pending", ""},
			{"retryable", ""}, {"running", ""}, {"scheduled", ""}}
	default:
		return []riverPart{{string(s), ""}}
	}
}

// taskColumns are the slim columns of lists: never args, errors or the whole metadata of other features.
const taskColumns = `id, coalesce(project_id, '') as project_id, kind, queue, state::text as river_state, coalesce(outcome, '') as outcome,
	attempt, metadata, created_at, scheduled_at, attempted_at, finalized_at`

type taskRow struct {
	ID          int64           `db:"id"`
	ProjectID   string          `db:"project_id"`
	Kind        string          `db:"kind"`
	Queue       string          `db:"queue"`
	RiverState  string          `db:"river_state"`
	Outcome     string          `db:"outcome"`
	Attempt     int             `db:"attempt"`
	Metadata    json.RawMessage `db:"metadata"`
	CreatedAt   time.Time       `db:"created_at"`
	ScheduledAt time.Time       `db:"scheduled_at"`
	AttemptedAt *time.Time      `db:"attempted_at"`
	FinalizedAt *time.Time      `db:"finalized_at"`
}

func (r taskRow) task(now time.Time) Task {
	m := parseMetadata(r.Metadata)
	t := Task{ID: r.ID, ProjectID: r.ProjectID, Kind: r.Kind, Queue: wholeQueue(r.Queue), State: StateOf(r.RiverState, r.Outcome, r.ScheduledAt, now),
		Attempt: m.Attempt, Max: m.Max, EndpointID: m.EndpointID, EventID: m.EventID, Label: m.Label, Reason: m.Reason, Last: m.Last,
		CreatedAt: r.CreatedAt}
	if r.AttemptedAt != nil {
		t.AttemptedAt = *r.AttemptedAt
	}
	if r.FinalizedAt != nil {
		t.FinalizedAt = *r.FinalizedAt
	}
	switch t.State {
	case StateRunning:
		t.Cancelling = m.CancelAt != ""
		if m.Last == nil || m.Last.Decision != VerdictSnoozed { // an attempt that was snoozed is made again under its number
			t.Attempt++
		}
	case StatePending, StateRetryable, StateSnoozed:
		t.NextAttemptAt = r.ScheduledAt
	case StateCancelled:
		if m.CancelAt != "" {
			t.Reason = ReasonCancelled
		}
	}
	return t
}

// TaskByID loads one task of the project; a foreign or unknown id is store.ErrNotFound.
func (c *Client) TaskByID(ctx context.Context, db store.DB, project string, id int64) (Task, error) {
	return c.taskByID(ctx, db, project, id, "")
}

func (c *Client) taskByID(ctx context.Context, db store.DB, project string, id int64, lock string) (Task, error) {
	rows, err := db.Query(ctx, `select `+taskColumns+` from river_job where id = $1 and project_id = $2 `+lock, id, project)
	if err != nil {
		return Task{}, fmt.Errorf("load a task: %w", err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[taskRow])
	if err != nil {
		return Task{}, fmt.Errorf("load a task: %w", store.MapError(err))
	}
	return row.task(c.now()), nil
}
