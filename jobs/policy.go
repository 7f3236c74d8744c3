package jobs

import (
	"math"
	"time"
)

// DefaultProfile is the profile of every policy that names none.
const DefaultProfile = "standard"

// DefaultRetryAfterCap is the longest wait that a receiver may ask for when its policy does not say.
const DefaultRetryAfterCap = 10 * time.Hour

// DefaultTimeout bounds an attempt when its policy does not say.
const DefaultTimeout = 30 * time.Second

// Policy is what decides about the attempts of one kind of task: data, never code. It comes from a YAML document, is
// complete (defaults are filled in when it is read) and is never changed afterwards: read its slices and maps, do not
// write to them.
type Policy struct {
	Kind, Profile string
	// Projects are those that this policy is for, sorted; none means every project.
	Projects []string
	// Attempts is how many tries a task has, at least 1. A person may ask for more, one at a time.
	Attempts int
	// Waits are the waits after each failed attempt, in whole milliseconds; the last one repeats. A policy has Waits or
	// Backoff, or neither when there is only one attempt.
	Waits   []time.Duration
	Backoff *Backoff
	Jitter  Jitter
	Timeout Timeout
	// Horizon is how long after its creation a task is tried at all; 0 means that only its caller's deadline counts.
	Horizon time.Duration
	// RetryAfterCap is the longest wait that a receiver or a handler may ask for.
	RetryAfterCap time.Duration
	Disable       DisableRule
	// Classes says what an answer means: "http.410", "http.4xx", "endpoint_disabled", "blocked", "configuration".
	Classes map[string]Action
	// Version counts the policies that this kind and profile have had, from 1; 0 as long as it is not stored.
	Version int
	// Hash is the SHA-256 of Canonical.
	Hash [32]byte
}

// Backoff is a wait that grows by a factor with each failure.
type Backoff struct {
	Base   time.Duration
	Factor float64
	// Cap is the longest wait; 0 means none.
	Cap time.Duration
}

// Jitter spreads the waits of tasks that failed together. Its zero value spreads nothing.
type Jitter struct {
	// Fraction is how far a wait may stray to either side, 0.1 for 10 %.
	Fraction float64
	// Full draws the wait from the whole range between nothing and the base wait; Fraction is 0 then.
	Full bool
}

// Timeout bounds one attempt.
type Timeout struct {
	// Total covers everything up to the last byte of the answer.
	Total time.Duration
	// Connect covers the dial; 0 leaves it to whoever dials.
	Connect time.Duration
}

// DisableRule says when an endpoint that only fails is disabled. Its zero value never does so; of two limits the one
// that is reached first counts.
type DisableRule struct {
	FailingFor     time.Duration
	FailuresInARow int
}

// Action is what an answer leads to.
type Action string

// The actions a policy may name.
const (
	// ActionRetry tries again after the policy's wait.
	ActionRetry Action = "retry"
	// ActionDiscard ends the task as a permanent failure.
	ActionDiscard Action = "discard"
	// ActionSnooze comes back when the receiver asked for it; without a usable Retry-After it is a retry.
	ActionSnooze Action = "snooze"
	// ActionGone is a discard that also disables the endpoint.
	ActionGone Action = "gone"
	// ActionCancel ends the task because there is nowhere left to deliver.
	ActionCancel Action = "cancel"
)

// Action reads what an answer of a class leads to. "http.410" is looked up as such, then as "http.4xx"; what the policy
// does not name is retried.
func (p Policy) Action(class string) Action {
	if action, ok := p.Classes[class]; ok {
		return action
	}
	if family, ok := httpFamily(class); ok {
		if action, ok := p.Classes[family]; ok {
			return action
		}
	}
	return ActionRetry
}

// httpFamily turns "http.410" into "http.4xx".
func httpFamily(class string) (string, bool) {
	const prefix = "http."
	if len(class) != len(prefix)+3 || class[:len(prefix)] != prefix {
		return "", false
	}
	return class[:len(prefix)+1] + "xx", true
}

// BaseWait is the wait after the failure of an attempt, counted from 1, before jitter. It is in whole milliseconds.
func (p Policy) BaseWait(attempt int) time.Duration {
	attempt = max(attempt, 1)
	switch {
	case len(p.Waits) > 0:
		return p.Waits[min(attempt, len(p.Waits))-1]
	case p.Backoff != nil:
		return p.Backoff.wait(attempt)
	default:
		return 0
	}
}

// wait is base x factor^(attempt-1), at most the cap, in whole milliseconds rounded half up.
func (b Backoff) wait(attempt int) time.Duration {
	ms := float64(b.Base.Milliseconds()) * math.Pow(b.Factor, float64(attempt-1))
	wait := milliseconds(ms)
	if b.Cap > 0 {
		wait = min(wait, b.Cap)
	}
	return wait
}

// milliseconds rounds half up and keeps within what a Duration holds.
func milliseconds(ms float64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	rounded := math.Floor(ms + 0.5)
	switch {
	case !(rounded > 0): // Not a number counts as no wait.
		return 0
	case rounded >= float64(most):
		return time.Duration(most) * time.Millisecond
	default:
		return time.Duration(rounded) * time.Millisecond
	}
}
