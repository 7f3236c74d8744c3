package views

import (
	"fmt"
	"math"
	"time"

	"github.com/a-h/templ"
)

// at is an instant of the sample day.
func at(clock string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05.000", "2026-11-29 "+clock)
	if err != nil {
		panic(err)
	}
	return t
}

func sampleNow() time.Time { return at("18:14:07.000") }

// text makes sample texts; the hostile test replaces them all.
type text func(string) string

func plainText(s string) string { return s }

// sample is a page with the name of its preview file.
type sample struct {
	name string
	page templ.Component
}

func sampleLayout(x text, section Section, title string) Layout {
	nav := []NavItem{}
	for _, s := range []Section{
		SectionOverview, SectionTasks, SectionEvents, SectionEndpoints, SectionMail, SectionAlerts, SectionHealth, SectionPeriodic,
		SectionPolicies, SectionTeam, SectionKeys, SectionAudit, SectionSettings, SectionAdminProjects, SectionAdminDisabled, SectionAdminMail, SectionAdminAudit, SectionAdminSystem,
	} {
		item := NavItem{Section: s}
		if s == SectionAlerts {
			item.Badge, item.BadgeNote = 3, "open alerts"
		}
		nav = append(nav, item)
	}
	return Layout{
		Title: x(title), Section: section, Now: sampleNow(),
		Assets:   Assets{CSS: "panel.css", JS: "panel.js", Icon: "icon.svg"},
		Project:  Project{ID: "project_01kb7m3q8yf5z", Name: x("Acme Market")},
		Projects: []Project{{ID: "project_01kb7m3q8yf5z", Name: x("Acme Market")}, {ID: "project_01kb9", Name: x("Lumen Books")}},
		Nav:      nav,
		User:     User{Name: x("Inês Duarte"), Email: x("ines@acme.example"), Role: "owner", Admin: true},
		Path:     "/p/project_01kb7m3q8yf5z/tasks?state=discarded",
		Stream:   "/p/project_01kb7m3q8yf5z/stream",
	}
}

func sampleTasks(x text) TasksProps {
	now := sampleNow()
	rows := []TaskRow{
		{ID: "184203", State: Retryable, Kind: "webhook.deliver", Label: x("order.created"), To: x("hooks.northwind.example"), Attempt: 3, MaxAttempts: 18, LastResult: x("503 in 412 ms"), NextAttemptAt: now.Add(28 * time.Minute), CreatedAt: now.Add(-7 * time.Minute), CanRetry: true},
		{ID: "184202", State: Snoozed, Kind: "webhook.deliver", Label: x("order.created"), To: x("api.lumen.example"), Attempt: 1, MaxAttempts: 18, LastResult: x("429, Retry-After 120 s"), NextAttemptAt: now.Add(108 * time.Second), CreatedAt: now.Add(-2 * time.Minute), CanRetry: true},
		{ID: "184201", State: Running, Kind: "webhook.deliver", Label: x("invoice.paid"), To: x("hooks.kestrel.example"), Attempt: 1, MaxAttempts: 18, LastResult: x("sending…"), NextNote: x("now"), CreatedAt: now.Add(-2 * time.Second)},
		{ID: "184200", State: Pending, Kind: "webhook.deliver", Label: x("invoice.paid"), To: x("hooks.kestrel.example"), Attempt: 0, MaxAttempts: 18, LastResult: x("not tried yet"), NextNote: x("waits for its turn"), CreatedAt: now.Add(-3 * time.Second), CanCancel: true},
		{ID: "184187", State: Discarded, Kind: "webhook.deliver", Label: x("order.refunded"), To: x("old.partner.example"), Attempt: 1, MaxAttempts: 18, LastResult: x("410 Gone: permanent"), NextNote: x("no further attempt"), CreatedAt: now.Add(-9 * time.Minute), CanRetry: true},
		{ID: "184181", State: Discarded, Kind: "order.notification", Label: x("order SO-10482"), To: x("s•••••@seller.example"), Attempt: 6, MaxAttempts: 6, LastResult: x("550 5.1.1 mailbox unknown"), NextNote: x("no further attempt"), CreatedAt: now.Add(-14 * time.Minute), CanRetry: true},
		{ID: "184177", State: Completed, Kind: "webhook.deliver", Label: x("order.created"), To: x("hooks.northwind.example"), Attempt: 2, MaxAttempts: 18, LastResult: x("200 in 96 ms"), NextNote: x("done"), CreatedAt: now.Add(-16 * time.Minute)},
		{ID: "184176", State: Completed, Kind: "webhook.fanout", Label: x("order.created"), To: x("4 endpoints"), Attempt: 1, MaxAttempts: 10, LastResult: x("4 deliveries queued"), NextNote: x("done"), CreatedAt: now.Add(-16 * time.Minute)},
		{ID: "184150", State: Cancelled, Kind: "webhook.deliver", Label: x("catalog.synced"), To: x("hooks.tern.example"), Attempt: 4, MaxAttempts: 18, LastResult: x("cancelled by on-call staff"), NextNote: x("no further attempt"), CreatedAt: now.Add(-31 * time.Minute), CanRetry: true},
		{ID: "184149", State: Running, Cancelling: true, Kind: "webhook.deliver", Label: x("catalog.synced"), To: x("hooks.tern.example"), Attempt: 4, MaxAttempts: 18, LastResult: x("sending…"), NextNote: x("now"), CreatedAt: now.Add(-31 * time.Minute)},
		{ID: "184120", State: Completed, Kind: "owner.notify", Label: x("access_request.created"), To: x("o•••@acme.example"), Attempt: 1, MaxAttempts: 8, LastResult: x("250 accepted"), NextNote: x("done"), CreatedAt: now.Add(-44 * time.Minute)},
	}
	return TasksProps{
		Layout: sampleLayout(x, SectionTasks, "Tasks"),
		Filter: TaskFilter{Kind: "webhook.deliver", Period: "24h", Query: x("")},
		Total:  StateCount{Count: 184203},
		Counts: []StateCount{
			{Running, 12, false}, {Pending, 38, false}, {Retryable, 214, false}, {Snoozed, 41, false},
			{Completed, 10000, true}, {Discarded, 251, false}, {Cancelled, 7, false},
		},
		Kinds:     []Option{{"webhook.deliver", "webhook.deliver"}, {"webhook.fanout", "webhook.fanout"}},
		Endpoints: []Option{{"endpoint_1", x("hooks.northwind.example")}, {"endpoint_2", x("api.lumen.example")}},
		Periods:   []Option{{"1h", "Last hour"}, {"24h", "Last 24 hours"}, {"7d", "Last 7 days"}, {"all", "All time"}},
		Rows:      rows, Pager: Pager{NewerURL: "/p/x/tasks?before=1", OlderURL: "/p/x/tasks?after=2"},
		Matching: 251, CanBulkRetry: true, CanBulkCancel: true, CanExport: true,
	}
}

func sampleTask(x text) TaskProps {
	start := at("18:07:16.702")
	future := []time.Time{at("18:42:07.000")}
	for _, h := range []float64{2, 5, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10} {
		future = append(future, future[len(future)-1].Add(time.Duration(h*float64(time.Hour))))
	}
	return TaskProps{
		Layout: sampleLayout(x, SectionTasks, "Task 184203"), ID: "184203", State: Retryable, Kind: "webhook.deliver",
		Label: x("order.created"), To: x("hooks.northwind.example"), Attempt: 3, MaxAttempts: 18,
		Happened: x("Attempt 3 of 18 answered 503."), NextAttemptAt: future[0],
		Attempts: []Attempt{
			{Number: 3, StartedAt: at("18:12:31.204"), Took: 412 * time.Millisecond, Result: x("HTTP 503"), Short: x("503"), ErrorType: "HttpError", Decision: "retry_scheduled", Trigger: "schedule", BaseWait: 30 * time.Minute, Wait: 29*time.Minute + 36*time.Second, RetryAfterRaw: x("soon"), RetryAfterRead: "ignored"},
			{Number: 2, StartedAt: at("18:07:21.880"), Took: 10 * time.Second, Result: x("No answer in 10 s"), Short: x("timeout"), ErrorType: "Timeout", Phase: "headers", Decision: "retry_scheduled", Trigger: "manual", BaseWait: 5 * time.Minute, Wait: 309 * time.Second},
			{Number: 1, StartedAt: start, Took: 38 * time.Millisecond, Result: x("HTTP 500"), Short: x("500"), ErrorType: "HttpError", Decision: "retry_scheduled", Trigger: "schedule", BaseWait: 5 * time.Second, Wait: 5180 * time.Millisecond},
		},
		Future: future,
		Exchange: &Exchange{
			Attempt: 3,
			Request: Message{
				StartLine: x("POST /hooks/orders HTTP/1.1"),
				Headers:   []Header{{Name: "content-type", Value: "application/json"}, {Name: "user-agent", Value: "Entrega/1.0"}, {Name: "webhook-id", Value: x("event_01kb7m5c2sfs3b")}, {Name: "webhook-timestamp", Value: "1795975951"}, {Name: "webhook-signature", Value: "v1,pX1cQ9s0m2…"}},
				Body:      Payload{Text: x("{\"type\":\"order.created\",\"timestamp\":\"2026-11-29T18:07:16Z\",\n \"data\":{\"order_id\":\"SO-10482\",\"total\":\"129.90\"}}"), Bytes: 110, DownloadURL: x("/p/x/events/event_01/payload")},
			},
			Response: &Message{
				StartLine: x("HTTP/1.1 503 Service Unavailable"),
				Headers:   []Header{{Name: "content-type", Value: x("text/html")}, {Name: "retry-after", Value: x("soon"), Note: "ignored: not a delay or date"}},
				Body:      Payload{Text: x("<h1>upstream unavailable</h1>"), Bytes: 21000, Truncated: true},
			},
		},
		Policy:   PolicyRef{Kind: "webhook.deliver", Profile: "standard", Version: 4, Hash: "9c1f0a77d1b2c3d4e5f6a7b8c9d0e1f2"},
		Endpoint: &EndpointRef{ID: "endpoint_01", Name: x("hooks.northwind.example"), Health: Failing, Note: x("failing since 18:07 UTC")},
		EventID:  "event_01kb7m5c2sfs3b9t8q", EventType: x("order.created"), Subscriber: x("northwind"), Queue: "webhook",
		CreatedAt: start, GivesUpAt: start.Add(7 * 24 * time.Hour),
		Evidence: Evidence{Checked: true, Whole: true, Records: 3},
		Clicks: []AuditRow{
			{At: at("18:07:21.000"), Actor: x("Inês Duarte"), Action: x("retried the task"), Reason: x("receiver says it is back")},
		},
		CanRetry: true, CanCancel: true,
	}
}

func sampleStrip(seed int, good float64) Strip {
	s := Strip{}
	for i := range 30 {
		r := math.Mod(math.Abs(math.Sin(float64(seed*31+i*7))*1000), 1)
		switch {
		case r < good:
			s = append(s, Good)
		case r < good+0.05:
			s = append(s, Wait)
		default:
			s = append(s, Bad)
		}
	}
	return s
}

func sampleEndpointRows(x text) []EndpointRow {
	return []EndpointRow{
		{ID: "endpoint_01", Name: x("hooks.northwind.example"), URL: x("https://hooks.northwind.example/orders"), Health: Failing, Note: x("failing since 18:07 UTC, one probe every 5 min"), Strip: sampleStrip(3, .4), Backlog: 118, EventTypes: []string{x("order.created"), x("order.refunded"), x("invoice.paid")}, CanTest: true},
		{ID: "endpoint_02", Name: x("api.lumen.example"), URL: x("https://api.lumen.example/in"), Health: RateLimited, Note: x("asked to wait until 18:16 UTC"), Strip: sampleStrip(5, .8), Backlog: 41, CanTest: true},
		{ID: "endpoint_03", Name: x("old.partner.example"), URL: x("https://old.partner.example/h"), Health: Disabled, Note: x("disabled 26 Nov: 20 failures in a row"), Strip: sampleStrip(7, 0), Backlog: 0, Missed: 132, EventTypes: []string{x("order.created")}, CanReactivate: true, CanRedeliver: true},
		{ID: "endpoint_04", Name: x("hooks.kestrel.example"), URL: x("https://hooks.kestrel.example/v2"), Health: Healthy, Subscriber: x("kestrel"), Strip: sampleStrip(9, 1), Backlog: 0, CanTest: true},
		{ID: "endpoint_05", Name: x("Warehouse"), URL: x("https://wms.acme.example/events"), Health: Paused, Strip: sampleStrip(11, .95), Backlog: 12, CanTest: true},
		{ID: "endpoint_06", Name: x("sandbox.tern.example"), URL: x("https://sandbox.tern.example/"), Health: Unused, CanTest: true},
	}
}

func sampleEndpoint(x text, h Health) EndpointProps {
	now := sampleNow()
	p := EndpointProps{
		Layout: sampleLayout(x, SectionEndpoints, "Endpoint"), ID: "endpoint_01kb7m3q8yf5zabc", Name: x("hooks.northwind.example"),
		URL: x("https://hooks.northwind.example/orders"), Description: x("Northwind production"), Subscriber: x("northwind"), Profile: "standard",
		EventTypes: []string{x("order.created"), x("order.refunded"), x("invoice.paid")}, Headers: []Header{{Name: "x-api-version", Value: x("2")}},
		Health: h, Strip: sampleStrip(3, .4), CreatedAt: now.Add(-60 * 24 * time.Hour), LastSuccessAt: now.Add(-3 * time.Minute),
		DisableRule: "5 days of unbroken failure",
		Lane:        Lane{InFlight: 1, MaxInFlight: 4, Outstanding: 6, Pending: 109, Later: 3, Holder: "node_3f2a9c0d41be", HeldUntil: now.Add(31 * time.Second), OldestAt: now.Add(-7 * time.Minute), RatePerSecond: 25, Timeout: 10 * time.Second},
		Latency:     Latency{P50: 96 * time.Millisecond, P95: 1412 * time.Millisecond, Attempts: 1200},
		Secrets: []Secret{
			{Masked: "whsec_…k9Qz", CreatedAt: now.Add(-20 * time.Hour)},
			{Masked: "whsec_…03fA", CreatedAt: now.Add(-60 * 24 * time.Hour), ExpiresAt: now.Add(4*time.Hour + 12*time.Minute)},
		},
		Deliveries: sampleTasks(x).Rows[:5],
		Clicks:     []AuditRow{{At: at("17:02:21.000"), Actor: x("Inês Duarte"), Action: x("rotated the secret")}},
		CanEdit:    true, CanTest: true, CanPause: true, CanDisable: true, CanRedeliver: true, CanRotate: true, CanDelete: true,
	}
	switch h {
	case Failing:
		p.FailingSince, p.FailuresInARow = at("18:07:16.000"), 14
		p.DisablesAt = p.FailingSince.Add(5 * 24 * time.Hour)
		p.Discarded = 7
	case Disabled:
		p.DisabledAt, p.DisabledReason = now.Add(-3*24*time.Hour), x("20 failures in a row")
		p.Missed, p.CanReactivate, p.CanTest, p.CanPause, p.CanDisable = 132, true, false, false, false
	}
	return p
}

func sampleEvents(x text) EventsProps {
	now := sampleNow()
	row := func(i int, kind string, o Outcome, summary string) EventRow {
		return EventRow{ID: fmt.Sprintf("event_01kb7m5c2sfs3b9t%02d", i), Type: x(kind), Subscriber: x("northwind"), At: now.Add(-time.Duration(i*i) * time.Minute), Outcome: o, Summary: x(summary), Bytes: int64(412 + i*977)}
	}
	return EventsProps{
		Layout: sampleLayout(x, SectionEvents, "Events"),
		Filter: EventFilter{Period: "24h"},
		Types:  []Option{{"order.created", x("order.created")}}, Subscribers: []Option{{"northwind", x("northwind")}},
		Periods: []Option{{"24h", "Last 24 hours"}, {"all", "All time"}},
		Rows: []EventRow{
			row(0, "order.created", OutcomeQueued, "waits for its fan-out"), row(1, "order.created", OutcomeUnderWay, "2 of 4 delivered"),
			row(2, "invoice.paid", OutcomeDelivered, "4 of 4 delivered"), row(3, "order.refunded", OutcomeFailed, "3 of 4 delivered, 1 discarded"),
			row(4, "catalog.synced", OutcomeUnmatched, "no endpoint takes it"), row(5, "order.created", OutcomePoisoned, "could not be fanned out"),
		},
		Pager: Pager{OlderURL: "/p/x/events?after=2"}, CanPublish: true, CanExport: true,
		Test:           TestEvent{Type: x("order.created"), Data: x("{\"order_id\": \"SO-1\"}")},
		PublishCommand: x("curl -X POST https://entrega.acme.example/v1/events -H \"Authorization: Bearer $KEY\" -d '{\"type\":\"order.created\",\"data\":{}}'"),
	}
}

func sampleEvent(x text) EventProps {
	rows := sampleTasks(x).Rows
	return EventProps{
		Layout: sampleLayout(x, SectionEvents, "Event"), ID: "event_01kb7m5c2sfs3b9t8q", Type: x("order.created"), Subscriber: x("northwind"),
		PublishedAt: at("18:07:16.650"), FannedAt: at("18:07:16.671"), Outcome: OutcomeUnderWay, Sentence: x("Delivered to 1 of 3 endpoints; 2 are still being tried."),
		Source: x("API key ek_live_7Hq2"), Metadata: []Header{{Name: x("trace"), Value: x("4bf92f35")}},
		Payload: Payload{Text: x("{\"order_id\":\"SO-10482\",\"total\":129.90,\"big\":12345678901234567890}"), Bytes: 68, DownloadURL: "/p/x/events/e/payload"},
		Considered: []Considered{
			{EndpointID: "endpoint_01", Endpoint: x("hooks.northwind.example"), Task: &rows[0]},
			{EndpointID: "endpoint_02", Endpoint: x("api.lumen.example"), Task: &rows[1]},
			{EndpointID: "endpoint_04", Endpoint: x("hooks.kestrel.example"), Task: &rows[6]},
			{EndpointID: "endpoint_03", Endpoint: x("old.partner.example"), Reason: x("the endpoint was disabled")},
			{EndpointID: "endpoint_05", Endpoint: x("wms.acme.example"), Reason: x("does not take order.created")},
		},
		CanRedeliver: true,
	}
}

func sampleEndpointForm(x text, problems map[string]string) EndpointFormProps {
	return EndpointFormProps{
		Layout: sampleLayout(x, SectionEndpoints, "New endpoint"), URL: x("http://localhost/in"), Description: x("Northwind production"),
		Profile: "standard", MaxInFlight: "1", EventTypes: x("order.created"), Headers: x("x-api-version: 2"),
		Profiles:   []Option{{"standard", "standard: 18 attempts over 5.3 days"}, {"compact", "compact: 9 attempts over 45 hours"}},
		KnownTypes: []EventTypeChoice{{Name: x("order.created"), Description: x("A customer placed an order."), Chosen: true}, {Name: x("order.refunded")}, {Name: x("invoice.paid")}},
		Problems:   problems,
	}
}

// samplePages are all pages in the states that look different.
func samplePages(x text) []sample {
	layout := func(s Section, title string) Layout { return sampleLayout(x, s, title) }
	outside := Layout{Title: x("Log in"), Assets: Assets{CSS: "panel.css", JS: "panel.js", Icon: "icon.svg"}, Now: sampleNow()}
	flashed := sampleTasks(x)
	flashed.Layout.Flash = Flash{Text: x("Task 184203 is queued: one attempt will be made now.")}
	noTasks := TasksProps{Layout: layout(SectionTasks, "Tasks"), Periods: []Option{{"24h", "Last 24 hours"}}}
	for _, s := range States() {
		noTasks.Counts = append(noTasks.Counts, StateCount{State: s})
	}
	done := sampleTask(x)
	done.State, done.NextAttemptAt, done.Future, done.Happened, done.NextNote = Completed, time.Time{}, nil, x("Delivered by attempt 3: the receiver answered 200."), x("Nothing more to do.")
	done.CanRetry, done.CanCancel, done.RetryRefusal, done.FinishedAt = false, false, x("A completed task cannot be retried; redeliver its event instead."), sampleNow()
	done.Exchange = &Exchange{Attempt: 3, Request: done.Exchange.Request, NoResponse: x("The connection closed before an answer came.")}
	done.Evidence = Evidence{Checked: true, Records: 3, Problem: x("record 2: the wait of 309 s does not follow from the policy")}
	return []sample{
		{"login", Login(LoginProps{Layout: outside, Email: x("ines@acme.example"), Problem: x("E-mail or password is wrong."), OIDCName: x("Acme SSO"), CanSignUp: true})},
		{"projects", Projects(ProjectsProps{Layout: Layout{Title: "Projects", Assets: outside.Assets, Now: sampleNow(), Projects: layout("", "").Projects, User: layout("", "").User}, CanCreate: true, CanRequest: true,
			Projects: []ProjectRow{{ID: "project_1", Name: x("Acme Market"), Role: "owner", OpenAlerts: 3, LastEventAt: at("18:13:40.000")}, {ID: "project_2", Name: x("Lumen Books"), Role: "on-call", LastEventAt: at("11:13:40.000")}},
			Requests: []OwnRequest{{Project: x("Kestrel"), State: "pending", At: at("12:00:00.000")}, {Project: x("Tern"), State: "declined", At: at("09:00:00.000")}}})},
		{"tasks", Tasks(sampleTasks(x))},
		{"tasks-flash", Tasks(flashed)},
		{"tasks-empty", Tasks(noTasks)},
		{"task", Task(sampleTask(x))},
		{"task-done", Task(done)},
		{"endpoints", Endpoints(EndpointsProps{Layout: layout(SectionEndpoints, "Endpoints"), Rows: sampleEndpointRows(x), CanCreate: true})},
		{"endpoints-empty", Endpoints(EndpointsProps{Layout: layout(SectionEndpoints, "Endpoints"), CanCreate: true})},
		{"endpoint", Endpoint(sampleEndpoint(x, Failing))},
		{"endpoint-disabled", Endpoint(sampleEndpoint(x, Disabled))},
		{"endpoint-form", EndpointForm(sampleEndpointForm(x, map[string]string{"url": x("localhost cannot be reached from here; use a public address.")}))},
		{"endpoint-secret", ShownOnce(SecretProps{Layout: layout(SectionEndpoints, "Secret"), Title: x("Endpoint created"), Label: "Signing secret", Value: x("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw3b5wK0pQ1aA="), Note: x("Give it to the receiver: it verifies each webhook with it."), NextURL: x("/p/x/endpoints/e"), NextLabel: x("To the endpoint")})},
		{"redeliver", Redeliver(RedeliverProps{Layout: layout(SectionEndpoints, "Redeliver"), ID: "endpoint_01", Name: x("hooks.northwind.example"), Scope: "all", Since: "2026-11-26T09:00", Discarded: 100, Missed: 32, ConfirmWord: x("redeliver 132"), ConfirmProblem: x("Type it exactly as shown.")})},
		{"events", Events(sampleEvents(x))},
		{"events-empty", Events(EventsProps{Layout: layout(SectionEvents, "Events"), CanPublish: true, PublishCommand: sampleEvents(x).PublishCommand, Periods: []Option{{"24h", "Last 24 hours"}}})},
		{"event", Event(sampleEvent(x))},
		{"error", Error(ErrorProps{Layout: layout("", "Not found"), Status: 404, Title: "There is nothing here", Sentence: x("The page does not exist, or it belongs to a project you are not in."), RequestID: x("req_01kb7m3q8y"), Inside: true})},
	}
}

func allSamplePages(x text) []sample { return append(samplePages(x), moreSamplePages(x)...) }
