package web

import (
	"fmt"

	"entrega/jobs"
	"entrega/webhooks"
)

// happened is the sentence of the newest attempt.
func happened(st story) string {
	if len(st.records) == 0 {
		return happenedBefore(st.task)
	}
	r := st.records[len(st.records)-1]
	attempt := fmt.Sprintf("Attempt %d of %d", r.Attempt, attemptsOf(st))
	took := shortTime(r.Duration())
	switch {
	case r.Decision == jobs.VerdictUnknown:
		return fmt.Sprintf("Attempt %d was lost with the node that made it; a request may have been sent.", r.Attempt)
	case r.Reason == jobs.ReasonEndpointDisabled:
		return "Its endpoint was disabled before its turn came, so nothing was sent."
	case r.Decision == jobs.VerdictSnoozed && r.Status != nil:
		return fmt.Sprintf("The receiver answered %d and asked to come back later; no attempt was spent.", *r.Status)
	case r.Decision == jobs.VerdictSnoozed:
		return "It asked to come back later; no attempt was spent."
	case r.Status != nil && r.Decision == jobs.VerdictAccepted:
		return fmt.Sprintf("%s answered %d in %s.", attempt, *r.Status, took)
	case r.Status != nil:
		return fmt.Sprintf("%s answered %d.", attempt, *r.Status)
	case r.Decision == jobs.VerdictAccepted:
		return fmt.Sprintf("%s was done in %s.", attempt, took)
	case orEmpty(r.ErrorType) == "Timeout":
		return fmt.Sprintf("%s got no answer in %s.", attempt, took)
	case r.ErrorType != nil:
		return fmt.Sprintf("%s failed: %s.", attempt, resultWord(0, *r.ErrorType))
	default:
		return fmt.Sprintf("%s failed: %s.", attempt, reasonWords(r.Reason))
	}
}

// happenedBefore is the sentence of a task that was never tried.
func happenedBefore(t jobs.Task) string {
	switch t.State {
	case jobs.StateRunning:
		return "Its first attempt is under way."
	case jobs.StateCancelled:
		return "It was cancelled before its first attempt."
	case jobs.StateCompleted:
		return "It is done."
	case jobs.StateDiscarded:
		return "It ended before its first attempt: " + reasonWords(t.Reason) + "."
	default:
		return "It was not tried yet."
	}
}

// whatIsNext ends the sentence where no next attempt has a time.
func whatIsNext(st story) string {
	t := st.task
	switch t.State {
	case jobs.StateCompleted:
		return "Nothing is left to do."
	case jobs.StateRunning:
		if t.Cancelling {
			return "It will be cancelled when the present attempt ends."
		}
		if len(st.records) > 0 {
			return fmt.Sprintf("Attempt %d is under way.", t.Attempt)
		}
		return ""
	case jobs.StateCancelled:
		if t.Reason == jobs.ReasonEndpointDisabled {
			return "It will not be tried again by itself: redeliver takes it when the endpoint is active again."
		}
		return "It was cancelled and will not be tried again by itself."
	case jobs.StateDiscarded:
		return discardSentence(t, attemptsOf(st)) + " It will not be tried again by itself."
	default:
		return "It waits for its turn."
	}
}

func discardSentence(t jobs.Task, attempts int) string {
	switch t.Reason {
	case jobs.ReasonAttemptsExhausted:
		return fmt.Sprintf("All %s are used up.", plural(attempts, "attempt", "attempts"))
	case jobs.ReasonHorizon:
		return "The time that its policy gives it is over."
	case jobs.ReasonGone:
		return "The receiver wants nothing more, so its endpoint was disabled."
	case jobs.ReasonRejected:
		return "No repetition would change this answer."
	case jobs.ReasonBlocked:
		return "The guard of outgoing calls refuses this address."
	case jobs.ReasonEndpointDisabled:
		return "Redeliver takes it when the endpoint is active again."
	case webhooks.ReasonTestFailed:
		return "A test is tried once."
	default:
		return "It ended: " + reasonWords(t.Reason) + "."
	}
}
