package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// adapter is the one global River middleware: the classifier. For each attempt it finds lost ones before it, runs the handler,
// decides, writes the ledger, and only then tells River.
type adapter struct {
	river.MiddlewareDefaults
	worker *Worker
}

// run is one attempt on its way through the adapter.
type run struct {
	adapter *adapter
	row     *rivertype.JobRow
	reg     Registration
	meta    metadata
	chain   chainState
	attempt *Attempt
}

type runKey struct{}

// errorTypeCancelled is the errorType of 3-retry.md for an attempt that a person's cancel cut short.
const errorTypeCancelled = "Cancelled"

// panicError is a handler's panic, caught so that it is evidence like any other failure.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.value) }

// attemptStack is about what an attempt takes of its goroutine's stack, in bytes.
const attemptStack = 12 << 10

// growStack makes room for it in one step, while there is little on the stack to copy. River starts a goroutine for each attempt, whose
// stack would otherwise grow by doubling, and be copied each time, the last time from deep inside the sending.
//
//go:noinline
func growStack() {
	var room [attemptStack]byte
	runtime.KeepAlive(&room)
}

// Work is River's call around a handler.
func (a *adapter) Work(ctx context.Context, row *rivertype.JobRow, doInner func(context.Context) error) error {
	w := a.worker
	reg, ok := w.kinds[row.Kind]
	if !ok {
		return doInner(ctx)
	}
	growStack()
	r := &run{adapter: a, row: row, reg: reg, meta: subjectOf(row.Metadata)}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	if r.chain.ended(r.meta.Trigger) {
		return r.adopt(ctx)
	}
	err := r.call(ctx, doInner)
	defer r.attempt.tellSettled()
	if interrupted(ctx, err) && !r.attempt.Evidence.Sent {
		return err
	}
	if r.attempt.completed && err == nil {
		r.told()
		return nil
	}
	return r.settle(ctx, err)
}

// prepare loads the task's chain where there may be one, records attempts that a crash swallowed, and builds the Attempt.
func (r *run) prepare(ctx context.Context) error {
	w := r.adapter.worker
	policy, _ := w.client.policies.ForProject(r.reg.policyKind, r.reg.profile, r.meta.ProjectID)
	r.chain = newChainState(r.row.ID)
	if len(r.row.AttemptedBy) > 1 || r.row.Attempt > 1 {
		var err error
		if r.chain, err = loadChain(ctx, w.pool, r.row.ID, spanSince(r.row.CreatedAt)); err != nil {
			return err
		}
	}
	if r.meta.Trigger == "" {
		r.meta.Trigger = TriggerSchedule
	}
	r.attempt = &Attempt{TaskID: r.row.ID, ProjectID: r.meta.ProjectID, CreatedAt: r.row.CreatedAt, Trigger: r.meta.Trigger,
		policy: policy, policies: w.client.policies, policyKind: r.reg.policyKind, complete: r.completeLater,
		Evidence: Evidence{IdempotencyKey: r.meta.IdempotencyKey, OrderID: r.meta.OrderID, RecipientRef: r.meta.RecipientRef}}
	for r.chain.tries < r.row.Attempt-1 {
		if err := r.recordLost(ctx); err != nil {
			return err
		}
	}
	r.attempt.Number = r.chain.charged + 1
	return nil
}

// adopt tells River what the ledger knows: the attempt before was made and recorded, and its node died before it could say so.
// Nothing is sent again.
func (r *run) adopt(ctx context.Context) error {
	d := Decision{Verdict: r.chain.last, Reason: r.chain.lastReason}
	if err := river.MetadataSet(ctx, "outcome", outcomeDone); err != nil {
		return fmt.Errorf("mark the task's outcome: %w", err)
	}
	if err := river.MetadataSet(ctx, "reason", d.Reason); err != nil {
		return fmt.Errorf("mark the task's outcome: %w", err)
	}
	if err := river.MetadataSet(ctx, "attempt", r.chain.charged); err != nil {
		return fmt.Errorf("mark the task's outcome: %w", err)
	}
	return r.answer(d, nil)
}

func (r *run) call(ctx context.Context, doInner func(context.Context) error) (err error) {
	r.attempt.Evidence.StartedAt = r.adapter.worker.now()
	defer func() {
		if v := recover(); v != nil {
			r.adapter.worker.log.ErrorContext(ctx, "a handler panicked", "job_id", r.row.ID, "kind", r.row.Kind,
				"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = &panicError{value: v}
		}
	}()
	return doInner(context.WithValue(ctx, runKey{}, r))
}

func (a *Attempt) tellSettled() {
	if a.settled != nil {
		a.settled()
	}
}

func (r *run) handle(ctx context.Context, args []byte) error {
	return r.reg.handle(ctx, r.attempt, args)
}

// settle decides, records, marks the task and answers River.
func (r *run) settle(ctx context.Context, err error) error {
	w := r.adapter.worker
	d, rec := r.decide(ctx, err)
	if d.Verdict == VerdictAccepted {
		if completeErr := r.complete(ctx, d, rec); completeErr != nil {
			return completeErr
		}
	} else if recordErr := r.recordAndMark(ctx, d, rec); recordErr != nil {
		return recordErr
	}
	level := slog.LevelInfo
	if d.Verdict == VerdictAccepted {
		level = slog.LevelDebug // It is the rule, and the ledger has it.
	}
	w.log.Log(ctx, level, "attempt", "project_id", r.meta.ProjectID, "job_id", r.row.ID, "kind", r.row.Kind,
		"attempt", r.attempt.Number, "decision", string(d.Verdict), "reason", d.Reason)
	return r.answer(d, err)
}

// complete records a success and completes the task with it, in a commit shared with others: no crash comes between the two, and
// the task's place is free the moment its evidence is safe.
func (r *run) complete(ctx context.Context, d Decision, rec Record) error {
	marks, err := r.marksJSON(d)
	if err != nil {
		return err
	}
	write, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerWriteTimeout)
	defer cancel()
	if err := r.adapter.worker.ledger.complete(write, rec, &r.attempt.Evidence, marks); err != nil {
		return fmt.Errorf("the attempt was made but its evidence could not be written: %w", err)
	}
	r.told()
	return nil
}

// recordAndMark records whatever else came of an attempt, unless nothing was sent and nothing spent, and leaves its marks for River.
func (r *run) recordAndMark(ctx context.Context, d Decision, rec Record) error {
	if d.Verdict != VerdictSnoozed || r.attempt.Evidence.Sent {
		write, cancel := context.WithTimeout(context.WithoutCancel(ctx), ledgerWriteTimeout)
		defer cancel()
		if err := r.adapter.worker.ledger.append(write, rec, &r.attempt.Evidence); err != nil {
			return fmt.Errorf("the attempt was made but its evidence could not be written: %w", err)
		}
	}
	return r.mark(ctx, d)
}

// decide asks the policy and turns the attempt into a sealed record.
func (r *run) decide(ctx context.Context, err error) (Decision, Record) {
	now := r.adapter.worker.now()
	class, reason, delay := ClassOf(err)
	var panicked *panicError
	switch {
	case interrupted(ctx, err):
		class, reason, delay = ClassSnooze, ReasonInterrupted, 0
	case errors.As(err, &panicked):
		reason = ReasonPanic
	}
	h := History{TaskID: r.row.ID, CreatedAt: r.attempt.CreatedAt, Deadline: r.attempt.deadline, Attempt: r.attempt.Number,
		SnoozesInARow: r.chain.snoozesInARow, Cancelled: cancelledRemotely(ctx), ManualRetry: r.meta.Trigger != TriggerSchedule}
	d := Decide(r.attempt.policy, h, class, reason, delay, r.attempt.Evidence.RetryAfter, now)
	if h.Cancelled && d.Verdict == VerdictCancelled && r.attempt.Evidence.Status == 0 {
		r.attempt.Evidence.ErrorType, r.attempt.Evidence.Error = errorTypeCancelled, "A person cancelled the task while the attempt was under way."
	}
	rec := r.record(d, err, now)
	rec.seal(r.chain.head)
	return d, rec
}

// completeLater is Attempt.CompleteLater: record, marks and completion in the handler's own transaction.
func (r *run) completeLater(ctx context.Context, batch *pgx.Batch) error {
	d, rec := r.decide(ctx, nil)
	marks, err := r.marksJSON(d)
	if err != nil {
		return err
	}
	queueEntries(batch, &entry{record: rec, evidence: &r.attempt.Evidence, completes: marks})
	r.attempt.completed = true
	return nil
}

// told keeps River from completing again what is completed.
func (r *run) told() {
	row, now := *r.row, r.adapter.worker.now()
	row.State, row.FinalizedAt = rivertype.JobStateCompleted, &now
	r.adapter.worker.driver.completed.add(&row)
}

// mark leaves on the task what lists and states need; River merges it into the metadata with the state.
func (r *run) mark(ctx context.Context, d Decision) error {
	m := r.marks(d)
	set := func(key string, value any) error { return river.MetadataSet(ctx, key, value) }
	err := errors.Join(set("outcome", m.Outcome), set("reason", m.Reason), set("max", m.Max))
	if m.Last != nil {
		err = errors.Join(err, set("attempt", m.Attempt), set("last", m.Last))
	}
	if m.Trigger != "" {
		err = errors.Join(err, set("trigger", m.Trigger))
	}
	if err != nil {
		return fmt.Errorf("mark the task's outcome: %w", err)
	}
	return nil
}

func (r *run) marks(d Decision) marks {
	ev := &r.attempt.Evidence
	m := marks{Outcome: outcomeDone, Reason: d.Reason, Max: r.attempt.policy.Attempts}
	switch d.Verdict {
	case VerdictRetryScheduled:
		m.Outcome = outcomeRetry
	case VerdictSnoozed:
		m.Outcome = outcomeSnooze
	}
	if d.Verdict != VerdictSnoozed || ev.Sent {
		m.Attempt = r.attempt.Number
		m.Last = &LastResult{At: ev.StartedAt, Status: ev.Status, ErrorType: ev.ErrorType, Phase: ev.Phase,
			DurationMS: r.duration().Milliseconds(), Decision: d.Verdict, Reason: d.Reason}
		if ev.RetryAfter != nil {
			m.Last.RetryAfter = cleanText(ev.RetryAfter.Raw)
		}
	}
	if d.Verdict != VerdictSnoozed { // a person's retry that was snoozed is still theirs
		m.Trigger = TriggerSchedule
	}
	return m
}

func (r *run) marksJSON(d Decision) ([]byte, error) {
	raw, err := json.Marshal(r.marks(d))
	if err != nil {
		return nil, fmt.Errorf("encode the task's marks: %w", err)
	}
	return raw, nil
}

// answer puts the decision into River's terms.
func (r *run) answer(d Decision, err error) error {
	if err == nil {
		err = errors.New(d.Reason)
	}
	switch d.Verdict {
	case VerdictAccepted:
		return nil
	case VerdictSnoozed:
		return river.JobSnooze(max(0, d.NextAttemptAt.Sub(r.adapter.worker.now())))
	case VerdictCancelled:
		return river.JobCancel(err)
	case VerdictRetryScheduled:
		r.row.ScheduledAt = d.NextAttemptAt
		r.row.MaxAttempts = max(r.row.MaxAttempts, r.row.Attempt+1)
		return plain(err)
	default:
		r.row.MaxAttempts = r.row.Attempt
		return plain(err)
	}
}

// plain keeps River from reading an error of ours, or of its own, as anything but a failure.
func plain(err error) error { return errors.New(cleanText(err.Error())) }

func (r *run) duration() time.Duration {
	ev := &r.attempt.Evidence
	if ev.Timings.Total > 0 {
		return ev.Timings.Total
	}
	if ev.FinishedAt.IsZero() {
		return r.adapter.worker.now().Sub(ev.StartedAt)
	}
	return ev.FinishedAt.Sub(ev.StartedAt)
}

func cancelledRemotely(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), rivertype.ErrJobCancelledRemotely)
}

// interrupted tells a shutdown from every other end of a context: River cancels the work and wants context.Canceled back.
func interrupted(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && ctx.Err() != nil && !cancelledRemotely(ctx) &&
		!errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}
