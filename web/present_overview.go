package web

import (
	"time"

	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

func presentOverview(l views.Layout, v *visit, o overview, command string) views.OverviewProps {
	p := views.OverviewProps{
		Layout: l, Waiting: o.counts[jobs.StateRetryable] + o.counts[jobs.StateSnoozed], NextDueAt: o.nextDue,
		P50: o.latency.P50, P95: o.latency.P95, Outcomes: outcomeBars(o.sums, o.since),
		New: !o.hasEvent, HasEndpoint: o.hasEndpoint, HasKey: o.hasKey, PublishCommand: command,
		CanCreate: v.can(tenant.PermManageEndpoints) && v.can(tenant.PermManageKeys),
	}
	t := tallyOf(o.sums, func(s jobs.Sum) bool { return s.Kind == webhooks.Deliver.Name })
	p.Delivered, p.Ended = int(t.accepted), int(t.ended)
	if t.ended > 0 {
		p.DeliveredRatio = float64(t.accepted) / float64(t.ended)
		p.AttemptsPerDelivery = float64(t.charged) / float64(t.ended)
	}
	for _, e := range o.attention {
		p.Attention = append(p.Attention, presentEndpointRow(v, l.Now, e, o.strips[e.ID], o.loads[e.ID]))
	}
	return p
}

// tally is what attempts came to.
type tally struct {
	// ended counts attempts that ended their task, accepted those that did so well.
	ended, accepted, acceptedFirst int64
	// exhausted counts tasks that ran out of attempts or time.
	exhausted int64
	// charged counts attempts that used up one of the policy's.
	charged int64
}

func tallyOf(sums []jobs.Sum, of func(jobs.Sum) bool) tally {
	var t tally
	for _, s := range sums {
		if !of(s) {
			continue
		}
		t.charged += s.Charged
		switch s.Decision {
		case jobs.VerdictAccepted:
			t.ended += s.Attempts
			t.accepted += s.Attempts
			if s.FirstTry {
				t.acceptedFirst += s.Attempts
			}
		case jobs.VerdictPermanentFailure:
			t.ended += s.Attempts
			if s.Reason == jobs.ReasonAttemptsExhausted || s.Reason == jobs.ReasonHorizon {
				t.exhausted += s.Attempts
			}
		case jobs.VerdictCancelled:
			t.ended += s.Attempts
		}
	}
	return t
}

// outcomeBars stacks attempts by what came of them.
func outcomeBars(sums []jobs.Sum, from time.Time) views.Bars {
	b := views.Bars{ID: "outcomes", Title: "Attempts per half hour", From: "24 h ago", To: "now", Series: []views.Series{
		{Name: "delivered", Tone: views.Good}, {Name: "retried later", Tone: views.Warn}, {Name: "asked to wait", Tone: views.Wait}, {Name: "given up", Tone: views.Bad}}}
	for at := from; at.Before(from.Add(overviewSpan)); at = at.Add(overviewStep) {
		b.Buckets = append(b.Buckets, views.Bucket{At: at, Values: make([]int, len(b.Series))})
	}
	for _, s := range sums {
		bucket, series := int(s.Bucket.Sub(from)/overviewStep), seriesOf(s.Decision)
		if bucket >= 0 && bucket < len(b.Buckets) && series >= 0 {
			b.Buckets[bucket].Values[series] += int(s.Attempts)
		}
	}
	return b
}

// seriesOf is the place of a decision among the series, -1 for none.
func seriesOf(d jobs.Verdict) int {
	switch d {
	case jobs.VerdictAccepted:
		return 0
	case jobs.VerdictRetryScheduled, jobs.VerdictUnknown:
		return 1
	case jobs.VerdictSnoozed:
		return 2
	case jobs.VerdictPermanentFailure, jobs.VerdictCancelled:
		return 3
	default:
		return -1
	}
}
