package jobs

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func steps(p Policy, answers ...Answer) []string {
	var out []string
	for _, s := range Simulate(p, 7, answers, created) {
		line := fmt.Sprintf("%d at %s: %s, %s", s.Attempt, s.StartedAt.Sub(created), s.Decision.Verdict, s.Decision.Reason)
		if !s.Decision.NextAttemptAt.IsZero() {
			line += " until " + s.Decision.NextAttemptAt.Sub(created).String()
		}
		out = append(out, line)
	}
	return out
}

func simulated() Policy {
	p := plainPolicy()
	p.Kind = kindDeliver
	p.Classes = map[string]Action{"http.4xx": ActionDiscard, "http.410": ActionGone, "http.429": ActionSnooze, "http.503": ActionSnooze,
		"endpoint_disabled": ActionCancel, "blocked": ActionDiscard}
	return p
}

func TestSimulate(t *testing.T) {
	t.Parallel()
	down := Answer{Class: "http.500"}
	for _, test := range []struct {
		name    string
		answers []Answer
		want    []string
	}{
		{"nothing", nil, nil},
		{"delivered at once", []Answer{{Class: "http.204"}, down}, []string{"1 at 0s: accepted, accepted"}},
		{"down for good", []Answer{down, {Class: "timeout", Took: 10 * time.Second}, down, down}, []string{
			"1 at 0s: retry_scheduled, failed until 10s",
			"2 at 10s: retry_scheduled, failed until 1m20s",
			"3 at 1m20s: permanent_failure, attempts_exhausted"}},
		{"recovers", []Answer{down, {Class: "success"}}, []string{
			"1 at 0s: retry_scheduled, failed until 10s",
			"2 at 10s: accepted, accepted"}},
		{"throttled", []Answer{{Class: "http.429", RetryAfter: "0"}, {Class: "http.503", RetryAfter: "0"}, {Class: "http.503"}, {Class: "http.429", RetryAfter: "0"}}, []string{
			"1 at 0s: snoozed, retry_after until 1s",
			"1 at 1s: snoozed, retry_after until 3s",
			"1 at 3s: retry_scheduled, failed until 13s",
			"2 at 13s: snoozed, retry_after until 14s"}},
		{"a date is read when it arrives", []Answer{{Class: "http.429", RetryAfter: "Sun, 01 Mar 2026 12:05:00 GMT", Took: time.Minute}}, []string{
			"1 at 0s: snoozed, retry_after until 5m0s"}},
		{"gone", []Answer{{Class: "http.410"}, down}, []string{"1 at 0s: permanent_failure, gone"}},
		{"rejected", []Answer{{Class: "http.422"}}, []string{"1 at 0s: permanent_failure, rejected"}},
		{"blocked", []Answer{{Class: "blocked"}}, []string{"1 at 0s: permanent_failure, blocked"}},
		{"disabled", []Answer{down, {Class: "endpoint_disabled"}}, []string{
			"1 at 0s: retry_scheduled, failed until 10s",
			"2 at 10s: cancelled, endpoint_disabled"}},
		{"cancelled by a person", []Answer{{Class: "http.500", Cancelled: true}}, []string{"1 at 0s: cancelled, cancelled"}},
		{"a manual retry does not wait", []Answer{down, {Class: "http.500", Manual: true}}, []string{
			"1 at 0s: retry_scheduled, failed until 10s",
			"2 at 0s: retry_scheduled, failed until 1m0s"}},
		{"exactly one more after exhaustion", []Answer{down, down, down, {Class: "http.500", Manual: true}, down}, []string{
			"1 at 0s: retry_scheduled, failed until 10s",
			"2 at 10s: retry_scheduled, failed until 1m10s",
			"3 at 1m10s: permanent_failure, attempts_exhausted",
			"4 at 1m10s: permanent_failure, attempts_exhausted"}},
		{"which a snooze does not take away", []Answer{down, down, down, {Class: "http.429", RetryAfter: "60", Manual: true}, {Class: "http.429", RetryAfter: "60"}, down, down}, []string{
			"1 at 0s: retry_scheduled, failed until 10s",
			"2 at 10s: retry_scheduled, failed until 1m10s",
			"3 at 1m10s: permanent_failure, attempts_exhausted",
			"4 at 1m10s: snoozed, retry_after until 2m10s",
			"4 at 2m10s: snoozed, retry_after until 3m10s",
			"4 at 3m10s: permanent_failure, attempts_exhausted"}},
		{"snoozed to the horizon", []Answer{{Class: "http.429", RetryAfter: "3600"}, {Class: "http.500", Took: 23 * time.Hour}, down}, []string{
			"1 at 0s: snoozed, retry_after until 1h0m0s",
			"1 at 1h0m0s: permanent_failure, horizon"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, steps(simulated(), test.answers...)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// The simulator must show what a real task of that id would do, jitter included.
func TestSimulate_ChoosesTheWaitsOfTheRealTask(t *testing.T) {
	t.Parallel()
	p := policyOf(t, "webhook.deliver", "standard")
	answers := make([]Answer, 18)
	for i := range answers {
		answers[i].Class = "http.500"
	}
	got := Simulate(p, 42, answers, created)
	if len(got) != 18 {
		t.Fatalf("%d steps, want 18", len(got))
	}
	for _, step := range got[:17] {
		if _, chosen := p.Wait(42, step.Attempt); step.Decision.Wait != chosen {
			t.Errorf("attempt %d waits %s, want %s", step.Attempt, step.Decision.Wait, chosen)
		}
	}
	if last := got[17].Decision; last.Reason != ReasonAttemptsExhausted {
		t.Errorf("the last attempt ends with %s", last.Reason)
	}
}
