package web_test

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"entrega/internal/events"
	"entrega/views"
	"entrega/web"
	"entrega/webhooks"
)

func TestTasks_ListsFiltersAndFinds(t *testing.T) {
	t.Parallel()
	p := setup(t)
	ours := p.newThings(p.ours)
	b := p.as("owner")
	b.submit(b.open(views.TaskURL(p.ours.ID, ours["tasks"])), views.CancelTaskURL(p.ours.ID, ours["tasks"]), nil)
	waiting := p.newThings(p.ours)

	for query, want := range map[string][]string{
		"kind=webhook.deliver":                            {ours["tasks"], waiting["tasks"]},
		"kind=webhook.deliver&state=cancelled":            {ours["tasks"]},
		"kind=webhook.deliver&state=pending":              {waiting["tasks"]},
		"state=completed":                                 {},
		"endpoint=" + ours["endpoints"]:                   {ours["tasks"]},
		"event=" + waiting["events"]:                      {waiting["tasks"]},
		"q=" + ours["tasks"]:                              {ours["tasks"]},
		"q=" + waiting["events"]:                          {waiting["tasks"]},
		"q=" + ours["endpoints"]:                          {ours["tasks"]},
		"q=nothing-like-this":                             {},
		"kind=webhook.deliver&period=1h":                  {ours["tasks"], waiting["tasks"]},
		"state=nonsense":                                  {},
		"q=" + url.QueryEscape(`'; drop table river_job`): {},
	} {
		page := b.open("/p/" + p.ours.ID + "/tasks?" + query)
		rows := page.rows()
		for _, id := range want {
			if rows[id] == "" {
				t.Errorf("?%s lacks task %s", query, id)
			}
			delete(rows, id)
		}
		if len(rows) > 0 {
			t.Errorf("?%s also lists %v", query, rows)
		}
	}
	page := b.open("/p/" + p.ours.ID + "/tasks?kind=webhook.deliver")
	tabs := text(page.live("tabs"))
	for _, want := range []string{"All 2", "Pending 1", "Cancelled 1", "Running 0"} {
		if !strings.Contains(tabs, want) {
			t.Errorf("the tabs say %q, want %q among them", tabs, want)
		}
	}
}

func TestTasks_PagesBothWays(t *testing.T) {
	t.Parallel()
	p := setup(t)
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: "http://127.0.0.1:9/"})
	for range 120 {
		p.newDelivery(p.ours, e, "event_1")
	}
	b := p.as("owner")
	seen := map[string]int{}
	var pages []string
	for path := "/p/" + p.ours.ID + "/tasks"; path != ""; {
		page := b.open(path)
		pages = append(pages, path)
		for id := range page.rows() {
			seen[id]++
		}
		path = rel(page, "next")
	}
	if len(pages) != 3 || len(seen) != 120 {
		t.Fatalf("%d pages with %d tasks, want 3 with 120", len(pages), len(seen))
	}
	back := b.open(rel(b.open(pages[2]), "prev"))
	if rows := back.rows(); len(rows) != 50 || rows["70"] == "" {
		t.Errorf("the page before the last has %d rows, want the 50 in the middle", len(rows))
	}
	if bad := b.get("/p/" + p.ours.ID + "/tasks?after=nonsense"); bad.status != http.StatusBadRequest {
		t.Errorf("a broken cursor: status %d, want 400", bad.status)
	}
}

// rel is where a page's link of this relation leads.
func rel(p *page, relation string) string {
	for _, a := range find(p.doc, "a") {
		if attr(a, "rel") == relation {
			return attr(a, "href")
		}
	}
	return ""
}

func TestFragments_AnswerOnlyTheNamedParts(t *testing.T) {
	t.Parallel()
	p := setup(t)
	ours := p.newThings(p.ours)
	b := p.as("owner")
	path := "/p/" + p.ours.ID + "/tasks"
	some := b.do(http.MethodGet, path, nil, http.Header{"X-Fragment": {"rows, tabs"}})
	if some.live("rows") == nil || some.live("tabs") == nil || some.byID("main") != nil || some.byID("flash") != nil {
		t.Errorf("the answer is not just the two parts: %s", some.body)
	}
	if vary := strings.Join(some.header.Values("Vary"), ","); !strings.Contains(vary, "X-Fragment") {
		t.Errorf("Vary is %q, want X-Fragment among them", vary)
	}
	if none := b.do(http.MethodGet, path, nil, http.Header{"X-Fragment": {"nonsense"}}); none.status != http.StatusOK || none.body != "" {
		t.Errorf("an unknown part: status %d with %q, want 200 with nothing", none.status, none.body)
	}

	// An inline form of the script: the answer is the parts of the page it came from, with the sentence.
	answer := b.do(http.MethodPost, views.CancelTaskURL(p.ours.ID, ours["tasks"]), url.Values{"return": {path}},
		http.Header{"Sec-Fetch-Site": {"same-origin"}, "X-Fragment": {"flash,rows"}})
	if answer.status != http.StatusSeeOther {
		t.Fatalf("status %d, want 303", answer.status)
	}
	quietly := b.do(http.MethodGet, path, nil, http.Header{"X-Fragment": {"rows"}})
	if quietly.byID("flash") != nil {
		t.Error("a refresh of the rows took the sentence")
	}
	parts := b.do(http.MethodGet, answer.location, nil, http.Header{"X-Fragment": {"flash,rows"}})
	if !strings.Contains(parts.flash(), "was cancelled") || !strings.Contains(parts.rows()[ours["tasks"]], "Cancelled") {
		t.Errorf("the parts say %q and %q", parts.flash(), parts.rows()[ours["tasks"]])
	}
}

func TestCSV_IsWholeAndNoSpreadsheetComputesIt(t *testing.T) {
	t.Parallel()
	p := setup(t)
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: "http://127.0.0.1:9/"})
	for range 250 {
		p.newDelivery(p.ours, e, "event_1")
	}
	p.publish(p.ours, events.New{ID: "evil", Type: "order.created", Subscriber: "=cmd|' /C calc'!A0", Data: []byte(`{}`)})
	b := p.as("owner")
	answer := b.open("/p/" + p.ours.ID + "/tasks.csv?kind=webhook.deliver")
	records, err := csv.NewReader(strings.NewReader(answer.body)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 251 || records[0][0] != "id" {
		t.Errorf("%d lines, want a head and 250 tasks", len(records))
	}
	if got := answer.header.Get("Content-Disposition"); got != `attachment; filename="tasks.csv"` {
		t.Errorf("Content-Disposition %q, want a download", got)
	}
	list, err := csv.NewReader(strings.NewReader(b.open("/p/" + p.ours.ID + "/events.csv").body)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if got := list[1][2]; got != "'=cmd|' /C calc'!A0" {
		t.Errorf("the cell is %q, want an apostrophe before it", got)
	}
}

func TestPlainCell_DefusesWhatSpreadsheetsCompute(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{"=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\t=1": "'\t=1", "\r=1": "'\r=1", "a=1": "a=1", "": "", "1": "1"} {
		if got := web.PlainCell(cell); got != want {
			t.Errorf("PlainCell(%q) = %q, want %q", cell, got, want)
		}
	}
}

func TestBulk_CountsAsksAndRuns(t *testing.T) {
	t.Parallel()
	p := setup(t)
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: "http://127.0.0.1:9/"})
	for range 101 {
		p.newDelivery(p.ours, e, "event_1")
	}
	p.exec(`update river_job set scheduled_at = now() + interval '1 hour', state = 'scheduled' where endpoint_id = $1`, e.ID)
	n := p.start()
	b := p.as("on-call")
	list := b.open("/p/" + p.ours.ID + "/tasks?kind=webhook.deliver&state=pending")
	preview := b.open(hrefOf(t, list, "Cancel all 101"))
	if !preview.says("101 tasks will be cancelled") {
		t.Fatalf("the preview says %q", text(preview.byID("main")))
	}
	action := views.BulkURL(p.ours.ID, "cancel", views.TaskFilter{Kind: "webhook.deliver", State: "pending"})
	if slip := b.send(preview, action, nil); slip.status != http.StatusUnprocessableEntity || !slip.says("Type the word cancel") {
		t.Errorf("without the word: status %d, want 422 with what to type", slip.status)
	}
	run := b.submit(preview, action, url.Values{"confirm": {"cancel"}})
	if run.heading() != "Cancel tasks" {
		t.Fatalf("heading %q, want the run", run.heading())
	}
	var cancelled int
	n.await("101 cancelled tasks", func() bool {
		p.scan(&cancelled, `select count(*) from river_job where project_id = $1 and kind = 'webhook.deliver' and state = 'cancelled'`, p.ours.ID)
		return cancelled == 101
	})
}

// hrefOf is where the link with this text leads.
func hrefOf(t *testing.T, p *page, label string) string {
	t.Helper()
	for _, a := range find(p.doc, "a") {
		if text(a) == label {
			return attr(a, "href")
		}
	}
	t.Fatalf("the page %q has no link %q", p.heading(), label)
	return ""
}

func TestPages_WeighLittle(t *testing.T) {
	t.Parallel()
	p := setup(t)
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: "http://127.0.0.1:9/"})
	for i := range 60 {
		p.newDelivery(p.ours, e, p.publish(p.ours, events.New{ID: "event_" + strconv.Itoa(i), Type: "order.created", Data: []byte(`{}`)}))
	}
	b := p.as("owner")
	for _, path := range []string{"", "/tasks", "/events", "/endpoints", "/endpoints/" + e.ID, "/policies"} {
		if size := len(b.open("/p/" + p.ours.ID + path).body); size > 100<<10 {
			t.Errorf("%s weighs %d KiB before compression, want 100 at most", path, size>>10)
		}
	}
}
