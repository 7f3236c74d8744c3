package web_test

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/tenant"
)

// note writes an entry into a project's log.
func (p *panel) note(project tenant.Project, actor tenant.Actor, action, kind, id string, detail any) {
	p.t.Helper()
	if err := tenant.Audit(p.ctx, p.pool, actor.In(project.ID), action, kind, id, detail); err != nil {
		p.t.Fatal(err)
	}
}

// whats are the actions that the page lists, in its order.
func whats(page *page) []string {
	var all []string
	for _, row := range find(page.doc, "tr") {
		if cells := find(row, "td"); len(cells) == 4 {
			what := cells[2]
			for n := range what.Descendants() {
				if strings.Contains(attr(n, "class"), "only-s") { // It stands in the next column too, where there is one.
					what.RemoveChild(n)
					break
				}
			}
			all = append(all, text(what))
		}
	}
	return all
}

func TestAudit_TellsWhoDidWhatToWhom(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	b.submit(b.open("/p/"+p.ours.ID+"/team"), p.memberForm("viewer", "role"), url.Values{"role": {"on-call"}})
	b.submit(b.open("/p/"+p.ours.ID+"/settings"), "/p/"+p.ours.ID+"/settings", url.Values{"name": {"Acme Shops"}})
	b.submit(b.open("/p/"+p.ours.ID+"/settings"), "/p/"+p.ours.ID+"/settings", url.Values{"profile": {"compact"}})
	got := whats(b.open("/p/" + p.ours.ID + "/audit"))
	want := []string{
		"chose a profile from standard to compact",
		"renamed the project from Acme Market to Acme Shops",
		"changed a role viewer@example.com, from viewer to on-call",
	}
	if diff := cmp.Diff(want, got[:min(3, len(got))]); diff != "" {
		t.Errorf("what was done (-want +got):\n%s", diff)
	}
	theirs := p.as("stranger").open("/p/" + p.theirs.ID + "/audit")
	if theirs.says("viewer@example.com") || theirs.says("Acme") {
		t.Error("the log of another project shows ours")
	}
}

func TestAudit_IsFilteredAndPaged(t *testing.T) {
	t.Parallel()
	p := setup(t)
	owner := p.ownerOf(p.ours)
	for n := range 60 {
		p.note(p.ours, owner, "task.retry", "task", fmt.Sprint(1000+n), nil)
	}
	p.note(p.ours, tenant.System("endpoint health"), "endpoint.disable", "endpoint", "endpoint_7", map[string]any{"detail": "20 failures in a row"})
	b := p.as("viewer")
	audit := "/p/" + p.ours.ID + "/audit"

	first := b.open(audit)
	if n := len(whats(first)); n != 50 {
		t.Fatalf("%d rows, want 50", n)
	}
	older := b.open(first.leads("Older"))
	if n := len(whats(older)); n < 11 {
		t.Errorf("the next page has %d rows, want the rest", n)
	}
	if diff := cmp.Diff(whats(first), whats(b.open(older.leads("Newer")))); diff != "" {
		t.Errorf("back on the first page (-want +got):\n%s", diff)
	}
	for query, want := range map[string][]string{
		"actor=system":                                    {"disabled the endpoint 20 failures in a row"},
		"action=endpoint.disable":                         {"disabled the endpoint 20 failures in a row"},
		"q=FAILURES+in+a+row":                             {"disabled the endpoint 20 failures in a row"},
		"q=task+1007":                                     {"retried the task"},
		"actor=user%3A" + p.users["stranger"].ID:          nil,
		"actor=user%3A" + p.users["owner"].ID + "&q=1008": {"retried the task"},
	} {
		if diff := cmp.Diff(want, whats(b.open(audit+"?"+query))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestAudit_MasksAddressesForViewers(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.note(p.ours, p.ownerOf(p.ours), "member.remove", "user", "user_1", map[string]any{"email": "rui@acme.example", "role": "viewer"})
	audit := "/p/" + p.ours.ID + "/audit"
	for name, clear := range map[string]bool{"on-call": true, "viewer": false} {
		b := p.as(name)
		for _, path := range []string{audit, audit + ".csv"} {
			body := b.get(path).body
			if got := strings.Contains(body, "rui@acme.example"); got != clear {
				t.Errorf("%s: %s shows an address in clear: %t, want %t", name, path, got, clear)
			}
			if got := strings.Contains(body, "owner@example.com"); got != clear {
				t.Errorf("%s: %s shows the actor in clear: %t, want %t", name, path, got, clear)
			}
		}
		if got := len(whats(b.open(audit+"?q=rui@acme"))) > 0; got != clear {
			t.Errorf("%s: finds an address by searching for it: %t, want %t", name, got, clear)
		}
	}
}

func TestAuditCSV_HasEveryRowOfTheFilterAndNoFormula(t *testing.T) {
	t.Parallel()
	p := setup(t)
	owner := p.ownerOf(p.ours)
	for n := range 60 {
		p.note(p.ours, owner, "task.retry", "task", fmt.Sprint(1000+n), nil)
	}
	p.note(p.ours, owner, "endpoint.disable", "endpoint", "endpoint_7", map[string]any{"detail": `=HYPERLINK("https://evil.example")`})
	b := p.as("owner")
	answer := b.get("/p/" + p.ours.ID + "/audit.csv?action=task.retry")
	if answer.status != http.StatusOK || answer.header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.Contains(answer.header.Get("Content-Disposition"), "audit.csv") {
		t.Fatalf("status %d, type %q, want a CSV file", answer.status, answer.header.Get("Content-Type"))
	}
	rows, err := csv.NewReader(strings.NewReader(answer.body)).ReadAll()
	if err != nil || len(rows) != 61 {
		t.Fatalf("%d rows, %v, want a head and 60", len(rows), err)
	}
	all, err := csv.NewReader(strings.NewReader(b.get("/p/" + p.ours.ID + "/audit.csv").body)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := all[1][len(all[1])-1]; got != `'=HYPERLINK("https://evil.example")` {
		t.Errorf("the reason is %q, want it quoted against spreadsheets", got)
	}
}

// leads is where the page's link with this text leads.
func (p *page) leads(label string) string {
	p.t.Helper()
	for _, a := range find(p.doc, "a") {
		if text(a) == label {
			return attr(a, "href")
		}
	}
	p.t.Fatalf("the page %q has no link %q", p.heading(), label)
	return ""
}
