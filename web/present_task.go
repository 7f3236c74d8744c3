package web

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
)

func presentTask(l views.Layout, v *visit, st story) views.TaskProps {
	t := st.task
	p := views.TaskProps{
		Layout: l, ID: strconv.FormatInt(t.ID, 10), State: views.State(t.State), Cancelling: t.Cancelling,
		Kind: t.Kind, Label: taskLabel(t), To: t.Label["host"], Attempt: t.Attempt, MaxAttempts: attemptsOf(st),
		Happened: happened(st), NextAttemptAt: nextAttempt(t), NextNote: whatIsNext(st),
		Future: future(st), EventID: t.EventID, Queue: t.Queue, CreatedAt: t.CreatedAt, FinishedAt: t.FinalizedAt,
		GivesUpAt: givesUp(st), Evidence: checkEvidence(st.records), Clicks: presentClicks(v, st.clicks),
		Policy: presentPolicyRef(st), Endpoint: presentEndpointRef(l.Now, st), Exchange: presentExchange(v, st),
	}
	for _, r := range slices.Backward(st.records[max(0, len(st.records)-attemptsShown):]) {
		p.Attempts = append(p.Attempts, presentAttempt(r))
	}
	if st.event != nil {
		p.EventType, p.Subscriber = st.event.Type, st.event.Subscriber
		if p.Exchange == nil {
			payload := presentPayload(v, st.event.Data, false)
			p.Payload = &payload
		}
	}
	p.CanRetry, p.RetryRefusal = retryOffer(v, st)
	p.CanCancel, p.CancelRefusal = cancelOffer(v, t)
	return p
}

// attemptsOf is how many attempts the task has: of the policy that decides about it, where that is known.
func attemptsOf(st story) int {
	switch {
	case st.used.Attempts > 0:
		return st.used.Attempts
	case st.next.Attempts > 0:
		return st.next.Attempts
	default:
		return st.task.Max
	}
}

// spent is how many of the policy's attempts the records used up.
func spent(records []jobs.Record) int {
	n := 0
	for _, r := range records {
		if r.Charged {
			n++
		}
	}
	return n
}

// future lists when attempts would start if all to come fail: jitter is a function of task and attempt, so the waits are
// those that will be chosen.
func future(st story) []time.Time {
	t, p := st.task, st.next
	at := t.NextAttemptAt
	if at.IsZero() || p.Attempts == 0 || len(st.records) == 0 && nextAttempt(t).IsZero() {
		return nil
	}
	deadline := givesUp(st)
	starts := []time.Time{at}
	for attempt := spent(st.records) + 1; attempt < p.Attempts; attempt++ {
		_, wait := p.Wait(t.ID, attempt)
		at = at.Add(wait)
		if !deadline.IsZero() && at.After(deadline) {
			break
		}
		starts = append(starts, at)
	}
	return starts
}

// givesUp is when the policy's horizon or the event's expiry ends the task.
func givesUp(st story) time.Time {
	var at time.Time
	if st.next.Horizon > 0 {
		at = st.task.CreatedAt.Add(st.next.Horizon)
	}
	if e := st.event; e != nil && !e.ExpiresAt.IsZero() && (at.IsZero() || e.ExpiresAt.Before(at)) {
		at = e.ExpiresAt
	}
	return at
}

func presentAttempt(r jobs.Record) views.Attempt {
	a := views.Attempt{
		Number: r.Seq, StartedAt: r.StartedAt, Took: r.Duration(), ErrorType: orEmpty(r.ErrorType), Phase: orEmpty(r.Phase),
		Decision: string(r.Decision), Reason: reasonOf(r), Trigger: string(r.Trigger), WaitCapped: r.Cap != nil,
		RetryAfterRaw: orEmpty(r.RetryAfterRaw), RetryAfterRead: orEmpty(r.RetryAfterRead),
	}
	a.Result, a.Short = attemptResult(r)
	if r.BaseWaitMS != nil {
		a.BaseWait = time.Duration(*r.BaseWaitMS) * time.Millisecond
	}
	if r.WaitMS != nil {
		a.Wait = time.Duration(*r.WaitMS) * time.Millisecond
	}
	return a
}

// reasonOf leaves out reasons that only repeat the decision.
func reasonOf(r jobs.Record) string {
	switch r.Reason {
	case jobs.ReasonAccepted, jobs.ReasonFailed, jobs.ReasonRetryAfter:
		return ""
	default:
		return reasonWords(r.Reason)
	}
}

// attemptResult says what came back, in full and for the time line.
func attemptResult(r jobs.Record) (result, short string) {
	errorType := orEmpty(r.ErrorType)
	switch {
	case r.Status != nil:
		return fmt.Sprintf("HTTP %d", *r.Status), strconv.Itoa(*r.Status)
	case errorType == "Timeout":
		return "No answer in " + shortTime(r.Duration()), "timeout"
	case errorType != "":
		word := resultWord(0, errorType)
		return capital(word), word
	case r.Decision == jobs.VerdictAccepted:
		return "Done", "done"
	case r.Decision == jobs.VerdictUnknown:
		return "Unknown: its node was lost", "lost"
	default:
		return "Not sent", "not sent"
	}
}

// checkEvidence recomputes the task's chain for this page.
func checkEvidence(records []jobs.Record) views.Evidence {
	e := views.Evidence{Checked: true, Records: len(records)}
	err := jobs.VerifyChain(records)
	e.Whole = err == nil
	var chain *jobs.ChainError
	if errors.As(err, &chain) {
		e.Problem = fmt.Sprintf("Record %d %s.", chain.Seq, chain.Sentence)
	}
	return e
}

func presentPolicyRef(st story) views.PolicyRef {
	p := st.used
	if p.Kind == "" {
		p = st.next
	}
	return refOf(p)
}

func presentEndpointRef(now time.Time, st story) *views.EndpointRef {
	switch {
	case st.task.EndpointID == "":
		return nil
	case st.endpoint != nil:
		e := *st.endpoint
		return &views.EndpointRef{ID: e.ID, Name: endpointName(e), Health: healthOf(e, now), Note: healthNote(e, now)}
	default:
		return &views.EndpointRef{ID: st.task.EndpointID, Name: hostOf(st.endpointURL), Health: views.Disabled, Note: "deleted"}
	}
}

// retryOffer says whether there is a button, and if not why. A role without the right gets neither.
func retryOffer(v *visit, st story) (offered bool, refusal string) {
	t := st.task
	switch {
	case !v.can(tenant.PermRetry):
		return false, ""
	case t.State == jobs.StateCompleted && t.EventID != "":
		return false, "A completed task is not retried. To send its event once more, redeliver the event."
	case st.endpoint != nil && st.endpoint.DisabledAt != nil && retryable(t):
		return false, "It cannot be retried while its endpoint is disabled. Reactivate the endpoint first."
	case t.EndpointID != "" && st.endpoint == nil && retryable(t):
		return false, "It cannot be retried: its endpoint was deleted, so there is nowhere to send it."
	default:
		return retryable(t), ""
	}
}

func cancelOffer(v *visit, t jobs.Task) (offered bool, refusal string) {
	switch {
	case !v.can(tenant.PermCancel):
		return false, ""
	case t.Cancelling:
		return false, "It is being cancelled: the attempt under way is not called back."
	default:
		return cancellable(t), ""
	}
}
