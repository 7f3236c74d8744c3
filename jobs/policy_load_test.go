package jobs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// load reads a document as an override file and answers the set and what the error says, without the file's directory.
func load(t *testing.T, yaml string) (*PolicySet, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := LoadPolicies(file)
	if err != nil {
		return set, strings.ReplaceAll(err.Error(), filepath.Dir(file)+"/", "")
	}
	return set, ""
}

func TestLoadPolicies_RefusesWithFileLineAndSentence(t *testing.T) {
	t.Parallel()
	const head = "kind: webhook.deliver\nattempts: 3\n"

	for _, test := range []struct{ name, yaml, want string }{
		{"unknown key", head + "waits: [5s]\nretries: 4\n",
			`own.yaml:4: a policy has no key "retries"; its keys are attempts, backoff, classes, disable_endpoint, horizon, jitter, kind, profile, projects, retry_after, timeout, waits.`},
		{"unknown key below", head + "waits: [5s]\ntimeout:\n  total: 10s\n  read: 3s\n", `own.yaml:6: timeout has no key "read"; its keys are connect, total.`},
		{"negative wait", head + "waits:\n  - 5s\n  - -1s\n", "own.yaml:5: waits.1 is -1s: it must not be negative."},
		{"wait without unit", head + "waits: [5s,\n  10]\n", `own.yaml:4: waits.1 is "10": it must be a duration with its unit, such as 30s, 5m or 10h.`},
		{"wait finer than a millisecond", head + "waits: [1500us]\n", "own.yaml:3: a wait is no whole number of milliseconds."},
		{"wait too long", head + "waits: [9000h]\n", "own.yaml:3: a wait is longer than 366 days."},
		{"no wait in the list", head + "waits: []\n", "own.yaml:3: waits must be a list of at least one value."},
		{"jitter over 100 %", head + "waits: [5s]\njitter: 101%\n", "own.yaml:4: jitter is over 100 %: a wait could become negative."},
		{"negative jitter", head + "waits: [5s]\njitter: -1%\n", "own.yaml:4: jitter is negative."},
		{"jitter without its sign", head + "waits: [5s]\njitter: 0.1\n", `own.yaml:4: jitter is "0.1": it must be full or a percentage, such as 10%.`},
		{"horizon shorter than the first wait", head + "horizon: 4s\nwaits: [5s]\n",
			"own.yaml:3: the horizon of 4s is shorter than the first wait of 5s: nothing would ever be retried."},
		{"horizon shorter than the base", head + "horizon: 4s\nbackoff: {base: 5s, factor: 2}\n",
			"own.yaml:3: the horizon of 4s is shorter than the first wait of 5s: nothing would ever be retried."},
		{"no horizon", head + "horizon: 0s\nwaits: [5s]\n", "own.yaml:3: horizon is 0s: it must be at least 1ms."},
		{"no attempt", "kind: webhook.deliver\nattempts: 0\nwaits: [5s]\n", "own.yaml:2: attempts is 0: it must be at least 1."},
		{"too many attempts", "kind: webhook.deliver\nattempts: 1001\nwaits: [5s]\n", "own.yaml:2: attempts is 1001: it must be from 1 to 1000."},
		{"attempts in words", "kind: webhook.deliver\nattempts: three\nwaits: [5s]\n", `own.yaml:2: attempts is "three": it must be a whole number.`},
		{"attempts left out", "\n\nkind: webhook.deliver\nwaits: [5s]\n", "own.yaml:3: a policy has no attempts."},
		{"kind left out", "attempts: 1\n", "own.yaml:1: a policy has no kind."},
		{"waits and backoff", head + "waits: [5s]\nbackoff: {base: 1s, factor: 2}\n", "own.yaml:4: waits and backoff are both given: a policy has one of them."},
		{"neither of them", head, "own.yaml:2: 3 attempts need waits between them: give waits or backoff."},
		{"factor below 1", head + "backoff:\n  base: 1s\n  factor: 0.5\n", "own.yaml:5: factor is 0.5: it must be at least 1, or waits would shrink."},
		{"factor without end", head + "backoff: {base: 1s, factor: 1" + strings.Repeat("0", 400) + "}\n", "own.yaml:3: factor is +Inf: it must be at least 1, or waits would shrink."},
		{"factor in words", head + "backoff: {base: 1s, factor: .inf}\n", `own.yaml:3: backoff.factor is "": it must be a number, such as 2 or 1.5.`},
		{"no factor", head + "backoff: {base: 1s}\n", "own.yaml:3: backoff has no factor."},
		{"cap below base", head + "backoff: {base: 10s, factor: 2, cap: 5s}\n", "own.yaml:3: the cap of 5s is shorter than the base of 10s."},
		{"backoff without end", "kind: webhook.deliver\nattempts: 60\nbackoff: {base: 1s, factor: 2}\n",
			"own.yaml:3: the wait grows to more than 366 days: give it a cap."},
		{"connect longer than total", head + "waits: [5s]\ntimeout: {total: 2s, connect: 3s}\n", "own.yaml:4: connect of 3s is longer than the total of 2s."},
		{"connect longer than the usual total", head + "waits: [5s]\ntimeout: {connect: 31s}\n", "own.yaml:4: connect of 31s is longer than the total of 30s."},
		{"no timeout", head + "waits: [5s]\ntimeout: {total: 0s}\n", "own.yaml:4: timeout.total is 0s: it must be at least 1ms."},
		{"cap of nothing", head + "waits: [5s]\nretry_after: {cap: 0s}\n", "own.yaml:4: retry_after.cap is 0s: it must be at least 1s."},
		{"unknown action", head + "waits: [5s]\nclasses:\n  http.4xx: discard\n  http.418: teapot\n",
			`own.yaml:6: "teapot" is no action: write retry, discard, snooze, gone or cancel.`},
		{"unknown class", head + "waits: [5s]\nclasses: {http.4x: retry}\n",
			`own.yaml:4: "http.4x" is no class of answers: write http.410, http.4xx, blocked, configuration or endpoint_disabled.`},
		{"class without action", head + "waits: [5s]\nclasses:\n  http.4xx:\n", "own.yaml:5: classes.http.4xx must be text."},
		{"unknown kind", "kind: webhook.delivery\nattempts: 1\n",
			`own.yaml:1: no task is of kind "webhook.delivery"; the kinds are access_request.approval_mail, corpus.index, corpus.reindex, order.notification, owner.email_confirmation, owner.notify, periodic, supplier.invoke, task.bulk, webhook.deliver, webhook.fanout, webhook.redeliver.`},
		{"profile that nobody asks for", "kind: corpus.index\nprofile: fast\nattempts: 1\n",
			`own.yaml:2: kind corpus.index has no profile "fast", only standard; new ones are for webhook.deliver alone.`},
		{"profile that is no word", "kind: webhook.deliver\nprofile: Very Fast\nattempts: 1\n",
			`own.yaml:2: "Very Fast" is no profile: write a lower-case word of at most 32 letters.`},
		{"kind that is no word", "kind: Webhook\nattempts: 1\n",
			`own.yaml:1: "Webhook" is no kind: write lower-case words joined by dots, such as webhook.deliver.`},
		{"the same twice", head + "waits: [5s]\n---\n" + head + "waits: [6s]\n",
			"own.yaml:5: kind webhook.deliver, profile standard already has a document at line 1."},
		{"the same project twice", head + "waits: [5s]\nprojects: [project_a, project_b]\n---\n" + head + "waits: [6s]\nprojects: [project_b]\n",
			"own.yaml:6: kind webhook.deliver, profile standard of project_b already has a document at line 1."},
		{"a project twice in one", head + "waits: [5s]\nprojects: [project_b, project_a,\n  project_b]\n", "own.yaml:5: project_b is named twice."},
		{"no project", head + "waits: [5s]\nprojects: [acme]\n", `own.yaml:4: "acme" is no project: write its id, project_ and letters and digits.`},
		{"project of another kind", "kind: corpus.index\nattempts: 1\nprojects: [project_a]\n", "own.yaml:3: only a policy of webhook.deliver may be for single projects."},
		{"endpoint of another kind", "kind: corpus.index\nattempts: 1\ndisable_endpoint: {failures_in_a_row: 3}\n", "own.yaml:3: only webhook.deliver has an endpoint to disable."},
		{"no failure in a row", head + "waits: [5s]\ndisable_endpoint: {failures_in_a_row: 0}\n", "own.yaml:4: disable_endpoint.failures_in_a_row is 0: it must be at least 1."},
		{"a key twice", head + "attempts: 4\n", `own.yaml:3: mapping key "attempts" already defined at [2:1].`},
		{"no YAML", "kind: [\n", "own.yaml:1: sequence end token ']' not found."},
		{"a list", "- kind: periodic\n", "own.yaml:1: a policy must be keys and values."},
		{"an alias", "kind: periodic\nattempts: &n 1\n", `own.yaml:2: attempts is "": it must be a whole number.`},
		{"an empty document", head + "waits: [5s]\n---\n# nothing\n---\nkind: periodic\nattempts: 1\n",
			"own.yaml:4: nothing follows this line before the next document: take it out."},
		{"null", "kind:\nattempts: 1\n", "own.yaml:1: kind must be text."},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			set, got := load(t, test.yaml)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if set != nil {
				t.Error("a set is answered all the same")
			}
		})
	}
}

func TestLoadPolicies_ReportsAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, got := load(t, "kind: webhook.deliver\nattempts: 0\nwaits: [-1s]\n---\nkind: nothing\nattempts: 1\n---\nkind: periodic\nattempts: 1\njitter: 200%\n")
	want := []string{"own.yaml:2:", "own.yaml:3:", "own.yaml:5:", "own.yaml:10:"}
	for _, at := range want {
		if strings.Count(got, at) != 1 {
			t.Errorf("%s is not reported once in:\n%s", at, got)
		}
	}
	if strings.Count(got, "\n") != len(want)-1 {
		t.Errorf("want %d faults, got:\n%s", len(want), got)
	}
}

func TestLoadPolicies_FaultsHaveTheirLine(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(file, []byte("kind: periodic\nattempts: 1\ncolour: red\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LoadPolicies(file)
	var fault *PolicyError
	if !errors.As(err, &fault) || fault.File != file || fault.Line != 3 {
		t.Errorf("the fault is %+v of %v", fault, err)
	}
}

func TestLoadPolicies_MissingFileIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := LoadPolicies(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
}

func TestLoadPolicies_DocumentTakesThePlaceOfTheShippedOne(t *testing.T) {
	t.Parallel()
	set, fault := load(t, "# ours\nkind: webhook.deliver\nprofile: compact\nattempts: 2\nwaits: [1s]\njitter: 0%\n--- # theirs\nkind: periodic\nattempts: 2\nbackoff: {base: 1s, factor: 1.5}\n")
	if fault != "" {
		t.Fatal(fault)
	}
	if len(set.All()) != len(shipped(t).All()) {
		t.Errorf("there are %d policies, shipped are %d", len(set.All()), len(shipped(t).All()))
	}
	compact, _ := set.For("webhook.deliver", "compact")
	if diff := cmp.Diff([]time.Duration{time.Second}, compact.Waits); diff != "" || compact.Attempts != 2 {
		t.Errorf("compact has %d attempts, waits %v", compact.Attempts, compact.Waits)
	}
	if compact.Action("http.503") != ActionSnooze || compact.Action("blocked") != ActionDiscard || compact.RetryAfterCap != 10*time.Hour {
		t.Errorf("defaults are not filled in: %+v", compact)
	}
	periodic, _ := set.For("periodic", "")
	if periodic.Attempts != 2 || periodic.BaseWait(3) != 2250*time.Millisecond {
		t.Errorf("periodic has %d attempts, third wait %s", periodic.Attempts, periodic.BaseWait(3))
	}
	standard, _ := set.For("webhook.deliver", "standard")
	if diff := cmp.Diff(policyOf(t, "webhook.deliver", "standard"), standard); diff != "" {
		t.Errorf("standard changed: %s", diff)
	}
}

func TestLoadPolicies_ProjectsHaveTheirOwn(t *testing.T) {
	t.Parallel()
	const body = "kind: webhook.deliver\nattempts: 2\nwaits: [1s]\n"
	set, fault := load(t, body+"profile: fast\n---\n"+body+"projects: [project_b, project_a]\n---\n"+body+"profile: secret\nprojects: [project_a]\n")
	if fault != "" {
		t.Fatal(fault)
	}
	for _, test := range []struct {
		profile, project string
		attempts         int
	}{
		{"standard", "", 18},
		{"standard", "project_c", 18},
		{"standard", "project_a", 2},
		{"", "project_b", 2},
		{"compact", "project_a", 9},
		{"fast", "", 2},
		{"fast", "project_a", 2},
		{"secret", "project_a", 2},
		{"secret", "project_b", 0},
		{"secret", "", 0},
		{"none", "project_a", 0},
	} {
		p, ok := set.ForProject("webhook.deliver", test.profile, test.project)
		if p.Attempts != test.attempts || ok != (test.attempts > 0) {
			t.Errorf("profile %q of project %q has %d attempts, %v; want %d", test.profile, test.project, p.Attempts, ok, test.attempts)
		}
	}
	for project, want := range map[string][]string{
		"project_a": {"compact", "fast", "secret", "standard"},
		"project_b": {"compact", "fast", "standard"},
	} {
		if diff := cmp.Diff(want, set.Profiles("webhook.deliver", project)); diff != "" {
			t.Errorf("profiles of %s: %s", project, diff)
		}
	}
}

func FuzzPolicyDocuments(f *testing.F) {
	for _, p := range shipped(f).All() {
		f.Add([]byte(p.YAML()))
	}
	f.Add([]byte("%YAML 1.2\n---\nkind: periodic\nattempts: 1\n...\n---\n- 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		documents, err := readDocuments("f", data)
		for _, d := range documents {
			back, err := readDocuments("g", []byte(d.YAML()))
			if err != nil || len(back) != 1 {
				t.Fatalf("%q does not read back: %v", d.YAML(), err)
			}
			if diff := cmp.Diff(d.Policy, back[0].Policy); diff != "" {
				t.Errorf("%q reads back as another policy: %s", d.YAML(), diff)
			}
			for attempt := range 3 {
				if base, chosen := d.Wait(1, attempt); base < 0 || chosen < 0 {
					t.Errorf("attempt %d waits %s, %s", attempt, base, chosen)
				}
			}
		}
		if err != nil && !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("the error names no line: %v", err)
		}
	})
}
