package web

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"time"

	"entrega/jobs"
	"entrega/views"
)

// outageBars is how many bars the chart has at most; a longer forecast puts minutes together.
const outageBars = 120

// presentForecast reads the form and plays the outage through the policy, the usual one unless another was chosen. It is pure, so the
// form is a GET.
func presentForecast(policies []jobs.Policy, usual string, form url.Values, now time.Time) views.ForecastProps {
	p := views.ForecastProps{Policy: form.Get("policy"), Policies: policyOptions(policies), Rate: form.Get("rate"), Outage: form.Get("outage")}
	asked := p.Rate != "" || p.Outage != ""
	if p.Rate == "" {
		p.Rate = "10/s"
	}
	if p.Outage == "" {
		p.Outage = "10m"
	}
	if p.Policy == "" {
		p.Policy = usual
	}
	if !asked {
		return p
	}
	p.Problems = map[string]string{}
	rate, err := jobs.ParseRate(p.Rate)
	if err != nil {
		p.Problems["rate"] = capital(err.Error()) + "."
	}
	outage, err := jobs.ParseOutage(p.Outage)
	if err != nil {
		p.Problems["outage"] = capital(err.Error()) + "."
	}
	i := slices.IndexFunc(policies, func(policy jobs.Policy) bool { return policyValue(policy) == p.Policy })
	if i < 0 {
		p.Problems["policy"] = "There is no such policy."
	}
	if len(p.Problems) == 0 {
		fillForecast(&p, policies[i], jobs.Load{PerSecond: rate, Outage: outage}, now)
	}
	return p
}

func fillForecast(p *views.ForecastProps, policy jobs.Policy, l jobs.Load, now time.Time) {
	f := policy.Forecast(l)
	step := max(1, (len(f.Retries)+outageBars-1)/outageBars)
	title := "Attempts per minute"
	if step > 1 {
		title = fmt.Sprintf("Attempts per minute, the most in each %d minutes", step)
	}
	p.Bars = views.Bars{ID: "forecast-bars", Title: title, From: "the outage begins", To: "drained",
		Series: []views.Series{{Name: "first tries", Tone: views.Info}, {Name: "retries", Tone: views.Warn}}}
	for m := 0; m < len(f.Retries); m += step {
		end := min(m+step, len(f.Retries))
		p.Bars.Buckets = append(p.Bars.Buckets, views.Bucket{At: now.Add(time.Duration(m) * time.Minute), Values: []int{highest(f.FirstTries[m:end]), highest(f.Retries[m:end])}})
	}
	p.Facts = []views.Fact{
		{Label: "Peak", Value: fmt.Sprintf("%.0f attempts a minute, %s after it begins", f.Peak, longTime(f.PeakAt))},
		{Label: "Workers needed", Value: fmt.Sprintf("%d, when each attempt lasts the %s that the policy allows", f.WorkersNeeded, longTime(policy.Timeout.Total))},
		{Label: "Waiting at its end", Value: fmt.Sprintf("%.0f tasks", f.Waiting)},
		{Label: "Given up in it", Value: fmt.Sprintf("%.0f tasks", f.GivenUp)},
		{Label: "Drained", Value: longTime(f.Drained.Round(time.Second)) + " after the outage"},
	}
}

func highest(values []float64) int {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	return int(math.Round(most))
}
