package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"entrega/internal/tenant"
	"entrega/webhooks"
)

func TestAdminProjects_ListsSearchesAndOpensAll(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.newThings(p.ours)
	b := p.as("admin")
	all := b.open("/admin/projects")
	if row := all.rows()[p.ours.ID]; !strings.Contains(row, "Acme Market") || !strings.Contains(row, "owner@example.com") || !strings.Contains(row, "1 disabled") || !strings.Contains(row, "just now") {
		t.Errorf("our row reads %q", row)
	}
	if row := all.rows()[p.theirs.ID]; !strings.Contains(row, "never") {
		t.Errorf("their row reads %q, want a project without events", row)
	}
	found := b.open("/admin/projects?q=oTHER").rows()
	if len(found) != 1 || found[p.theirs.ID] == "" {
		t.Errorf("the search finds %v, want the other shop", found)
	}
	if none := b.open("/admin/projects?q=nothing"); len(none.rows()) != 0 || !none.says("No project") {
		t.Error("a search for nothing finds something, or says nothing")
	}
	opened := b.open(all.leads("Acme Market"))
	if !strings.Contains(text(find(opened.doc, "title")[0]), "Acme Market") {
		t.Errorf("the row leads to %q", opened.heading())
	}
	for range 50 {
		p.newProject("Many", "owner")
	}
	first := b.open("/admin/projects?q=a")
	older := b.open(first.leads("Older"))
	if len(first.rows()) != 50 || len(older.rows()) != 1 || len(b.open(older.leads("Newer")).rows()) != 50 {
		t.Errorf("pages of %d and %d rows, want 50 and 1", len(first.rows()), len(older.rows()))
	}
}

func TestAdminProjects_CreatesForSomebody(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("admin")
	made := b.submit(b.open("/admin/projects"), "/admin/projects", url.Values{"name": {"Lumen Books"}, "owner": {"viewer@example.com"}})
	if !strings.Contains(made.flash(), "Project Lumen Books was created.") {
		t.Errorf("flash %q", made.flash())
	}
	if !p.as("viewer").open("/projects").says("Lumen Books") {
		t.Error("the owner does not find the project")
	}
	for name, form := range map[string]url.Values{
		"nobody's address": {"name": {"X"}, "owner": {"nobody@example.com"}}, "no name": {"name": {""}},
	} {
		answer := b.send(b.open("/admin/projects"), "/admin/projects", form)
		if answer.status != http.StatusUnprocessableEntity || answer.sentences() == "" {
			t.Errorf("%s: status %d (%s), want 422 with a sentence", name, answer.status, answer.sentences())
		}
	}
}

func TestAdminDisabled_ListsAndReactivatesInAnyProject(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("admin")
	if !b.open("/admin/disabled").says("No endpoint is disabled") {
		t.Error("the empty page does not say so")
	}
	e := p.newEndpoint(p.theirs, webhooks.Settings{URL: "http://127.0.0.1:9/hooks"})
	if _, err := p.endpoints.Disable(p.ctx, p.ownerOf(p.theirs), e.ID, "receiver moved"); err != nil {
		t.Fatal(err)
	}
	p.exec(`insert into missed_events (endpoint_id, event_seq, event_id, project_id) values ($1, 1, 'event_1', $2), ($1, 2, 'event_2', $2)`, e.ID, p.theirs.ID)
	page := b.open("/admin/disabled")
	if row := page.rows()[e.ID]; !strings.Contains(row, "Other Shop") || !strings.Contains(row, "receiver moved") || !strings.Contains(row, "2") {
		t.Errorf("the row reads %q", row)
	}
	action := "/admin/disabled/" + p.theirs.ID + "/" + e.ID + "/reactivate"
	done := b.submit(page, action, nil)
	if !strings.Contains(done.flash(), "is active again") || len(done.rows()) != 0 {
		t.Errorf("flash %q with %d rows, want it gone from the list", done.flash(), len(done.rows()))
	}
	late := b.post(action, url.Values{"return": {"/admin/disabled"}})
	if flash := b.open(late.location).flash(); flash == "" || late.status != http.StatusSeeOther {
		t.Errorf("twice: status %d, flash %q, want a sentence", late.status, flash)
	}
	var project, actor string
	p.scan(&project, `select project_id from audit_log where action = 'endpoint.reactivate'`)
	p.scan(&actor, `select actor_name from audit_log where action = 'endpoint.reactivate'`)
	if project != p.theirs.ID || actor != "admin@example.com" {
		t.Errorf("the audit log has it in %q by %q, want in the endpoint's project by the admin", project, actor)
	}
}

func TestAdminSystem_ShowsTheInstallationAndPausesQueues(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("admin")
	empty := b.open("/admin/system")
	if !empty.says("No node works the queues") || !empty.says("No queue yet") {
		t.Error("without a node the page does not say so")
	}
	p.start()
	p.exec(`insert into events (project_id, id, type, data) values ($1, 'event_bad', 'order.created', '{}')`, p.ours.ID)
	p.exec(`update event_outbox set poisoned_at = now()`)
	page := b.until("/admin/system", "the queues", func(page *page) bool { return page.rows()["webhook"] != "" && page.rows()["node_a"] != "" })
	if row := page.rows()["node_a"]; !strings.Contains(row, "test") {
		t.Errorf("the node's row reads %q", row)
	}
	var river, schema int
	p.scan(&schema, `select version from entrega_schema_version`)
	p.scan(&river, `select max(version) from river_migration where line = 'main'`)
	for _, want := range []string{"river_job", " others", fmt.Sprint("Schema", schema), fmt.Sprint("Schema of River", river), "Postgres", "Entregatest"} {
		if !page.says(want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if figures := text(page.live("figures")); !strings.Contains(figures, "Poisoned events 1") {
		t.Errorf("the figures read %q, want one poisoned event", figures)
	}

	paused := b.submit(page, "/admin/queues/webhook/pause", nil)
	if paused.flash() != "The queue webhook is paused on every node." || !strings.Contains(paused.rows()["webhook"], "paused") {
		t.Errorf("flash %q, row %q", paused.flash(), paused.rows()["webhook"])
	}
	resumed := b.submit(paused, "/admin/queues/webhook/resume", nil)
	if resumed.flash() != "The queue webhook goes on." || resumed.form("/admin/queues/webhook/pause") == nil {
		t.Errorf("flash %q, want it to be pausable again", resumed.flash())
	}
	if none := b.post("/admin/queues/none/pause", nil); none.status != http.StatusNotFound {
		t.Errorf("a queue that is not: status %d, want 404", none.status)
	}
}

func TestAdmin_OnlyAdminsSeeThoseSections(t *testing.T) {
	t.Parallel()
	p := setup(t)
	refused := p.as("owner").get("/admin/system")
	if refused.status != http.StatusForbidden || !refused.says("This is for admins of the installation.") {
		t.Errorf("an owner: status %d, want 403 that says who may", refused.status)
	}
	for name, want := range map[string]bool{"admin": true, "owner": false} {
		b := p.as(name)
		if got := b.open("/p/" + p.ours.ID + "/team").says("Disabled endpoints"); got != want {
			t.Errorf("%s: the navigation has the admin's pages: %t, want %t", name, got, want)
		}
	}
}

func TestAdminAudit_ShowsAllProjectsAndWhatIsOfNone(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.note(p.ours, tenant.System("webhooks"), "endpoint.disable", "endpoint", "endpoint_ours", map[string]any{"reason": "gone"})
	p.note(p.theirs, tenant.System("webhooks"), "endpoint.delete", "endpoint", "endpoint_theirs", nil)
	b := p.as("admin")
	all := b.open("/admin/audit")
	for _, text := range []string{"disabled the endpoint", "endpoint_ours", "in Acme Market", "deleted the endpoint", "in Other Shop", "logged in", "admin@example.com"} {
		if !all.says(text) {
			t.Errorf("the page does not say %q", text)
		}
	}
	if only := b.open("/admin/audit?action=user.log_in"); only.says("endpoint_ours") || !only.says("logged in") {
		t.Error("the filter by action shows another one, or not what it asks for")
	}
	if found := b.open("/admin/audit?q=ENDPOINT_THEIRS"); found.says("endpoint_ours") || !found.says("endpoint_theirs") {
		t.Error("the search shows what it did not ask for, or not what it did")
	}
	if answer := p.as("owner").get("/admin/audit"); answer.status != http.StatusForbidden {
		t.Errorf("an owner gets status %d, want 403", answer.status)
	}
}
