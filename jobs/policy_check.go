package jobs

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"
)

// kindDeliver is the one kind whose policies are chosen per endpoint and may be a single project's.
const kindDeliver = "webhook.deliver"

const (
	maxAttempts = 1000
	maxWait     = 366 * 24 * time.Hour
	// minRetryAfterCap is also the shortest snooze, which the cap must not undercut.
	minRetryAfterCap = snoozeFloor
)

var (
	kindPattern    = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`)
	profilePattern = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)
	projectPattern = regexp.MustCompile(`^project_[0-9a-z]+$`)
	classPattern   = regexp.MustCompile(`^(http\.[1-5]([0-9][0-9]|xx)|blocked|configuration|endpoint_disabled)$`)
)

// actions are all that a class may lead to.
var actions = []Action{ActionRetry, ActionDiscard, ActionSnooze, ActionGone, ActionCancel}

// fault is one thing that is wrong with a policy: where, as a path of keys, and what, as a sentence.
type fault struct{ path, sentence string }

// Validate refuses a policy that means nothing or that would surprise whoever wrote it. Defaults must be filled in.
func (p Policy) Validate() error {
	var errs []error
	for _, f := range p.faults() {
		errs = append(errs, fmt.Errorf("policy %s/%s: %s", p.Kind, p.Profile, f.sentence))
	}
	return errors.Join(errs...)
}

func (p Policy) faults() []fault {
	var faults []fault
	report := func(path, format string, args ...any) {
		faults = append(faults, fault{path, fmt.Sprintf(format, args...)})
	}
	p.checkName(report)
	p.checkWaits(report)
	p.checkBackoff(report)
	p.checkLimits(report)
	p.checkScope(report)
	for _, class := range slices.Sorted(maps.Keys(p.Classes)) {
		if !classPattern.MatchString(class) {
			report("classes."+class, "%q is no class of answers: write http.410, http.4xx, blocked, configuration or endpoint_disabled.", class)
		} else if !slices.Contains(actions, p.Classes[class]) {
			report("classes."+class, "%q is no action: write retry, discard, snooze, gone or cancel.", p.Classes[class])
		}
	}
	return faults
}

type reporter func(path, format string, args ...any)

func (p Policy) checkName(report reporter) {
	if !kindPattern.MatchString(p.Kind) {
		report("kind", "%q is no kind: write lower-case words joined by dots, such as webhook.deliver.", p.Kind)
	}
	if !profilePattern.MatchString(p.Profile) {
		report("profile", "%q is no profile: write a lower-case word of at most 32 letters.", p.Profile)
	}
	if p.Attempts < 1 || p.Attempts > maxAttempts {
		report("attempts", "attempts is %d: it must be from 1 to %d.", p.Attempts, maxAttempts)
	}
}

func (p Policy) checkWaits(report reporter) {
	switch {
	case len(p.Waits) > 0 && p.Backoff != nil:
		report("backoff", "waits and backoff are both given: a policy has one of them.")
	case len(p.Waits) == 0 && p.Backoff == nil && p.Attempts > 1:
		report("attempts", "%d attempts need waits between them: give waits or backoff.", p.Attempts)
	}
	for i, wait := range p.Waits {
		checkDuration(report, fmt.Sprintf("waits.%d", i), "a wait", wait, 0)
	}
	if first := p.BaseWait(1); p.Horizon > 0 && first > p.Horizon {
		report("horizon", "the horizon of %s is shorter than the first wait of %s: nothing would ever be retried.",
			shortDuration(p.Horizon), shortDuration(first))
	}
}

func (p Policy) checkBackoff(report reporter) {
	b := p.Backoff
	if b == nil {
		return
	}
	checkDuration(report, "backoff.base", "base", b.Base, time.Millisecond)
	if b.Cap != 0 {
		checkDuration(report, "backoff.cap", "cap", b.Cap, time.Millisecond)
	}
	switch {
	case !(b.Factor >= 1) || math.IsInf(b.Factor, 0):
		report("backoff.factor", "factor is %v: it must be at least 1, or waits would shrink.", b.Factor)
	case b.Cap > 0 && b.Cap < b.Base:
		report("backoff.cap", "the cap of %s is shorter than the base of %s.", shortDuration(b.Cap), shortDuration(b.Base))
	case p.BaseWait(p.Attempts-1) > maxWait:
		report("backoff", "the wait grows to more than %d days: give it a cap.", maxWait/(24*time.Hour))
	}
}

func (p Policy) checkLimits(report reporter) {
	switch j := p.Jitter; {
	case !(j.Fraction >= 0):
		report("jitter", "jitter is negative.")
	case j.Fraction > 1:
		report("jitter", "jitter is over 100 %%: a wait could become negative.")
	case j.Full && j.Fraction != 0:
		report("jitter", "jitter is full and a fraction at once.")
	}
	checkDuration(report, "timeout.total", "total", p.Timeout.Total, time.Millisecond)
	checkDuration(report, "timeout.connect", "connect", p.Timeout.Connect, 0)
	if p.Timeout.Connect > p.Timeout.Total {
		report("timeout.connect", "connect of %s is longer than the total of %s.",
			shortDuration(p.Timeout.Connect), shortDuration(p.Timeout.Total))
	}
	checkDuration(report, "horizon", "horizon", p.Horizon, 0)
	checkDuration(report, "retry_after.cap", "cap", p.RetryAfterCap, minRetryAfterCap)
}

func (p Policy) checkScope(report reporter) {
	checkDuration(report, "disable_endpoint.failing_for", "failing_for", p.Disable.FailingFor, 0)
	if p.Disable.FailuresInARow < 0 {
		report("disable_endpoint.failures_in_a_row", "failures_in_a_row is negative.")
	}
	if p.Kind != kindDeliver && p.Disable != (DisableRule{}) {
		report("disable_endpoint", "only %s has an endpoint to disable.", kindDeliver)
	}
	if p.Kind != kindDeliver && len(p.Projects) > 0 {
		report("projects", "only a policy of %s may be for single projects.", kindDeliver)
	}
	for i, project := range p.Projects {
		path := fmt.Sprintf("projects.%d", i)
		if !projectPattern.MatchString(project) {
			report(path, "%q is no project: write its id, project_ and letters and digits.", project)
		}
		if slices.Contains(p.Projects[:i], project) {
			report(path, "%s is named twice.", project)
		}
	}
}

// checkDuration wants whole milliseconds, which is what the ledger and the canonical form hold.
func checkDuration(report reporter, path, name string, d, least time.Duration) {
	switch {
	case d < 0:
		report(path, "%s is negative.", name)
	case d < least:
		report(path, "%s is %s: it must be at least %s.", name, shortDuration(d), shortDuration(least))
	case d > maxWait:
		report(path, "%s is longer than %d days.", name, maxWait/(24*time.Hour))
	case d%time.Millisecond != 0:
		report(path, "%s is no whole number of milliseconds.", name)
	}
}
