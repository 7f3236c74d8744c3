package jobs

import (
	"math"
	"time"
)

// Verdict is what happens to a task after an attempt, in the ledger's words.
type Verdict string

// The verdicts.
const (
	VerdictAccepted         Verdict = "accepted"
	VerdictRetryScheduled   Verdict = "retry_scheduled"
	VerdictSnoozed          Verdict = "snoozed"
	VerdictPermanentFailure Verdict = "permanent_failure"
	VerdictCancelled        Verdict = "cancelled"
	// VerdictUnknown is for an attempt that never reported back. Decide does not give it.
	VerdictUnknown Verdict = "unknown"
)

// What a chosen wait was bounded by, as recorded in Decision.Cap.
const (
	// CapRetryAfter is the policy's cap on what a receiver or a handler may ask for.
	CapRetryAfter = "retry_after"
	// CapFloor is the shortest snooze.
	CapFloor = "floor"
	// CapHorizon is a deadline that the next attempt would have missed, so that there is none.
	CapHorizon = "horizon"
)

// A snooze spends no attempt, so nothing but these keeps a receiver that answers "Retry-After: 0" from being asked in a
// tight loop: the shortest snooze is a second, twice as long after each further snooze in a row, and a minute at most.
const (
	snoozeFloor     = time.Second
	snoozeFloorMost = time.Minute
)

// History is what Decide knows of a task besides its latest attempt.
type History struct {
	TaskID    int64
	CreatedAt time.Time
	// Deadline is the caller's own, such as an event's expiry; zero means none. The policy's horizon may be earlier.
	Deadline time.Time
	// Attempt is the number of the attempt just made, from 1.
	Attempt int
	// SnoozesInARow counts the snoozes right before this attempt; 0 for the first try and after a failure.
	SnoozesInARow int
	// Cancelled tells that a person cancelled the task while the attempt was under way.
	Cancelled bool
	// ManualRetry tells that a person asked for this attempt, by retry, redeliver or test. It stays true
	// while that attempt is snoozed, with or without an answer.
	ManualRetry bool
}

// Decision is what comes next, and why.
type Decision struct {
	Verdict Verdict
	// Reason is one of the Reason constants, or the handler's own word.
	Reason string
	// BaseWait is the policy's wait before jitter, or the delay that a snooze asked for. Wait is the one chosen, in whole
	// milliseconds. Both are 0 when there is no next attempt.
	BaseWait, Wait time.Duration
	// Cap is what Wait was bounded by: retry_after, floor, horizon or nothing.
	Cap string
	// Charged tells that the attempt used up one of the policy's. A snooze does not, whatever came of it, nor does an
	// endpoint that was disabled before the task's turn.
	Charged bool
	// RetryAfterRead is used, capped or ignored; empty when the answer had no Retry-After.
	RetryAfterRead string
	// NextAttemptAt is zero unless the verdict is retry_scheduled or snoozed.
	NextAttemptAt time.Time
}

// Decide says what follows an attempt that ended at now. It is pure: the same arguments give the same decision, anywhere
// and at any time. reason is the handler's word and delay what its snooze asked for; ra is nil when no Retry-After came.
//
// A success is accepted whatever else happened. For anything else the first that holds is the recorded reason: the task
// was cancelled, its deadline has passed, its attempts are used up; only then does the class count. An attempt whose
// successor would start after the deadline ends the task as well.
//
// What was not charged is not counted: a snooze, or an endpoint disabled before the task's turn. And an attempt that a
// person asked for is made in any case, so neither deadline nor budget stop it while it waits for its turn, which is a
// snooze without an answer. Once a receiver has answered, the deadline bounds its snoozes too.
func Decide(p Policy, h History, class Class, reason string, delay time.Duration, ra *RetryAfter, now time.Time) Decision {
	d := decide(p, h, class, reason, delay, ra, now)
	d.Charged = charges(class, reason)
	d.RetryAfterRead = p.readRetryAfter(ra)
	return d
}

func charges(class Class, reason string) bool {
	return class != ClassSnooze && class != ClassCancel && reason != ReasonEndpointDisabled
}

func decide(p Policy, h History, class Class, reason string, delay time.Duration, ra *RetryAfter, now time.Time) Decision {
	if class == ClassSuccess {
		return stop(VerdictAccepted, orReason(reason, ReasonAccepted))
	}
	if h.Cancelled {
		return stop(VerdictCancelled, ReasonCancelled)
	}

	charged := charges(class, reason)
	unanswered := !charged && ra == nil
	deadline := h.deadline(p)
	if h.ManualRetry && unanswered {
		deadline = time.Time{}
	}
	if !deadline.IsZero() && !now.Before(deadline) {
		return stop(VerdictPermanentFailure, ReasonHorizon)
	}
	if h.used(charged) >= p.Attempts && (charged || !h.ManualRetry) {
		return stop(VerdictPermanentFailure, ReasonAttemptsExhausted)
	}

	switch class {
	case ClassDiscard:
		return stop(VerdictPermanentFailure, orReason(reason, ReasonDiscarded))
	case ClassCancel:
		return stop(VerdictCancelled, orReason(reason, ReasonCancelled))
	case ClassSnooze:
		return p.snooze(h, delay, ra).at(now, deadline, orReason(reason, ReasonRetryAfter))
	default:
		return p.retry(h, ra).at(now, deadline, orReason(reason, ReasonFailed))
	}
}

// deadline is the earlier of the policy's horizon and the caller's own; zero means none.
func (h History) deadline(p Policy) time.Time {
	deadline := h.Deadline
	if p.Horizon > 0 {
		if horizon := h.CreatedAt.Add(p.Horizon); deadline.IsZero() || horizon.Before(deadline) {
			deadline = horizon
		}
	}
	return deadline
}

// used counts the attempts that were spent so far.
func (h History) used(charged bool) int {
	if charged {
		return h.Attempt
	}
	return h.Attempt - 1
}

// pause is a wait on its way to a decision.
type pause struct {
	verdict    Verdict
	base, wait time.Duration
	cap        string
}

// retry waits as the policy says, or longer when the receiver asked for it.
func (p Policy) retry(h History, ra *RetryAfter) pause {
	base, wait := p.Wait(h.TaskID, h.Attempt)
	next := pause{verdict: VerdictRetryScheduled, base: base, wait: wait}
	if !ra.Usable() {
		return next
	}
	limit := p.retryAfterCap()
	if asked := wholeMilliseconds(min(ra.Delay, limit)); asked > wait {
		next.wait = asked
		if ra.Delay > limit {
			next.cap = CapRetryAfter
		}
	}
	return next
}

// snooze waits as long as the handler or the receiver asked for, the longer of the two, between the floor and the cap.
func (p Policy) snooze(h History, delay time.Duration, ra *RetryAfter) pause {
	delay = max(delay, 0)
	if ra.Usable() {
		delay = max(delay, ra.Delay)
	}
	limit := p.retryAfterCap()
	floor := min(snoozeFloorAfter(h.SnoozesInARow), limit)
	next := pause{verdict: VerdictSnoozed, base: wholeMilliseconds(delay)}
	switch {
	case delay > limit:
		next.wait, next.cap = wholeMilliseconds(limit), CapRetryAfter
	case delay < floor:
		next.wait, next.cap = floor, CapFloor
	default:
		next.wait = next.base
	}
	return next
}

func snoozeFloorAfter(snoozes int) time.Duration {
	floor := snoozeFloor
	for range snoozes {
		if floor *= 2; floor >= snoozeFloorMost {
			return snoozeFloorMost
		}
	}
	return floor
}

// at turns a wait into a decision, or into the task's end when the next attempt would start after the deadline.
func (next pause) at(now, deadline time.Time, reason string) Decision {
	at := now.Add(next.wait)
	if !deadline.IsZero() && at.After(deadline) {
		return Decision{Verdict: VerdictPermanentFailure, Reason: ReasonHorizon, Cap: CapHorizon}
	}
	return Decision{Verdict: next.verdict, Reason: reason, BaseWait: next.base, Wait: next.wait, Cap: next.cap, NextAttemptAt: at}
}

func stop(v Verdict, reason string) Decision { return Decision{Verdict: v, Reason: reason} }

func orReason(reason, otherwise string) string {
	if reason == "" {
		return otherwise
	}
	return reason
}

func (p Policy) retryAfterCap() time.Duration {
	if p.RetryAfterCap <= 0 {
		return DefaultRetryAfterCap
	}
	return p.RetryAfterCap
}

// readRetryAfter tells used values within the cap from those beyond it.
func (p Policy) readRetryAfter(ra *RetryAfter) string {
	switch {
	case ra == nil:
		return ""
	case ra.Usable() && ra.Delay > p.retryAfterCap():
		return RetryAfterCapped
	default:
		return ra.Read
	}
}

// wholeMilliseconds rounds up, so that nobody comes back earlier than asked; the longest durations, which cannot be, down.
func wholeMilliseconds(d time.Duration) time.Duration {
	down := d.Truncate(time.Millisecond)
	if down == d || down > math.MaxInt64-time.Millisecond {
		return down
	}
	return down + time.Millisecond
}
