package jobs

import (
	"strings"
	"time"
)

// Answer is how one made-up attempt ends.
type Answer struct {
	// Class is "http.503" and the like, "blocked", "configuration" or "endpoint_disabled"; "success" and anything in
	// 2xx succeed. Any other word, such as "timeout", is a plain failure.
	Class string
	// RetryAfter is the header's value; empty means none.
	RetryAfter string
	// Took is how long the attempt lasts.
	Took time.Duration
	// Cancelled tells that a person cancels the task meanwhile.
	Cancelled bool
	// Manual tells that a person asks for this attempt: it starts as soon as the one before has ended, even where the task
	// was discarded or cancelled.
	Manual bool
}

// Step is one attempt of a simulation and what would follow it.
type Step struct {
	Answer
	Attempt               int
	StartedAt, FinishedAt time.Time
	Decision              Decision
}

// Simulate plays the answers through a policy, for a task of that id which is created and first tried at start. It ends
// with the answers, or when the task does, so it may have fewer steps than answers. It is pure: the instants it gives
// are those that a real task of that id would have chosen.
func Simulate(p Policy, taskID int64, answers []Answer, start time.Time) []Step {
	var steps []Step
	h := History{TaskID: taskID, CreatedAt: start, Attempt: 1}
	at := start
	for _, answer := range answers {
		if len(steps) > 0 {
			last := steps[len(steps)-1]
			switch {
			case answer.Manual && last.Decision.Verdict != VerdictAccepted:
				at = last.FinishedAt
			case last.Decision.NextAttemptAt.IsZero():
				return steps
			default:
				at = last.Decision.NextAttemptAt
			}
		}
		h.ManualRetry = h.ManualRetry || answer.Manual
		h.Cancelled = answer.Cancelled
		step := Step{Answer: answer, Attempt: h.Attempt, StartedAt: at, FinishedAt: at.Add(max(answer.Took, 0))}
		ra := ParseRetryAfter(answer.RetryAfter, step.FinishedAt)
		class, reason, delay := p.Classify(answer.Class, ra)
		step.Decision = Decide(p, h, class, reason, delay, ra, step.FinishedAt)
		steps = append(steps, step)
		h = h.after(step.Decision)
	}
	return steps
}

// after is the history that the next attempt has.
func (h History) after(d Decision) History {
	if d.Charged {
		h.Attempt++
	}
	if d.Verdict == VerdictSnoozed {
		h.SnoozesInARow++
		return h
	}
	h.SnoozesInARow, h.ManualRetry = 0, false
	return h
}

// Classify turns an answer into the outcome that Decide takes. It reads the policy's own table; a success is anything in
// 2xx. ra is nil when the answer had no Retry-After.
func (p Policy) Classify(answer string, ra *RetryAfter) (class Class, reason string, delay time.Duration) {
	if family, ok := httpFamily(answer); answer == string(ClassSuccess) || ok && family == "http.2xx" {
		return ClassSuccess, "", 0
	}
	switch p.Action(answer) {
	case ActionSnooze:
		if ra.Usable() {
			return ClassSnooze, ReasonRetryAfter, ra.Delay
		}
		return ClassRetry, ReasonFailed, 0
	case ActionGone:
		return ClassDiscard, ReasonGone, 0
	case ActionDiscard:
		return ClassDiscard, refusal(answer), 0
	case ActionCancel:
		return ClassCancel, refusal(answer), 0
	default:
		return ClassRetry, ReasonFailed, 0
	}
}

// refusal is the reason for which an answer ends a task: the word of what kept it from being sent, or that it was rejected.
func refusal(answer string) string {
	if strings.HasPrefix(answer, "http.") {
		return ReasonRejected
	}
	return answer
}
