package webhooks

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"entrega/internal/egress"
	"entrega/jobs"
)

func policyOf(t *testing.T, profile string) jobs.Policy {
	t.Helper()
	policies, err := jobs.LoadPolicies("")
	if err != nil {
		t.Fatal(err)
	}
	p, ok := policies.For(Deliver.Name, profile)
	if !ok {
		t.Fatalf("no policy for profile %s", profile)
	}
	return p
}

// answered is an HTTP answer as the door gives it.
func answered(status int, retryAfter string) *egress.Response {
	resp := &egress.Response{Status: status, Header: http.Header{}, FinishedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	if retryAfter != "" {
		resp.Header.Set("Retry-After", retryAfter)
	}
	return resp
}

// failed is an attempt without an answer.
func failed(typ egress.ErrorType, phase egress.Phase) *egress.Response {
	return &egress.Response{Failure: &egress.Failure{Type: typ, Phase: phase, Err: context.Canceled, Sentence: "It failed."}}
}

// outcomeWord reads an outcome as a word: done, retry, snooze, discard or cancel, with its reason.
func outcomeWord(err error) string {
	class, reason, _ := jobs.ClassOf(err)
	if reason != "" {
		return string(class) + " " + reason
	}
	return string(class)
}

func TestOutcome_HTTPAnswersToAWebhook(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name              string
		resp              *egress.Response
		class             string
		standard, compact string
	}{
		{"200", answered(200, ""), "success", "success", "success"},
		{"299", answered(299, ""), "success", "success", "success"},
		{"204 with Retry-After", answered(204, "5"), "success", "success", "success"},
		{"301", answered(301, ""), "redirect", "retry", "retry"},
		{"302", answered(302, ""), "redirect", "retry", "retry"},
		{"304", answered(304, ""), "redirect", "retry", "retry"},
		{"400", answered(400, ""), "client", "discard rejected", "retry"},
		{"401", answered(401, ""), "client", "discard rejected", "retry"},
		{"403", answered(403, ""), "client", "discard rejected", "retry"},
		{"404", answered(404, ""), "client", "discard rejected", "retry"},
		{"408", answered(408, ""), "client", "retry", "retry"},
		{"410", answered(410, ""), "client", "discard gone", "retry"},
		{"413", answered(413, ""), "client", "discard rejected", "retry"},
		{"429 with seconds", answered(429, "2"), "throttle", "snooze retry_after", "snooze retry_after"},
		{"429 with a date", answered(429, "Sun, 01 Mar 2026 12:00:09 GMT"), "throttle", "snooze retry_after", "snooze retry_after"},
		{"429 without", answered(429, ""), "throttle", "retry", "retry"},
		{"429 with nonsense", answered(429, "soon"), "throttle", "retry", "retry"},
		{"500", answered(500, ""), "server", "retry", "retry"},
		{"500 with Retry-After", answered(500, "2"), "server", "retry", "retry"},
		{"502", answered(502, ""), "server", "retry", "retry"},
		{"503 with seconds", answered(503, "2"), "throttle", "snooze retry_after", "snooze retry_after"},
		{"503 without", answered(503, ""), "server", "retry", "retry"},
		{"503 with nonsense", answered(503, "-1"), "server", "retry", "retry"},
		{"599", answered(599, ""), "server", "retry", "retry"},
		{"refused by the guard", failed(egress.BlockedByPolicy, ""), "policy", "discard blocked", "discard blocked"},
		{"bad header", failed(egress.ConfigurationError, ""), "policy", "discard configuration", "discard configuration"},
		{"no such name", failed(egress.DnsFailure, egress.PhaseDNS), "network", "retry", "retry"},
		{"bad certificate", failed(egress.TlsError, egress.PhaseTLS), "network", "retry", "retry"},
		{"timeout", failed(egress.Timeout, egress.PhaseHeaders), "network", "retry", "retry"},
		{"refused", failed(egress.ConnectionFailed, egress.PhaseConnect), "network", "retry", "retry"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := read(tt.resp)
			if r.responseClass != tt.class {
				t.Errorf("response class %q, want %q", r.responseClass, tt.class)
			}
			for profile, want := range map[string]string{"standard": tt.standard, "compact": tt.compact} {
				if got := outcomeWord(r.outcome(policyOf(t, profile))); got != want {
					t.Errorf("%s: %q, want %q", profile, got, want)
				}
			}
		})
	}
}

func TestOutcome_StatusDecidesEvenWhenTheBodyBrokeOff(t *testing.T) {
	t.Parallel()
	broken := &egress.Failure{Type: egress.Timeout, Phase: egress.PhaseBody, Sentence: "The body had not ended."}

	ok := answered(200, "")
	ok.BodyError = broken
	r := read(ok)
	if got := outcomeWord(r.outcome(policyOf(t, "standard"))); got != "success" || r.note == "" || r.errorType != "" {
		t.Errorf("200: %q, note %q, type %q", got, r.note, r.errorType)
	}

	gone := answered(410, "")
	gone.BodyError, gone.Failure = broken, broken
	r = read(gone)
	if got := outcomeWord(r.outcome(policyOf(t, "standard"))); got != "discard gone" {
		t.Errorf("410: %q", got)
	}
	if r.errorType != egress.Timeout || r.phase != egress.PhaseBody {
		t.Errorf("410 is recorded as %s in phase %q", r.errorType, r.phase)
	}
}

func TestOutcome_InterruptedKeepsContextCanceled(t *testing.T) {
	t.Parallel()
	err := read(failed(egress.Interrupted, egress.PhaseHeaders)).outcome(policyOf(t, "standard"))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not wrap context.Canceled", err)
	}
}

func TestPause_OnlyWhenTheReceiverNamedATimeAndWithinTheCap(t *testing.T) {
	t.Parallel()
	p := policyOf(t, "standard")
	for _, tt := range []struct {
		resp *egress.Response
		want time.Duration
	}{
		{answered(429, "2"), 2 * time.Second},
		{answered(503, "Sun, 01 Mar 2026 12:00:09 GMT"), 9 * time.Second},
		{answered(429, "9223372037"), 10 * time.Hour},
		{answered(429, "soon"), 0},
		{answered(500, "7"), 0},
		{answered(200, "7"), 0},
	} {
		if got := read(tt.resp).pause(p); got != tt.want {
			t.Errorf("%d %q: %s, want %s", tt.resp.Status, tt.resp.Header.Get("Retry-After"), got, tt.want)
		}
	}
}
