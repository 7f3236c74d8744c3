package main

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"testing"
	"time"

	"entrega/internal/store"
	"entrega/jobs"
	"entrega/views"
)

const (
	panelEmail    = "owner@example.com"
	panelPassword = "a long enough password"
)

// panelPage is a page of a filled installation's largest project.
type panelPage struct{ name, path string }

// panelPages are the pages that must stay fast, and the narrower and deeper views of them.
func panelPages(t testing.TB, db store.DB) []panelPage {
	t.Helper()
	one := func(sql string, args ...any) (found string) {
		t.Helper()
		if err := db.QueryRow(context.Background(), sql, args...).Scan(&found); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return found
	}
	project := one(`select id from projects where name = 'Shop 01'`) // the largest
	tasks := func(name string, f views.TaskFilter) panelPage {
		return panelPage{"Tasks, " + name, views.TasksURL(project, f)}
	}
	busy := one(`select id from endpoints where project_id = $1 and subscriber is null`, project)
	failing := one(`select e.id from endpoints e join endpoint_lanes l on l.endpoint_id = e.id
		where e.project_id = $1 and l.failing_since is not null and e.disabled_at is null order by l.failing_since limit 1`, project)
	event := one(`select e.id from events e join event_outcomes o on o.seq = e.seq where e.project_id = $1 and o.deliveries > 1 order by e.seq desc limit 1`, project)
	eventDeep := eventCursor(t, db, project)
	taskOf := func(state string) string {
		return one(`select coalesce(max(id), 0)::text from river_job where project_id = $1 and state = $2::river_job_state and kind = 'webhook.deliver'`, project, state)
	}
	after, before := taskCursors(t, db)

	pages := []panelPage{{"Overview", views.OverviewURL(project)}, tasks("all", views.TaskFilter{})}
	for _, s := range jobs.TaskStates() {
		pages = append(pages, tasks(string(s), views.TaskFilter{State: string(s)}))
	}
	return append(pages,
		tasks("deep, onwards", views.TaskFilter{After: after}), tasks("deep, back", views.TaskFilter{Before: before}),
		tasks("completed, deep", views.TaskFilter{State: "completed", After: after}),
		tasks("by kind", views.TaskFilter{Kind: "webhook.deliver"}),
		tasks("by busy endpoint", views.TaskFilter{Endpoint: busy}), tasks("by failing endpoint", views.TaskFilter{Endpoint: failing}),
		tasks("by busy endpoint, deep", views.TaskFilter{Endpoint: busy, After: after}),
		tasks("by event", views.TaskFilter{Event: event}),
		tasks("last 24 hours", views.TaskFilter{Period: "24h"}), tasks("last 30 days", views.TaskFilter{Period: "30d"}),
		tasks("by kind, endpoint and period", views.TaskFilter{Kind: "webhook.deliver", Endpoint: busy, Period: "7d"}),
		tasks("by number", views.TaskFilter{Query: "#" + taskOf("completed")}), tasks("by address", views.TaskFilter{Query: "warehouse"}),
		panelPage{"Bulk retry, preview", views.BulkURL(project, "retry", views.TaskFilter{State: "discarded"})},
		panelPage{"Task, completed", views.TaskURL(project, taskOf("completed"))},
		panelPage{"Task, discarded", views.TaskURL(project, taskOf("discarded"))},
		panelPage{"Task, retryable", views.TaskURL(project, taskOf("retryable"))},
		panelPage{"Events", views.EventsURL(project, views.EventFilter{})},
		panelPage{"Events, deep", views.EventsURL(project, views.EventFilter{After: eventDeep})},
		panelPage{"Events, by type", views.EventsURL(project, views.EventFilter{Type: "order.paid"})},
		panelPage{"Events, by subscriber", views.EventsURL(project, views.EventFilter{Subscriber: "customer-001"})},
		panelPage{"Events, poisoned", views.EventsURL(project, views.EventFilter{Outcome: string(views.OutcomePoisoned)})},
		panelPage{"Event", views.EventURL(project, event)},
		panelPage{"Endpoints", views.EndpointsURL(project, views.EndpointFilter{})},
		panelPage{"Endpoint, busy", views.EndpointURL(project, busy)},
		panelPage{"Endpoint, failing", views.EndpointURL(project, failing)},
		panelPage{"Alerts", views.AlertsURL(project, "")},
		panelPage{"Retry health", views.HealthURL(project, "")},
		panelPage{"Retry health, 30 days", views.HealthURL(project, "30d")},
		panelPage{"Audit", views.AuditURL(project, views.AuditFilter{})},
		panelPage{"Projects", views.ProjectsURL()},
		panelPage{"All projects", views.AdminProjectsURL("")},
		panelPage{"Disabled endpoints", views.AdminDisabledURL()},
		panelPage{"System", views.AdminSystemURL()},
	)
}

// taskCursors lead from the middle of all tasks onwards and back.
func taskCursors(t testing.TB, db store.DB) (after, before string) {
	t.Helper()
	var id int64
	if err := db.QueryRow(context.Background(), `select (min(id) + max(id)) / 2 from river_job`).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return cursors(id)
}

// eventCursor leads onwards from the middle of a project's events.
func eventCursor(t testing.TB, db store.DB, project string) string {
	t.Helper()
	var key struct {
		At  time.Time `json:"at"`
		Seq int64     `json:"seq"`
	}
	err := db.QueryRow(context.Background(), `select created_at, seq from events where project_id = $1 and created_at < now() - interval '15 days'
		order by created_at desc, seq desc limit 1`, project).Scan(&key.At, &key.Seq)
	if err != nil {
		t.Fatal(err)
	}
	after, _ := cursors(key)
	return after
}

// cursors are those of a list that has a row with this key in its middle.
func cursors[K any](key K) (after, before string) {
	list := store.ListOf(store.Keyset[K]{Limit: 1, Direction: store.Next, From: &key}, []K{key, key}, func(k K) K { return k })
	return list.Next, list.Prev
}

// panel is a browser that is logged in.
type panel struct {
	t    testing.TB
	base string
	http *http.Client
}

// openPanel logs in through the form.
func openPanel(t testing.TB, base string) *panel {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true // so that the weights are those on the wire
	t.Cleanup(transport.CloseIdleConnections)
	p := &panel{t: t, base: base, http: &http.Client{Jar: jar, Transport: transport}}
	res, err := p.http.PostForm(base+views.LoginURL(), url.Values{"email": {panelEmail}, "password": {panelPassword}})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Request.URL.Path == views.LoginURL() {
		t.Fatalf("the log-in leads to %s: %s", res.Request.URL, res.Status)
	}
	return p
}

// get reads a page whole, compressed or not.
func (p *panel) get(path string, compressed bool) []byte {
	p.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, p.base+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if compressed {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	res, err := p.http.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Request.URL.RequestURI() != path {
		p.t.Fatalf("GET %s leads to %s: %s\n%.2000s", path, res.Request.URL, res.Status, body)
	}
	return body
}

var assetPattern = regexp.MustCompile(`(?:href|src)="(/static/[^"]+)"`)

// weight is what a first visit to a page loads, in bytes: the page, and with it its stylesheet, script and icon.
func (p *panel) weight(path string, compressed bool) (page, all int) {
	p.t.Helper()
	page = len(p.get(path, compressed))
	all = page
	seen := map[string]bool{}
	for _, m := range assetPattern.FindAllStringSubmatch(string(p.get(path, false)), -1) {
		if asset := m[1]; !seen[asset] {
			seen[asset] = true
			all += len(p.get(asset, compressed))
		}
	}
	if len(seen) < 2 {
		p.t.Fatalf("%s loads only %v", path, seen)
	}
	return page, all
}
