package jobs

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var updatePolicies = flag.Bool("update-policies", false, "write testdata/policies.golden anew")

// Every shipped policy in full, with its schedule: a change of any of them is a visible difference, and a new version.
func TestPolicy_ShippedOnesAreAsPublished(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, p := range shipped(t).All() {
		fmt.Fprintf(&out, "%s\nsha256: %x\n", p.YAML(), p.Hash)
		var total time.Duration
		for attempt := 1; attempt < p.Attempts; attempt++ {
			base := p.BaseWait(attempt)
			least, most := p.WaitBounds(attempt)
			total += base
			fmt.Fprintf(&out, "after %2d: %s (%s to %s), in all %s\n", attempt, shortDuration(base), shortDuration(least), shortDuration(most), shortDuration(total))
		}
		out.WriteString("\n")
	}
	const golden = "testdata/policies.golden"
	if *updatePolicies {
		if err := os.WriteFile(golden, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("shipped policies differ from %s (go test -update-policies writes it anew): -want +got\n%s", golden, diff)
	}
}

// The values of the table in the design, written down once more.
func TestPolicy_ShippedValues(t *testing.T) {
	t.Parallel()
	doubling := &Backoff{Base: time.Second, Factor: 2, Cap: 15 * time.Minute}
	tenth := Jitter{Fraction: 0.1}
	half := 30 * time.Second
	mail := func(kind, profile string, total time.Duration) Policy {
		return Policy{Kind: kind, Profile: profile, Attempts: 8, Backoff: &Backoff{Base: 20 * time.Second, Factor: 3}, Jitter: tenth,
			Timeout: Timeout{Total: total}, Horizon: 24 * time.Hour}
	}
	own := func(kind string, total time.Duration) Policy {
		return Policy{Kind: kind, Profile: "standard", Attempts: 10, Backoff: doubling, Jitter: tenth, Timeout: Timeout{Total: total}}
	}
	h, m, s := time.Hour, time.Minute, time.Second
	want := []Policy{
		mail("access_request.approval_mail", "smtp", 5*m),
		mail("access_request.approval_mail", "standard", half),
		own("corpus.index", half),
		own("corpus.reindex", 10*m),
		{Kind: "order.notification", Profile: "standard", Attempts: 6, Backoff: &Backoff{Base: 5 * s, Factor: 2, Cap: 5 * m},
			Jitter: Jitter{Full: true}, Timeout: Timeout{Total: half}, Horizon: 15 * m},
		mail("owner.email_confirmation", "smtp", 5*m),
		mail("owner.email_confirmation", "standard", half),
		mail("owner.notify", "smtp", 5*m),
		mail("owner.notify", "standard", half),
		{Kind: "periodic", Profile: "standard", Attempts: 1, Timeout: Timeout{Total: 10 * m}},
		own("supplier.invoke", half),
		own("task.bulk", half),
		{Kind: "webhook.deliver", Profile: "compact", Attempts: 9, Waits: []time.Duration{30 * s, 2 * m, 10 * m, 30 * m, 2 * h, 6 * h, 12 * h, 24 * h},
			Jitter: Jitter{Fraction: 0.2}, Timeout: Timeout{Total: 10 * s, Connect: 3 * s}, Horizon: 72 * h, Disable: DisableRule{FailuresInARow: 20}},
		{Kind: "webhook.deliver", Profile: "standard", Attempts: 18, Waits: []time.Duration{5 * s, 5 * m, 30 * m, 2 * h, 5 * h, 10 * h},
			Jitter: tenth, Timeout: Timeout{Total: 10 * s, Connect: 3 * s}, Horizon: 168 * h, Disable: DisableRule{FailingFor: 120 * h}},
		own("webhook.fanout", half),
		own("webhook.redeliver", half),
	}
	for i := range want {
		want[i].RetryAfterCap = 10 * h
	}
	ignore := cmpopts.IgnoreFields(Policy{}, "Classes", "Hash")
	if diff := cmp.Diff(want, shipped(t).All(), ignore, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestPolicy_WebhookAnswers(t *testing.T) {
	t.Parallel()
	standard, compact := policyOf(t, "webhook.deliver", "standard"), policyOf(t, "webhook.deliver", "compact")
	for _, test := range []struct {
		class             string
		standard, compact Action
	}{
		{"http.302", ActionRetry, ActionRetry},
		{"http.400", ActionDiscard, ActionRetry},
		{"http.401", ActionDiscard, ActionRetry},
		{"http.404", ActionDiscard, ActionRetry},
		{"http.408", ActionRetry, ActionRetry},
		{"http.410", ActionGone, ActionRetry},
		{"http.429", ActionSnooze, ActionSnooze},
		{"http.500", ActionRetry, ActionRetry},
		{"http.503", ActionSnooze, ActionSnooze},
		{"http.599", ActionRetry, ActionRetry},
		{"http.4", ActionRetry, ActionRetry},
		{"timeout", ActionRetry, ActionRetry},
		{"endpoint_disabled", ActionDiscard, ActionCancel},
		{"blocked", ActionDiscard, ActionDiscard},
		{"configuration", ActionDiscard, ActionDiscard},
	} {
		if got := standard.Action(test.class); got != test.standard {
			t.Errorf("standard: %s leads to %s, want %s", test.class, got, test.standard)
		}
		if got := compact.Action(test.class); got != test.compact {
			t.Errorf("compact: %s leads to %s, want %s", test.class, got, test.compact)
		}
	}
}

func TestPolicy_BaseWait(t *testing.T) {
	t.Parallel()
	listed := Policy{Waits: []time.Duration{time.Second, time.Minute}}
	tripling := Policy{Backoff: &Backoff{Base: 20 * time.Second, Factor: 3}}
	capped := Policy{Backoff: &Backoff{Base: time.Second, Factor: 2, Cap: 15 * time.Minute}}
	for _, test := range []struct {
		p       Policy
		attempt int
		want    time.Duration
	}{
		{listed, -3, time.Second},
		{listed, 0, time.Second},
		{listed, 1, time.Second},
		{listed, 2, time.Minute},
		{listed, 99, time.Minute},
		{tripling, 1, 20 * time.Second},
		{tripling, 7, 4*time.Hour + 3*time.Minute},
		{tripling, 1000, utmost},
		{capped, 10, 512 * time.Second},
		{capped, 11, 15 * time.Minute},
		{capped, 100_000, 15 * time.Minute},
		{Policy{}, 1, 0},
	} {
		if got := test.p.BaseWait(test.attempt); got != test.want {
			t.Errorf("after attempt %d: %s, want %s", test.attempt, got, test.want)
		}
	}
}

const utmost = math.MaxInt64 / time.Millisecond * time.Millisecond

func TestPolicyCanonical_IsTheDocumentThatIsHashed(t *testing.T) {
	t.Parallel()
	p := policyOf(t, "webhook.deliver", "standard")
	want := `{"attempts":18,"classes":{"blocked":"discard","configuration":"discard","endpoint_disabled":"discard","http.408":"retry","http.410":"gone","http.429":"snooze","http.4xx":"discard","http.503":"snooze"},` +
		`"disable_endpoint":{"failing_for_ms":432000000},"horizon_ms":604800000,"jitter":0.1,"kind":"webhook.deliver","profile":"standard","retry_after":{"cap_ms":36000000},` +
		`"timeout":{"connect_ms":3000,"total_ms":10000},"waits_ms":[5000,300000,1800000,7200000,18000000,36000000]}`
	if diff := cmp.Diff(want, string(p.Canonical())); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if p.Hash != sha256.Sum256([]byte(want)) {
		t.Errorf("the hash is %x", p.Hash)
	}
}

func TestPolicyCanonical_ReadsBackAsTheSamePolicy(t *testing.T) {
	t.Parallel()
	for _, p := range shipped(t).All() {
		back, err := ParseCanonical(p.Canonical())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s/%s: %s", p.Kind, p.Profile, diff)
		}
	}
}

func TestPolicyCanonical_RefusesAnyOtherForm(t *testing.T) {
	t.Parallel()
	document := string(policyOf(t, "periodic", "standard").Canonical())
	for name, changed := range map[string]string{
		"a blank":            strings.Replace(document, ":", ": ", 1),
		"an unknown member":  strings.Replace(document, "{", `{"a":1,`, 1),
		"no JSON":            document[1:],
		"a jitter of a word": strings.Replace(document, `"jitter":0`, `"jitter":"some"`, 1),
		"no jitter":          strings.Replace(document, `"jitter":0,`, ``, 1),
	} {
		if changed == document {
			t.Fatalf("%s: the document was not changed", name)
		}
		if _, err := ParseCanonical([]byte(changed)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestPolicyYAML_ReadsBackAsTheSamePolicy(t *testing.T) {
	t.Parallel()
	policies := shipped(t).All()
	odd := policyOf(t, "webhook.deliver", "standard")
	odd.Profile, odd.Projects, odd.Jitter = "odd", []string{"project_a", "project_b"}, Jitter{Fraction: 0.07125}
	odd.Waits = []time.Duration{0, 90 * time.Minute, 1500 * time.Millisecond, time.Hour + time.Second}
	odd.Disable = DisableRule{FailingFor: time.Hour, FailuresInARow: 3}
	for _, p := range append(policies, odd.sealed()) {
		documents, err := readDocuments("show", []byte(p.YAML()))
		if err != nil || len(documents) != 1 {
			t.Fatalf("%s\n%v", p.YAML(), err)
		}
		if diff := cmp.Diff(p, documents[0].Policy, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s/%s: %s", p.Kind, p.Profile, diff)
		}
	}
}

func TestPolicyDiff_ListsEachChangedLine(t *testing.T) {
	t.Parallel()
	a := policyOf(t, "webhook.deliver", "standard")
	if changes := Diff(a, a); len(changes) != 0 {
		t.Errorf("a policy differs from itself: %v", changes)
	}
	b := a
	b.Attempts, b.Horizon, b.Timeout.Connect, b.Projects = 5, 0, time.Second, []string{"project_a"}
	b.Classes = map[string]Action{"http.4xx": ActionRetry, "http.429": ActionSnooze}
	var got []string
	for _, change := range Diff(a, b) {
		got = append(got, change.String())
	}
	want := []string{
		"~ attempts: 18 -> 5",
		"~ timeout: {total: 10s, connect: 3s} -> {total: 10s, connect: 1s}",
		"- horizon: 168h",
		"- classes.blocked: discard",
		"- classes.configuration: discard",
		"- classes.endpoint_disabled: discard",
		"- classes.http.408: retry",
		"- classes.http.410: gone",
		"~ classes.http.4xx: discard -> retry",
		"- classes.http.503: snooze",
		"+ projects: [project_a]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestPolicySet_RefusesTwoOfOneKindAndInvalidOnes(t *testing.T) {
	t.Parallel()
	one := Policy{Kind: "a.b", Attempts: 1}
	if _, err := NewPolicySet(one, Policy{Kind: "c", Attempts: 1}); err != nil {
		t.Fatal(err)
	}
	for _, policies := range [][]Policy{
		{one, one},
		{{Kind: "a.b"}},
		{{Kind: "a.b", Attempts: 2, Waits: []time.Duration{-1}}},
		{{Kind: "webhook.deliver", Attempts: 1, Projects: []string{"project_a"}}, {Kind: "webhook.deliver", Attempts: 1, Projects: []string{"project_a"}}},
	} {
		if _, err := NewPolicySet(policies...); err == nil {
			t.Errorf("%v is taken", policies)
		}
	}
}
