package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

// runHere runs a command that needs no database in this process.
func runHere(t *testing.T, getenv func(string) string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), environment{args: args, getenv: getenv, in: strings.NewReader(""), out: &out, err: &out})
	return out.String(), err
}

func TestHelp_EverywhereAndInSentences(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"serve"}, {"demo"}, {"migrate"}, {"user"}, {"user", "create"}, {"user", "password"}, {"project"}, {"project", "create"},
		{"policies"}, {"policies", "check"}, {"policies", "show"}, {"policies", "diff"}, {"policies", "simulate"}, {"evidence"}, {"evidence", "verify"},
		{"evidence", "export"}, {"doctor"}, {"version"}} {
		out, err := runHere(t, env(), append(args, "--help")...)
		if err != nil || !strings.Contains(out, "Usage:") {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}

func TestPolicies_ShowCheckDiffAndSimulate(t *testing.T) {
	t.Parallel()
	show, err := runHere(t, env(), "policies", "show", "webhook.deliver", "compact")
	if err != nil || !strings.Contains(show, "attempts: 9") {
		t.Fatal(show, err)
	}
	if _, err := runHere(t, env(), "policies", "show", "no.such"); err == nil || !strings.Contains(err.Error(), "policies show") {
		t.Fatal(err)
	}
	if out, err := runHere(t, env(), "policies", "check"); err != nil || !strings.Contains(out, "in order") {
		t.Fatal(out, err)
	}
	if _, err := runHere(t, env(), "policies", "check", "testdata/bad-policies.yaml"); err == nil || !strings.Contains(err.Error(), "bad-policies.yaml:3") {
		t.Fatal(err)
	}
	if out, err := runHere(t, env(), "policies", "diff", "testdata/policies.yaml"); err != nil || !strings.Contains(out, "webhook.deliver compact, changed") || !strings.Contains(out, "attempts") {
		t.Fatal(out, err)
	}
	out, err := runHere(t, env(), "policies", "simulate", "webhook.deliver", "--answer", "http.500", "--answer", "http.410")
	if err != nil || !strings.Contains(out, "retry_scheduled") || !strings.Contains(out, "gone") {
		t.Fatal(out, err)
	}
}

func TestServe_RefusesToLeaveOutEverything(t *testing.T) {
	t.Parallel()
	for _, without := range []string{"web,work", "panel"} {
		if _, err := runHere(t, env(), "serve", "--without", without); err == nil || !strings.Contains(err.Error(), "without: ") {
			t.Errorf("%s: %v", without, err)
		}
	}
}

func TestCommands_WorkBesideServeAndWithoutIt(t *testing.T) {
	t.Parallel()
	in := install(t)

	// Without serve: they start the private Postgres for the moment.
	out, err := in.tryCommand("", "doctor")
	if err != nil && !strings.Contains(out, "check") {
		t.Fatal(out, err)
	}
	if out := in.command("migrate"); !strings.Contains(out, "The schema is at version") {
		t.Fatal(out)
	}
	if out := in.command("user", "create", "--email", "owner@shop.example", "--admin"); !strings.Contains(out, "password") {
		t.Fatal(out)
	}
	if out := in.command("doctor"); !strings.Contains(out, "serve makes it") {
		t.Fatal(out)
	}
	if out, err := in.tryCommand("", "project", "create", "--name", "Shop", "--owner", "nobody@shop.example"); err == nil || !strings.Contains(out, "owner: nobody has the address") {
		t.Fatal(out, err)
	}
	if out, err := in.tryCommand("short\n", "user", "create", "--email", "two@shop.example", "--password-stdin"); err == nil || !strings.Contains(out, "password") {
		t.Fatal(out, err)
	}
	if out := in.command("project", "create", "--name", "Shop", "--owner", "owner@shop.example"); !strings.Contains(out, "API key") {
		t.Fatal(out)
	}

	// Beside it: the same data.
	in.start("serve")
	_, key := in.project("Beside")
	var endpoints struct{ Data []any }
	in.call(key, "GET", "/v1/endpoints", nil, &endpoints, http.StatusOK)
	if out := in.command("doctor"); strings.Contains(out, "WRONG") {
		t.Fatal(out)
	}
	if out := in.command("evidence", "verify"); !strings.Contains(out, "All chains hold") {
		t.Fatal(out)
	}
	res, err := http.Get(in.url + "/readyz")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	res.Body.Close()

	// Its data stays for the next start.
	in.stop()
	in.start("serve")
	in.call(key, "GET", "/v1/endpoints", nil, &endpoints, http.StatusOK)
}
