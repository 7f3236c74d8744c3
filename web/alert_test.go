package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/alerts"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/webhooks"
)

// newAlert makes an open alert in a project.
func (p *panel) newAlert(project tenant.Project) string {
	return p.alert(alerts.Alert{ProjectID: project.ID, Kind: alerts.TaskDiscarded, About: "order.notification", Text: "had 6 tasks discarded.", Count: 6})
}

// alert stores an open alert as a scan does; a subject is made up where there is none.
func (p *panel) alert(a alerts.Alert) string {
	p.t.Helper()
	a.ID = store.NewID("alert")
	if a.Subject == "" {
		a.Subject = a.ID
	}
	if a.LastAt.IsZero() {
		a.LastAt = p.now()
	}
	p.exec(`insert into alerts (id, project_id, kind, subject, about, text, count, first_at, last_at, endpoint_id, event_id, task_kind, task_state)
		values ($1, $2, $3, $4, $5, $6, greatest($7, 1), $8, $8, nullif($9, ''), nullif($10, ''), nullif($11, ''), nullif($12, ''))`,
		a.ID, a.ProjectID, string(a.Kind), a.Subject, a.About, a.Text, a.Count, a.LastAt, a.EndpointID, a.EventID, a.TaskKind, a.TaskState)
	return a.ID
}

// alertsShown are the subjects of the alerts on a page, in their order.
func alertsShown(on *page) []string {
	subjects := []string{}
	for n := range on.doc.Descendants() {
		if n.Data == "li" && strings.HasPrefix(attr(n, "id"), "alert-") {
			for code := range n.Descendants() {
				if code.Data == "code" {
					subjects = append(subjects, text(code))
					break
				}
			}
		}
	}
	return subjects
}

// linked is where a link with these words leads; "" when there is none.
func linked(on *page, words string) string {
	for _, a := range find(on.doc, "a") {
		if text(a) == words {
			return attr(a, "href")
		}
	}
	return ""
}

func TestAlerts_OpenFirstByStateAndOverPages(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for n := range store.DefaultLimit + 2 {
		p.alert(alerts.Alert{ProjectID: p.ours.ID, Kind: alerts.Backlog, About: time.Duration(n).String(), Text: "waits.", LastAt: p.now().Add(-time.Duration(n) * time.Minute)})
	}
	p.alert(alerts.Alert{ProjectID: p.theirs.ID, Kind: alerts.Backlog, About: "of others", Text: "waits."})
	b, path := p.as("owner"), "/p/"+p.ours.ID+"/alerts"
	first := b.open(path)
	shown := alertsShown(first)
	if len(shown) != store.DefaultLimit || shown[0] != "0s" || shown[1] != "1ns" {
		t.Fatalf("the first page shows %d: %v", len(shown), shown)
	}
	second := b.open(linked(first, "Older"))
	if diff := cmp.Diff([]string{"50ns", "51ns"}, alertsShown(second)); diff != "" {
		t.Errorf("the second page differs (-want +got):\n%s", diff)
	}
	if back := alertsShown(b.open(linked(second, "Newer"))); len(back) != store.DefaultLimit || back[0] != "0s" {
		t.Errorf("back on the first page are %v", back)
	}
	if resolved := b.open(path + "?state=resolved"); len(alertsShown(resolved)) != 0 || !resolved.says("No resolved alert") {
		t.Errorf("the resolved ones are %v", alertsShown(resolved))
	}
	if !first.says("52 open alerts") {
		t.Error("the navigation does not count the open alerts")
	}
}

func TestAlerts_AcknowledgeAndResolveByForms(t *testing.T) {
	t.Parallel()
	p := setup(t)
	id := p.newAlert(p.ours)
	b, path := p.as("on-call"), "/p/"+p.ours.ID+"/alerts"
	if diff := cmp.Diff([]string{"order.notification"}, alertsShown(b.open("/p/"+p.ours.ID))); diff != "" {
		t.Errorf("the first page of the project differs (-want +got):\n%s", diff)
	}
	told := b.submit(b.open(path), path+"/"+id+"/acknowledge", nil)
	if !told.says("The alert is acknowledged.") || len(alertsShown(told)) != 0 {
		t.Errorf("after it was acknowledged the open ones are %v", alertsShown(told))
	}
	taken := b.open(path + "?state=acknowledged")
	if diff := cmp.Diff([]string{"order.notification"}, alertsShown(taken)); diff != "" || !taken.says("acknowledged: on-call@example.com") {
		t.Errorf("the acknowledged ones differ (-want +got):\n%s", diff)
	}
	if taken.form(path+"/"+id+"/acknowledge") != nil {
		t.Error("an acknowledged alert can be acknowledged once more")
	}
	b.submit(taken, path+"/"+id+"/resolve", nil)
	if resolved := b.open(path + "?state=resolved"); !resolved.says("resolved: on-call@example.com") || resolved.form(path+"/"+id+"/resolve") != nil {
		t.Errorf("the resolved one reads %q", text(resolved.doc))
	}
	if seen := p.as("viewer").open(path + "?state=resolved"); seen.says("on-call@") {
		t.Error("a viewer sees the whole address of whoever resolved it")
	}
}

func TestAlerts_AViewerSeesThemAndNoButtons(t *testing.T) {
	t.Parallel()
	p := setup(t)
	id := p.newAlert(p.ours)
	b, path := p.as("viewer"), "/p/"+p.ours.ID+"/alerts"
	for _, page := range []*page{b.open(path), b.open("/p/" + p.ours.ID)} {
		if len(alertsShown(page)) != 1 {
			t.Errorf("the viewer sees %v", alertsShown(page))
		}
		if page.form(path+"/"+id+"/acknowledge") != nil || page.form(path+"/"+id+"/resolve") != nil {
			t.Error("the viewer gets a button")
		}
	}
	if answer := b.post(path+"/"+id+"/resolve", url.Values{}); answer.status != http.StatusForbidden {
		t.Errorf("a viewer who resolves it gets %d, want 403", answer.status)
	}
}

func TestAlerts_OfTheInstallationAreForItsAdmins(t *testing.T) {
	t.Parallel()
	p := setup(t)
	id := p.alert(alerts.Alert{Kind: alerts.PeriodicFailed, Subject: "stats.rollup", About: "stats.rollup", Text: "failed."})
	path := "/p/" + p.ours.ID + "/alerts"
	if shown := alertsShown(p.as("owner").open(path)); len(shown) != 0 {
		t.Errorf("an owner sees %v", shown)
	}
	if answer := p.as("owner").post(path+"/"+id+"/resolve", url.Values{}); answer.status != http.StatusNotFound {
		t.Errorf("an owner who resolves it gets %d, want 404", answer.status)
	}
	admin := p.as("admin")
	page := admin.open(path)
	if diff := cmp.Diff([]string{"stats.rollup"}, alertsShown(page)); diff != "" || !page.says("Periodic job failing, installation") {
		t.Errorf("an admin's alerts differ (-want +got):\n%s", diff)
	}
	if told := admin.submit(page, path+"/"+id+"/resolve", nil); len(alertsShown(told)) != 0 {
		t.Errorf("after it was resolved the admin sees %v", alertsShown(told))
	}
}

func TestAlerts_LeadToWhatCanBeDone(t *testing.T) {
	t.Parallel()
	p := setup(t)
	healthy := p.newEndpoint(p.ours, webhooks.Settings{URL: "http://127.0.0.1:9/a"})
	disabled := p.newEndpoint(p.ours, webhooks.Settings{URL: "http://127.0.0.1:9/b"})
	p.exec(`update endpoints set disabled_at = now(), disabled_reason = 'gone' where id = $1`, disabled.ID)
	for _, e := range []webhooks.Endpoint{healthy, disabled} {
		task := p.newDelivery(p.ours, e, "event_1")
		p.exec(`update river_job set state = 'discarded', finalized_at = now() where id = $1`, task)
		p.alert(alerts.Alert{ProjectID: p.ours.ID, Kind: alerts.TaskDiscarded, About: "127.0.0.1:9", Text: "did not get 1 delivery.", EndpointID: e.ID,
			TaskKind: webhooks.Deliver.Name, TaskState: "discarded"})
	}
	p.alert(alerts.Alert{ProjectID: p.ours.ID, Kind: alerts.EndpointDisabled, About: "127.0.0.1:9", Text: "answered 410 Gone.", EndpointID: disabled.ID})
	p.alert(alerts.Alert{ProjectID: p.ours.ID, Kind: alerts.EventPoisoned, About: "event_1", Text: "was given up.", EventID: "event_1"})
	in := "/p/" + p.ours.ID
	for who, want := range map[string][2]bool{"owner": {true, true}, "on-call": {true, false}, "viewer": {false, false}} {
		page := p.as(who).open(in + "/alerts")
		if linked(page, "View tasks") == "" || linked(page, "Open event") != in+"/events/event_1" {
			t.Errorf("%s: the alerts lead to %q and %q", who, linked(page, "View tasks"), linked(page, "Open event"))
		}
		if got := linked(page, "Redeliver 1") == in+"/endpoints/"+healthy.ID+"/redeliver"; got != want[0] {
			t.Errorf("%s: may redeliver: %t, want %t", who, got, want[0])
		}
		if got := page.form(in+"/endpoints/"+disabled.ID+"/reactivate") != nil; got != want[1] {
			t.Errorf("%s: may reactivate: %t, want %t", who, got, want[1])
		}
	}
}

func TestAlerts_StayTextWhateverIsInThem(t *testing.T) {
	t.Parallel()
	p := setup(t)
	const evil = `<script>alert(1)</script><img src=x onerror=alert(1)>"'`
	p.alert(alerts.Alert{ProjectID: p.ours.ID, Kind: alerts.Kind(evil), Subject: evil, About: evil, Text: evil, EventID: evil, EndpointID: evil})
	for _, path := range []string{"/alerts", ""} {
		page := p.as("owner").open("/p/" + p.ours.ID + path)
		if diff := cmp.Diff([]string{evil}, alertsShown(page)); diff != "" {
			t.Errorf("%q: the text differs (-want +got):\n%s", path, diff)
		}
		if strings.Contains(page.body, "<script>alert") || strings.Contains(page.body, "<img src=x") {
			t.Errorf("%q: the alert became markup", path)
		}
	}
}
