package mailer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"entrega/internal/store"
	"entrega/jobs"
)

// notReadyDelay is how long a mail stays away when our own side cannot serve it.
const notReadyDelay = 5 * time.Second

// send makes one attempt of one notification. The order is that of 7-mail.md: what holds the mail back, then the sending, then what
// came of it, and only then the mark.
func (s *Sender) send(ctx context.Context, job *jobs.Job[SendArgs]) error {
	n, err := s.load(ctx, s.pool, job.Args.ProjectID, job.Args.NotificationID)
	if errors.Is(err, store.ErrNotFound) {
		return jobs.Discard(&sendError{sentence: "The notification does not exist any more."}, ReasonNotificationGone)
	}
	if err != nil {
		return s.notReady(ctx, job, err)
	}
	job.CountHorizonFrom(n.heldUntil)
	t, err := s.transportOf(ctx, s.pool, n.ProjectID)
	if err != nil {
		return s.notReady(ctx, job, err)
	}
	if t.settings.Kind == SMTP {
		// A kind whose mail is old news after minutes has no such profile and keeps its short timeout.
		_ = job.UseProfile(profileSMTP)
	}
	if err := s.beforeSending(ctx, job, n, t); err != nil {
		return s.ended(ctx, job, n, err)
	}
	m, err := s.message(ctx, n, t)
	var spent *store.ConflictError
	if errors.As(err, &spent) {
		return s.ended(ctx, job, n, jobs.Discard(&sendError{sentence: spent.Sentence}, ReasonConfirmed))
	}
	if err != nil {
		return s.notReady(ctx, job, err)
	}
	m.Policy = job.Policy()
	return s.attempt(ctx, job, n, t, m)
}

// attempt hands the message over and takes in what came of it.
func (s *Sender) attempt(ctx context.Context, job *jobs.Job[SendArgs], n *Notification, t *transport, m Message) error {
	limited, cancel := context.WithTimeout(ctx, m.Policy.Timeout.Total)
	defer cancel()
	job.Evidence.Sent = true
	r := t.way.Send(limited, m)
	r.Sentence = scrub(r.Sentence, m.Recipient)
	r.note(&job.Evidence, m.Recipient)
	if r.Verdict == Stopped {
		job.Evidence.Sent = r.PossibleDuplicate
		return r.outcome(0)
	}
	after, cancelAfter := context.WithTimeout(context.WithoutCancel(ctx), bookkeeping)
	defer cancelAfter()
	if err := s.noteTransport(after, t, r); err != nil {
		s.log.ErrorContext(ctx, "the state of a mail transport could not be written", "project_id", n.ProjectID, "job_id", job.TaskID, "error", err)
	}
	if r.Verdict == Accepted {
		return s.accepted(after, job, n, t, r)
	}
	if err := s.noteFailure(after, n, r); err != nil {
		s.log.ErrorContext(ctx, "what a mail met could not be written", "project_id", n.ProjectID, "job_id", job.TaskID, "error", err)
	}
	outcome := r.outcome(pauseFor)
	if class, _, _ := jobs.ClassOf(outcome); class == jobs.ClassRetry && job.Trigger == jobs.TriggerTest {
		outcome = jobs.Discard(outcome, ReasonTestFailed)
	}
	return s.ended(after, job, n, outcome)
}

// contentRemoved is why a mail cannot be sent or shown any more.
const contentRemoved = "What this mail said was removed: its recipient was erased, or it was kept long enough."

// beforeSending says why nothing is to be sent, or not now, if so.
func (s *Sender) beforeSending(ctx context.Context, job *jobs.Job[SendArgs], n *Notification, t *transport) error {
	switch {
	case n.address == "":
		return jobs.Discard(&sendError{sentence: "The recipient's address was erased."}, ReasonErased)
	case n.ErasedAt != nil:
		return jobs.Discard(&sendError{sentence: contentRemoved}, ReasonContentRemoved)
	}
	suppressed, err := suppressedRef(ctx, s.pool, n.ProjectID, n.ref)
	switch {
	case err != nil:
		return s.notReady(ctx, job, err)
	case suppressed:
		return jobs.Discard(&sendError{sentence: "The recipient bounced or complained before and gets no mail until somebody removes the suppression."}, ReasonSuppressed)
	}
	if n.Kind == OwnerNotify.Name {
		if free, err := s.takeOwnerSlot(ctx, n); err != nil {
			return s.notReady(ctx, job, err)
		} else if !free {
			return jobs.Discard(&sendError{sentence: fmt.Sprintf("This owner has got %d notices in this hour; the rest are dropped on purpose.", ownerCap)}, ReasonBurstCap)
		}
	}
	if err := s.passGate(ctx, job, t); err != nil {
		return err
	}
	until, err := s.takeSlot(ctx, n)
	if err != nil {
		return s.notReady(ctx, job, err)
	}
	if !until.IsZero() {
		job.CountHorizonFrom(until)
		return jobs.Snooze(until.Sub(s.now()), ReasonRecipientCap)
	}
	return nil
}

// notReady puts a mail off because of trouble on our own side, before anything was sent. It spends no attempt.
func (s *Sender) notReady(ctx context.Context, job *jobs.Job[SendArgs], err error) error {
	if ctx.Err() != nil {
		return &sendError{sentence: "The attempt was interrupted.", cause: errors.Join(ctx.Err(), context.Canceled)}
	}
	s.log.ErrorContext(ctx, "a mail could not be made ready", "project_id", job.ProjectID, "job_id", job.TaskID, "error", err)
	return jobs.Snooze(notReadyDelay, reasonNotReady)
}
