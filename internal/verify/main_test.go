package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRun_ReportsEachBrokenRuleOnce(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), "testdata/broken", &stdout, &stderr); status != 1 {
		t.Errorf("status %d, want 1; stderr: %s", status, &stderr)
	}
	var got []string
	for line := range strings.Lines(stdout.String()) {
		// Place and rule; the sentences are the business of each check.
		parts := strings.SplitN(line, ": ", 3)
		if len(parts) != 3 || !strings.HasSuffix(line, "\n") {
			t.Fatalf("line %q is not \"file:line: rule: sentence\"", line)
		}
		got = append(got, parts[0]+" "+parts[1])
	}
	want := []string{
		"CHANGELOG.md:1 tree/changelog",
		"docs/architecture.md:3 tree/architecture",
		"internal/unlisted/unlisted.go:2 imports/table",
		"jobs/job.go:4 imports/direction",
		"jobs/job.go:7 load",
		"views/page.go:4 doccomment/exported",
		"webhooks/send.go:1 doccomment/package",
		"webhooks/send.go:14 boundary/environment",
		"webhooks/send.go:14 retryowner/http-client",
		"webhooks/send.go:17 retryowner/retry-loop",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestRun_SaysNothingOfASoundModule(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), "testdata/sound", &stdout, &stderr); status != 0 {
		t.Errorf("status %d, want 0", status)
	}
	if stdout.Len()+stderr.Len() > 0 {
		t.Errorf("stdout: %s\nstderr: %s", &stdout, &stderr)
	}
}

func TestRun_OutsideAModuleItCannotLook(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	if status := run(t.Context(), t.TempDir(), &stdout, &stderr); status != 2 {
		t.Errorf("status %d, want 2; stdout: %s", status, &stdout)
	}
	if stderr.Len() == 0 {
		t.Error("it does not say why")
	}
}
