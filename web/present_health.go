package web

import (
	"cmp"
	"slices"
	"time"

	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

const (
	// decisionsMost is how many reasons are listed.
	decisionsMost = 15
	// forecastStep is the width of a bar of the forecast.
	forecastStep = 15 * time.Minute
)

func presentHealth(l views.Layout, period string, sums []jobs.Sum, w worst, due []jobs.Due, policies *jobs.PolicySet, project string) views.HealthProps {
	p := views.HealthProps{Layout: l, Period: period, Periods: periods()[1:], Forecast: forecastBars(due, l.Now)}
	type key struct{ kind, profile string }
	seen := map[key]bool{}
	for _, s := range sums {
		k := key{s.Kind, s.Profile}
		if seen[k] {
			continue
		}
		seen[k] = true
		t := tallyOf(sums, func(s jobs.Sum) bool { return key{s.Kind, s.Profile} == k })
		if t.ended == 0 {
			continue
		}
		policy, ok := policies.ForProject(s.Kind, s.Profile, project)
		if !ok {
			policy = jobs.Policy{Kind: s.Kind, Profile: s.Profile}
		}
		p.Policies = append(p.Policies, views.PolicyHealth{Policy: refOf(policy), Ended: int(t.ended),
			AttemptsPerDelivery: float64(t.charged) / float64(t.ended), FirstTry: float64(t.acceptedFirst) / float64(t.ended),
			Recovered: int(t.accepted - t.acceptedFirst), Exhausted: int(t.exhausted)})
	}
	slices.SortFunc(p.Policies, func(a, b views.PolicyHealth) int { return cmp.Compare(b.Ended, a.Ended) })
	p.Decisions = presentDecisions(sums)
	for _, e := range w.endpoints {
		p.Worst = append(p.Worst, views.WorstEndpoint{ID: e.EndpointID, Name: hostOf(w.names[e.EndpointID]), Attempts: int(e.Attempts),
			Failed: int(e.Failures), Strip: presentStrip(w.strips[e.EndpointID]), TopReason: lastFailure(w.strips[e.EndpointID])})
	}
	return p
}

// presentDecisions counts decisions by how they read to a person.
func presentDecisions(sums []jobs.Sum) []views.DecisionCount {
	counts := map[views.DecisionCount]int{}
	for _, s := range sums {
		if reading := jobs.ReadingOf(s.Decision, s.Reason); reading != "" {
			counts[views.DecisionCount{Reading: string(reading), Reason: s.Reason, Policy: s.Kind}] += int(s.Attempts)
		}
	}
	all := make([]views.DecisionCount, 0, len(counts))
	for d, n := range counts {
		d.Count = n
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b views.DecisionCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reading, b.Reading), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Policy, b.Policy))
	})
	return all[:min(len(all), decisionsMost)]
}

// lastFailure says what the newest failed attempt of a strip was.
func lastFailure(strip []webhooks.StripAttempt) string {
	for _, a := range slices.Backward(strip) {
		if a.Decision != jobs.VerdictAccepted {
			return "last: " + resultWord(a.Status, a.ErrorType)
		}
	}
	return ""
}

func forecastBars(due []jobs.Due, now time.Time) views.Bars {
	from := now.UTC().Truncate(forecastStep)
	b := views.Bars{ID: "forecast", Title: "Retries due per quarter of an hour", From: "now", To: "in 24 h", Series: []views.Series{{Name: "retries due", Tone: views.Warn}}}
	for at := from; at.Before(now.Add(overviewSpan)); at = at.Add(forecastStep) {
		b.Buckets = append(b.Buckets, views.Bucket{At: at, Values: []int{0}})
	}
	for _, d := range due {
		if i := int(d.Minute.Sub(from) / forecastStep); i >= 0 && i < len(b.Buckets) {
			b.Buckets[i].Values[0] += int(d.Tasks)
		}
	}
	return b
}
