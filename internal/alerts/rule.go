package alerts

import (
	"context"
	"time"
)

// Rule says what raises alerts of a kind, and what resolves them.
type Rule struct {
	Kind Kind
	// Title names the trouble to people.
	Title string
	// Grave is what is broken; the rest may break.
	Grave bool
	// Raised and Resolved end the sentences "An alert is raised when …" and "It resolves itself when …".
	Raised, Resolved string

	// every is the least time between two scans; zero means at every scan.
	every time.Duration
	scan  func(ctx context.Context, p *pass) error
}

// Rules are all rules, in the order in which they are scanned.
func Rules() []Rule {
	return []Rule{
		{Kind: TaskDiscarded, Title: "Tasks discarded", Grave: true, scan: scanDiscarded,
			Raised:   "a task is discarded; those of one kind and endpoint are counted together",
			Resolved: "all of them were retried, completed or removed, or when nothing new came for 7 days"},
		{Kind: EndpointFailing, Title: "Endpoint failing", scan: scanFailing,
			Raised:   "an endpoint is half way to being disabled by its policy",
			Resolved: "it works again or is disabled"},
		{Kind: EndpointDisabled, Title: "Endpoint disabled", Grave: true, scan: scanDisabled,
			Raised:   "an endpoint is disabled by a rule or by a 410 Gone",
			Resolved: "it is reactivated or deleted"},
		{Kind: ReceiverRefuses, Title: "Signature refused", Grave: true, scan: scanRefused,
			Raised:   "a receiver answers 401 or 403",
			Resolved: "it accepts a later attempt"},
		{Kind: Backlog, Title: "Backlog", scan: scanBacklog,
			Raised:   "more than 1,000 events wait for their fan-out, or one for more than 5 minutes",
			Resolved: "both are down to half of that"},
		{Kind: EventPoisoned, Title: "Event given up", Grave: true, scan: scanPoisoned,
			Raised:   "an event could not be handed to the fan-out again and again",
			Resolved: "no event of the project is given up any more"},
		{Kind: PeriodicFailed, Title: "Periodic job failing", Grave: true, scan: scanPeriodic,
			Raised:   "a periodic job failed 3 times in a row",
			Resolved: "it succeeds"},
		{Kind: LaneSaturated, Title: "Lane saturated", scan: scanSaturated,
			Raised:   "a delivery to a healthy endpoint has waited for its lane for more than 10 minutes",
			Resolved: "nothing waits for longer than a minute"},
		{Kind: AttemptsLost, Title: "Attempts lost", scan: scanLost,
			Raised:   "an attempt never reported back, because its node ended",
			Resolved: "none was lost for an hour"},
		{Kind: TransportPaused, Title: "Mail paused", Grave: true, scan: scanPaused,
			Raised:   "a mail transport refuses our credentials, or us",
			Resolved: "it takes them again, or has other settings"},
	}
}

// RuleOf is the rule of a kind; one without any has its kind for a title.
func RuleOf(k Kind) Rule {
	for _, r := range Rules() {
		if r.Kind == k {
			return r
		}
	}
	return Rule{Kind: k, Title: string(k)}
}
