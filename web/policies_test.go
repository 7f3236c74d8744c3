package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"entrega/views"
)

func TestPolicies_SayTheShippedValues(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("viewer")
	list := text(b.open(views.PoliciesURL(p.ours.ID)).byID("main"))
	for _, want := range []string{
		"webhook.deliver standard 18", "5 s, 5 min, 30 min, 2 h, 5 h, then 10 h each ±10 % 7 days",
		"webhook.deliver compact 9", "30 s, 2 min, 10 min, 30 min, 2 h, 6 h, 12 h, 24 h ±20 % 3 days",
		"order.notification 6", "full 15 minutes", "periodic 1 the next period",
	} {
		if !strings.Contains(spacedOut(list), spacedOut(want)) {
			t.Errorf("the list lacks %q:\n%s", want, list)
		}
	}
	one := b.open(views.PolicyURL(p.ours.ID, "webhook.deliver", "compact"))
	for _, want := range []string{"failures_in_a_row: 20", "the endpoint is disabled after 20 failures in a row", "10 seconds, connect 3 seconds", "in force"} {
		if !one.says(want) {
			t.Errorf("the policy's page lacks %q", want)
		}
	}
	if got := b.get(views.PolicyURL(p.ours.ID, "webhook.deliver", "nothing")).status; got != http.StatusNotFound {
		t.Errorf("an unknown profile: status %d, want 404", got)
	}
	if got := b.get(views.PolicyURL(p.ours.ID, "corpus.index", "")).status; got != http.StatusOK {
		t.Errorf("a kind without profiles: status %d, want 200", got)
	}
}

// spacedOut leaves out what pages write between words.
func spacedOut(s string) string { return strings.NewReplacer(" ", "", "\u00a0", "").Replace(s) }

func TestPolicies_AVersionTellsWhatItChanged(t *testing.T) {
	t.Parallel()
	p := setup(t)
	shipped, _ := p.policies.For("webhook.fanout", "")
	older := strings.Replace(string(shipped.Canonical()), `"attempts":10`, `"attempts":7`, 1)
	p.exec(`insert into policy_versions (kind, profile, version, hash, document) values ('webhook.fanout', 'standard', 2, sha256($1::text::bytea), $1)`, older)
	page := p.as("owner").open(views.PolicyURL(p.ours.ID, "webhook.fanout", "") + "?version=2")
	diff := text(page.byID("diff"))
	if !strings.Contains(diff, "Version 2 against version 1") || !strings.Contains(diff, "− attempts: 10") || !strings.Contains(diff, "+ attempts: 7") {
		t.Errorf("the difference says %q", diff)
	}
}

func TestSimulation_DecidesAsTheProductDoes(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("viewer")
	ask := func(policy, outcomes string) *page {
		return b.open(views.SimulateURL(p.ours.ID, policy) + "&outcomes=" + url.QueryEscape(outcomes))
	}
	page := ask("webhook.deliver/standard", "500\r\ntimeout\r\n429 120\r\n410")
	steps := spacedOut(text(page.byID("main")))
	for _, want := range []string{"500 Internal Server Error", "429 Too Many Requests, Retry-After: 120", "ALLOWED: retry after", "2 min", "IGNORED: gone", "The task ends: the receiver is gone."} {
		if !strings.Contains(steps, spacedOut(want)) {
			t.Errorf("the simulation lacks %q: %s", want, steps)
		}
	}
	if compact := ask("webhook.deliver/compact", "410"); !compact.says("ALLOWED") {
		t.Error("in the profile compact a 410 is not retried")
	}
	if problem := text(ask("webhook.deliver/standard", "500\nnonsense "+nasty).byID("problem-outcomes")); !strings.Contains(problem, "“nonsense <script>") {
		t.Errorf("a word that is none: %q, want a sentence", problem)
	}
	if got := b.get(views.SimulateURL(p.ours.ID, "nothing") + "&outcomes=500").status; got != http.StatusNotFound {
		t.Errorf("an unknown policy: status %d, want 404", got)
	}
}

func TestPolicies_ForecastAnOutage(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b, path := p.as("viewer"), "/p/"+p.ours.ID+"/policies"
	if page := b.open(path); !page.says("What would an outage lead to?") || !page.says("order.notification") {
		t.Error("the page does not offer a forecast")
	}
	page := b.open(path + "?policy=order.notification&rate=10%2Fs&outage=10m")
	if !page.says("Workers needed") || !page.says("3600 attempts a minute") || !page.says("Attempts per minute: ") {
		t.Errorf("the forecast says %q", text(page.doc))
	}
	for query, want := range map[string]string{"rate=ten&outage=10m&policy=order.notification": "no rate", "rate=1&outage=soon&policy=order.notification": "must be a duration", "rate=1&outage=1m&policy=x": "no such policy"} {
		if page := b.open(path + "?" + query); !page.says(want) {
			t.Errorf("%s is answered %q, want that it says %q", query, page.sentences(), want)
		}
	}
}
