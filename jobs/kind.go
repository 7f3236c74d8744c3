package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Kind declares a kind of task as data: its name, the queue that works it, and which policy owns its retries.
type Kind[T any] struct {
	// Name is the River kind and the policy's kind, such as "webhook.deliver".
	Name string
	// Queue is one of the Queue constants.
	Queue string
	// Policy is the kind that its policy is declared for; empty means Name. All periodic jobs share one.
	Policy string
	// Profile is the policy profile a task of this kind has unless its handler chooses another; empty means "standard".
	Profile string
	// Timeout ends a handler's context; zero means 30 s.
	Timeout time.Duration
}

func (k Kind[T]) policy() (kind, profile string) {
	kind, profile = k.Policy, k.Profile
	if kind == "" {
		kind = k.Name
	}
	if profile == "" {
		profile = DefaultProfile
	}
	return kind, profile
}

// The queues, each with its own workers so that no kind of work waits behind another.
const (
	QueueWebhook     = "webhook"
	QueueNotify      = "notify"
	QueueIndex       = "index"
	QueueInvoke      = "invoke"
	QueueMaintenance = "maintenance"
)

// Trigger says why an attempt was made.
type Trigger string

// The triggers of an attempt.
const (
	TriggerSchedule  Trigger = "schedule"
	TriggerManual    Trigger = "manual"
	TriggerRedeliver Trigger = "redeliver"
	TriggerTest      Trigger = "test"
)

// Job is one attempt of a task, as a handler sees it. It belongs to one goroutine.
type Job[T any] struct {
	*Attempt
	Args T
}

// Attempt is the part of a Job that does not depend on its kind.
type Attempt struct {
	// TaskID is River's job id.
	TaskID    int64
	ProjectID string
	// Number counts from 1 and is not spent by a snooze.
	Number    int
	CreatedAt time.Time
	Trigger   Trigger
	// Evidence is for the handler to fill in.
	Evidence Evidence

	policy     Policy
	policies   *PolicySet
	policyKind string
	deadline   time.Time
	complete   func(ctx context.Context, batch *pgx.Batch) error
	completed  bool
	settled    func()
}

// Policy is what will decide about this attempt.
func (a *Attempt) Policy() Policy { return a.policy }

// UseProfile chooses another profile of the kind's policy for this attempt, as when an endpoint has one of its own.
// An unknown profile keeps the present one and is an error.
func (a *Attempt) UseProfile(profile string) error {
	p, ok := a.policies.ForProject(a.policyKind, profile, a.ProjectID)
	if !ok {
		return fmt.Errorf("kind %s has no profile %q", a.policyKind, profile)
	}
	a.policy = p
	return nil
}

// SetDeadline bounds the task's horizon to an earlier instant, such as an event's expiry. Zero and later instants change nothing.
func (a *Attempt) SetDeadline(t time.Time) {
	if !t.IsZero() && (a.deadline.IsZero() || t.Before(a.deadline)) {
		a.deadline = t
	}
}

// CountHorizonFrom makes the policy's horizon run from a later instant than the task's creation: a limit of our own kept it back
// until then, which must not be what ends it. An instant before the creation changes nothing.
func (a *Attempt) CountHorizonFrom(t time.Time) {
	if t.After(a.CreatedAt) {
		a.CreatedAt = t
	}
}

// OnSettled has fn called once the attempt's outcome is safe in the ledger, or could not be made so: for a success its task is
// finished in the table by then. fn must not block.
func (a *Attempt) OnSettled(fn func()) { a.settled = fn }

// CompleteTx writes the ledger row and completes the task in the caller's transaction, so that what the handler wrote and its
// completion are one. After a commit the handler returns nil.
func (a *Attempt) CompleteTx(ctx context.Context, tx pgx.Tx) error {
	batch := &pgx.Batch{}
	if err := a.CompleteLater(ctx, batch); err != nil {
		return err
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("complete the task in its transaction: %w", err)
	}
	return nil
}

// CompleteLater adds what CompleteTx does to a batch, which the handler sends in its transaction.
func (a *Attempt) CompleteLater(ctx context.Context, batch *pgx.Batch) error {
	return a.complete(ctx, batch)
}

// Handler does one attempt of a task.
type Handler[T any] func(ctx context.Context, job *Job[T]) error

// Registration is a kind with its handler, its type erased so that all of them fit on one screen.
type Registration struct {
	kind       string
	policyKind string
	profile    string
	timeout    time.Duration
	handle     func(ctx context.Context, a *Attempt, args []byte) error
}

// On pairs a kind with its handler.
func On[T any](k Kind[T], h Handler[T]) Registration {
	policyKind, profile := k.policy()
	return Registration{kind: k.Name, policyKind: policyKind, profile: profile, timeout: k.Timeout,
		handle: func(ctx context.Context, a *Attempt, raw []byte) error {
			job := &Job[T]{Attempt: a}
			if err := json.Unmarshal(raw, &job.Args); err != nil {
				return Discard(fmt.Errorf("decode arguments: %w", err), ReasonUndecodable)
			}
			return h(ctx, job)
		}}
}
