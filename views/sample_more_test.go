package views

import (
	"math"
	"strconv"
	"time"
)

func sampleAlerts(x text) []AlertRow {
	now := sampleNow()
	return []AlertRow{
		{ID: "1", State: "open", Tone: Bad, Title: "Endpoint disabled", Subject: x("old.partner.example"), Text: x("failed 20 times in a row since 26 Nov 09:14 UTC. 132 deliveries were discarded."), Count: 1, FirstAt: now.Add(-72 * time.Hour), LastAt: now.Add(-72 * time.Hour), Endpoint: "endpoint_03", Redeliver: 132, CanReactivate: true, CanRedeliver: true, CanAcknowledge: true, CanResolve: true},
		{ID: "2", State: "open", Tone: Bad, Title: "6 mails discarded", Subject: x("order.notification"), Text: x("the mail server refused the recipients."), Count: 6, FirstAt: now.Add(-3 * time.Hour), LastAt: now.Add(-14 * time.Minute), HasTasks: true, Tasks: TaskFilter{State: "discarded", Kind: "order.notification"}, CanAcknowledge: true},
		{ID: "3", State: "open", Tone: Warn, Title: "Endpoint failing", Subject: x("hooks.northwind.example"), Text: x("is at half of its disable rule: failing for 2 d 12 h of 5 d."), Count: 14, FirstAt: now.Add(-3 * time.Hour), LastAt: now.Add(-4 * time.Minute), Endpoint: "endpoint_01", CanAcknowledge: true, CanResolve: true},
	}
}

func sampleOutcomes() Bars {
	b := Bars{ID: "outcomes", Title: "Attempts per half hour", From: "24 h ago", To: "now", Series: []Series{{"delivered", Good}, {"retried", Warn}, {"discarded", Bad}}}
	for i := range 48 {
		f := float64(i)
		v := []int{int(3000 + 1500*math.Sin(f/6) + 300*math.Sin(f*3)), 180 + int(60*math.Sin(f*5)), 8}
		if i > 28 && i < 36 {
			v[0], v[1], v[2] = v[0]/2, v[1]+1300, v[2]+240
		}
		b.Buckets = append(b.Buckets, Bucket{At: sampleNow().Add(time.Duration(i-48) * 30 * time.Minute), Values: v})
	}
	return b
}

func sampleForecast() Bars {
	b := Bars{ID: "forecast", Title: "Retries due per quarter of an hour", From: "now", To: "in 24 h", Series: []Series{{"retries due", Warn}}}
	for i := range 96 {
		b.Buckets = append(b.Buckets, Bucket{At: sampleNow().Add(time.Duration(i) * 15 * time.Minute), Values: []int{int(math.Max(0, 40*math.Exp(-float64(i)/20)+8*math.Sin(float64(i)/3)))}})
	}
	return b
}

func standardSchedule() Schedule {
	s := Schedule{Jitter: .1, Waits: []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour}}
	for len(s.Waits) < 17 {
		s.Waits = append(s.Waits, 10*time.Hour)
	}
	return s
}

func samplePolicyRows(x text) []PolicyRow {
	compact := Schedule{Jitter: .2}
	for _, m := range []int{0, 2, 10, 30, 120, 360, 720, 1440} {
		compact.Waits = append(compact.Waits, time.Duration(max(m, 1))*time.Minute)
	}
	doubling := Schedule{Jitter: .1}
	full := Schedule{Full: true}
	for i := range 9 {
		doubling.Waits = append(doubling.Waits, min(time.Second<<i, 15*time.Minute))
		if i < 5 {
			full.Waits = append(full.Waits, min(5*time.Second<<i, 5*time.Minute))
		}
	}
	return []PolicyRow{
		{Policy: PolicyRef{Kind: "webhook.deliver", Profile: "standard", Version: 4, Hash: "9c1f0a77d1b2c3d4"}, Schedule: standardSchedule(), Waits: x("5 s, 5 min, 30 min, 2 h, 5 h, then 10 h each"), Timeout: x("10 s, connect 3 s"), GivesUp: x("7 d"), Exhausted: x("discarded, alert"), Own: true},
		{Policy: PolicyRef{Kind: "webhook.deliver", Profile: "compact", Version: 1, Hash: "1c1f0a77d1b2c3d4"}, Schedule: compact, Waits: x("30 s, 2 min, 10 min, 30 min, 2 h, 6 h, 12 h, 24 h"), Timeout: x("10 s"), GivesUp: x("3 d"), Exhausted: x("discarded, alert")},
		{Policy: PolicyRef{Kind: "webhook.fanout", Version: 1, Hash: "2c1f0a77d1b2c3d4"}, Schedule: doubling, Waits: x("1 s doubling, cap 15 min"), Timeout: x("30 s"), Exhausted: x("discarded, alert")},
		{Policy: PolicyRef{Kind: "order.notification", Version: 2, Hash: "3c1f0a77d1b2c3d4"}, Schedule: full, Waits: x("5 s doubling, cap 5 min"), Timeout: x("30 s"), GivesUp: x("15 min"), Exhausted: x("discarded, alert")},
		{Policy: PolicyRef{Kind: "periodic", Version: 1, Hash: "4c1f0a77d1b2c3d4"}, Periodic: true, Waits: x("none"), Timeout: x("10 min"), Exhausted: x("alert after 3")},
	}
}

func sampleRoles() []Option {
	return []Option{{"owner", "owner: everything"}, {"on-call", "on-call: see, retry, cancel, redeliver"}, {"viewer", "viewer: see, with payloads masked"}}
}

func sampleAdminSystem(x text) AdminSystemProps {
	now := sampleNow()
	return AdminSystemProps{
		Layout: sampleLayout(x, SectionAdminSystem, "System"),
		Nodes: []Node{
			{Name: x("node_5f3c2a9b1e07"), Host: x("node-a"), Version: "1.0.0", StartedAt: now.Add(-50 * time.Hour), LastSeenAt: now.Add(-2 * time.Second), Leader: true},
			{Name: x("node_77d01c4e8a2f"), Host: x("node-b"), Version: "1.0.0", StartedAt: now.Add(-50 * time.Hour), LastSeenAt: now.Add(-4 * time.Second)},
		},
		Queues: []Queue{
			{Name: "webhook", Workers: 200, Running: 12, Waiting: 10_000, WaitingCapped: true, OldestAt: now.Add(-8 * time.Second)},
			{Name: "notify", Workers: 8, Running: 0, Waiting: 3, OldestAt: now.Add(-time.Minute), PausedAt: now.Add(-2 * time.Minute)},
			{Name: "maintenance", Workers: 2},
		},
		Outbox:   Outbox{Backlog: 41, Failing: 2, Poisoned: 1, OldestAt: now.Add(-3 * time.Second)},
		Tables:   []TableSize{{"attempt", 10_400_000, 4_200_000_000}, {"river_job", 1_000_000, 900_000_000}, {"event", 410_000, 700_000_000}},
		Database: 6_120_000_000,
		Waiting:  []WaitingPerson{{ID: "user_1", Email: x("rui@acme.example"), At: now.Add(-time.Hour)}},
		Facts:    []Fact{{"Entrega", x("1.0.0")}, {"Schema", "8"}, {"River", "6"}, {"Postgres", x("17.2")}},
	}
}

// moreSamplePages are the pages beside tasks, endpoints and events.
func moreSamplePages(x text) []sample {
	now := sampleNow()
	layout := func(s Section, title string) Layout { return sampleLayout(x, s, title) }
	outside := func(title string) Layout {
		return Layout{Title: title, Assets: layout("", "").Assets, Now: now}
	}
	overview := OverviewProps{
		Layout: layout(SectionOverview, "Overview"), Alerts: sampleAlerts(x)[:2], MoreAlerts: 1, Delivered: 183640, DeliveredRatio: .9986, Ended: 183891,
		Waiting: 255, NextDueAt: now.Add(28 * time.Second), AttemptsPerDelivery: 1.04, P50: 21 * time.Millisecond, P95: 84 * time.Millisecond,
		Outcomes: sampleOutcomes(), Attention: sampleEndpointRows(x)[:3],
	}
	fresh := OverviewProps{Layout: layout(SectionOverview, "Overview"), New: true, HasEndpoint: true, CanCreate: true, PublishCommand: sampleEvents(x).PublishCommand}
	alerts := AlertsProps{Layout: layout(SectionAlerts, "Alerts"), State: "open", Open: 3, Acknowledged: 1, Resolved: 48, Rows: sampleAlerts(x)}
	alerts.Rows = append(alerts.Rows,
		AlertRow{ID: "4", State: "acknowledged", Tone: Warn, Title: "Backlog", Subject: x("outbox"), Text: x("1,204 events wait for their fan-out."), Count: 3, FirstAt: now.Add(-2 * time.Hour), LastAt: now.Add(-time.Hour), By: x("Inês Duarte"), CanResolve: true},
		AlertRow{ID: "5", State: "resolved", Tone: Bad, Title: "Signature refused", Subject: x("api.lumen.example"), Text: x("answered 401: the receiver refuses the signature or credentials: send a test."), Count: 1, LastAt: now.Add(-5 * time.Hour), By: x("its cause is gone")})
	health := HealthProps{
		Layout: layout(SectionHealth, "Retry health"), Period: "7d", Periods: []Option{{"24h", "Last 24 hours"}, {"7d", "Last 7 days"}},
		Policies: []PolicyHealth{
			{Policy: samplePolicyRows(x)[0].Policy, Ended: 183640, AttemptsPerDelivery: 1.04, FirstTry: .972, Recovered: 4911, Exhausted: 251},
			{Policy: samplePolicyRows(x)[2].Policy, Ended: 45910, AttemptsPerDelivery: 1, FirstTry: 1, Recovered: 2, Exhausted: 0},
			{Policy: samplePolicyRows(x)[3].Policy, Ended: 812, AttemptsPerDelivery: 1.31, FirstTry: .84, Recovered: 122, Exhausted: 6},
		},
		Decisions: []DecisionCount{{"ALLOWED", "server_error", x("webhook.deliver, standard"), 4120}, {"ALLOWED", "timeout", x("webhook.deliver, standard"), 980}, {"ABORTED", "attempts_used_up", x("order.notification"), 6}, {"IGNORED", "rejected", x("webhook.deliver, standard"), 31}},
		Worst:     []WorstEndpoint{{ID: "endpoint_03", Name: x("old.partner.example"), Attempts: 401, Failed: 401, Strip: sampleStrip(7, 0), TopReason: x("410 Gone")}, {ID: "endpoint_01", Name: x("hooks.northwind.example"), Attempts: 900, Failed: 212, Strip: sampleStrip(3, .4), TopReason: x("timeout, phase headers")}},
		Forecast:  sampleForecast(),
	}
	periodic := PeriodicProps{Layout: layout(SectionPeriodic, "Periodic"), Rows: []PeriodicRow{
		{Name: "retention.prune", Does: x("drops partitions past their retention"), Schedule: x("every hour at :05"), LastAt: now.Add(-9 * time.Minute), Took: 812 * time.Millisecond, NextAt: now.Add(51 * time.Minute), CanRun: true},
		{Name: "outbox.sweep", Does: x("wakes the relay"), Schedule: x("every minute"), LastAt: now.Add(-7 * time.Second), Running: true, NextAt: now.Add(53 * time.Second), CanRun: true},
		{Name: "evidence.verify", Does: x("recomputes yesterday's chains"), Schedule: x("daily at 03:10 UTC"), LastAt: now.Add(-15 * time.Hour), Failed: x("no answer from the database in 10 min"), FailedInARow: 3, NextAt: now.Add(9 * time.Hour), CanRun: true},
	}}
	policy := PolicyProps{
		Layout: layout(SectionPolicies, "Policy"), Row: samplePolicyRows(x)[0],
		Document: x("kind: webhook.deliver\nprofile: standard\nattempts: 18\nwaits: [5s, 5m, 30m, 2h, 5h, 10h]\njitter: 10%\ntimeout: {total: 10s, connect: 3s}\nhorizon: 168h\n"),
		Classes:  []Fact{{"410", x("discard, endpoint disabled")}, {"429", x("snooze, lane pauses")}},
		Versions: []PolicyVersion{{4, "9c1f0a77d1b2c3d4e5", now.Add(-24 * time.Hour), true}, {3, "8c1f0a77d1b2c3d4e5", now.Add(-240 * time.Hour), false}, {1, "7c1f0a77d1b2c3d4e5", now.Add(-900 * time.Hour), false}},
		DiffOf:   4, Diff: []DiffLine{{Text: x("attempts: 18")}, {Removed: true, Text: x("horizon: 120h")}, {Added: true, Text: x("horizon: 168h")}},
	}
	simulate := SimulateProps{
		Layout: layout(SectionPolicies, "Simulate"), Policy: "webhook.deliver/standard", Policies: []Option{{"webhook.deliver/standard", "webhook.deliver, standard"}, {"webhook.fanout", "webhook.fanout"}},
		Outcomes: x("500\ntimeout\n429 120\n410"), Ends: x("Discarded after attempt 3: the receiver answered 410."),
		Steps: []SimulatedStep{
			{1, x("500"), "retry_scheduled", "ALLOWED", "server_error", 5 * time.Second, 5180 * time.Millisecond, 5180 * time.Millisecond},
			{2, x("timeout"), "retry_scheduled", "ALLOWED", "timeout", 5 * time.Minute, 309 * time.Second, 314 * time.Second},
			{3, x("429 120"), "snoozed", "ALLOWED", "retry_after", 0, 120 * time.Second, 434 * time.Second},
			{3, x("410"), "permanent_failure", "IGNORED", "gone", 0, 0, 0},
		},
	}
	team := TeamProps{
		Layout: layout(SectionTeam, "Team"), Roles: sampleRoles(), ProjectID: "project_01kb7m3q8yf5z",
		Members: []Member{
			{ID: "1", Email: x("ines@acme.example"), Role: "owner", Since: now.Add(-2000 * time.Hour), LastSeenAt: now, You: true},
			{ID: "2", Email: x("tomas@acme.example"), Role: "on-call", Since: now.Add(-500 * time.Hour), LastSeenAt: now.Add(-2 * time.Hour), CanChange: true, CanRemove: true},
			{ID: "3", Email: x("audit@firm.example"), Role: "viewer", Since: now.Add(-50 * time.Hour), CanChange: true, CanRemove: true},
		},
		Requests: []AccessRequest{
			{ID: "1", Email: x("rui@acme.example"), Reason: x("I take over on-call in December."), At: now.Add(-3 * time.Hour), State: "pending", Mail: "sent", CanDecide: true},
			{ID: "2", Email: x("eva@acme.example"), Reason: x("Finance"), At: now.Add(-30 * time.Hour), State: "declined", Mail: "failed", MailNote: x("550 5.1.1 mailbox unknown"), DecidedBy: x("Inês Duarte")},
		},
	}
	keys := KeysProps{
		Layout: layout(SectionKeys, "API keys"), CanCreate: true,
		Scopes: []ScopeChoice{{"publish", "publish events", true}, {"read", "read events, tasks and endpoints", false}, {"manage", "create and change endpoints, retry and redeliver", false}},
		Rows: []KeyRow{
			{ID: "1", Name: x("checkout service"), Prefix: "ek_7Hq2", Scopes: []string{"publish"}, CreatedBy: x("Inês Duarte"), CreatedAt: now.Add(-1400 * time.Hour), LastUsedAt: now.Add(-2 * time.Second), CanRevoke: true},
			{ID: "2", Name: x("dashboards"), Prefix: "ek_p0Zd", Scopes: []string{"read", "manage"}, CreatedBy: x("Tomás Reis"), CreatedAt: now.Add(-200 * time.Hour), CanRevoke: true},
			{ID: "3", Name: x("old backend"), Prefix: "ek_0xq1", Scopes: []string{"publish"}, CreatedBy: x("Inês Duarte"), CreatedAt: now.Add(-1400 * time.Hour), LastUsedAt: now.Add(-900 * time.Hour), RevokedAt: now.Add(-100 * time.Hour)},
		},
	}
	refused := keys
	refused.Name, refused.Problems = x("<b>"), map[string]string{"scope": x("Choose at least one scope.")}
	audit := AuditProps{Layout: layout(SectionAudit, "Audit"), Actors: []Option{{"1", x("Inês Duarte")}}, Actions: []Option{{"retry", "retried"}}, CanExport: true, Rows: []AuditRow{
		{At: now.Add(-time.Minute), Actor: x("Inês Duarte"), Action: x("retried the task"), Subject: x("task 184203"), SubjectURL: x("/p/x/tasks/184203"), Address: x("203.0.113.9")},
		{At: now.Add(-3 * time.Hour), Actor: x("Tomás Reis"), Action: x("reactivated the endpoint"), Subject: x("hooks.tern.example"), SubjectURL: x("/p/x/endpoints/1"), Reason: x("receiver is back")},
		{At: now.Add(-50 * time.Hour), Actor: "Entrega", Action: x("disabled the endpoint"), Subject: x("old.partner.example"), Reason: x("20 failures in a row")},
	}, Pager: Pager{OlderURL: "/p/x/audit?after=1"}}
	settings := SettingsProps{Layout: layout(SectionSettings, "Settings"), Name: x("Acme Market"), Profile: "standard", Profiles: []Option{{"standard", "standard"}, {"compact", "compact"}}, CanEdit: true, API: x("https://entrega.acme.example/v1"), SQL: x("select entrega.publish('project_1', 'order.created', '{}');"), Grant: x("grant usage on schema entrega to the_application;"), Facts: []Fact{{"Created", "30 Sep 2026"}, {"Attempts kept", "400 d"}, {"Payloads kept", "30 d"}}}
	settings.Problems = map[string]string{"name": x("Another project has this name.")}
	bulk := BulkProps{Layout: layout(SectionTasks, "Retry tasks"), Action: "retry", Filter: TaskFilter{State: "discarded"}, Words: []Fact{{"State", "discarded"}, {"Endpoint", x("old.partner.example")}, {"Period", "last 24 hours"}}, Count: 251, Left: []Fact{{"Left alone", "12: their endpoint is disabled"}}, ConfirmWord: "retry 251"}
	cancel := bulk
	cancel.Action, cancel.Count, cancel.ConfirmWord = "cancel", 38, ""
	run := BulkRunProps{Layout: layout(SectionTasks, "Retry tasks"), ID: "1", Action: "retry", State: "running", Total: 500, Done: 310, Succeeded: 300, Refused: 10, Reasons: []Fact{{x("already queued"), "10"}}, Words: bulk.Words, StartedAt: now.Add(-3 * time.Second), By: x("Inês Duarte"), CanCancel: true}
	account := AccountProps{Layout: outside("Account"), Provider: x("Acme SSO"), Email: x("ines@acme.example"), HasPassword: true, Problems: map[string]string{"password": x("Use at least 12 characters.")}, Sessions: []Session{
		{ID: "1", Device: x("Firefox on Linux"), Address: x("203.0.113.9"), CreatedAt: now.Add(-3 * time.Hour), LastSeenAt: now, Current: true},
		{ID: "2", Device: x("Safari on iPhone"), Address: x("203.0.113.77"), CreatedAt: now.Add(-90 * time.Hour), LastSeenAt: now.Add(-20 * time.Hour)},
	}}
	account.Layout.User, account.Layout.Projects = layout("", "").User, layout("", "").Projects
	projects := AdminProjectsProps{Layout: layout(SectionAdminProjects, "All projects"), Name: x("Acme"), Owner: x("ines@acme.example")}
	for i := range 5 {
		projects.Rows = append(projects.Rows, AdminProject{ID: "project_" + strconv.Itoa(i), Name: x("Acme Market " + strconv.Itoa(i)), Owners: x("ines@acme.example"), Members: 2 + i, Endpoints: 4 + i, Disabled: i % 2, OpenAlerts: i % 3, CreatedAt: now.Add(-time.Duration(i) * 24 * time.Hour), LastEventAt: now.Add(-time.Duration(i) * time.Minute)})
	}
	disabled := AdminDisabledProps{Layout: layout(SectionAdminDisabled, "Disabled endpoints"), Rows: []AdminDisabledRow{
		{Project: Project{"project_1", x("Acme Market")}, ID: "endpoint_03", Name: x("old.partner.example"), DisabledAt: now.Add(-72 * time.Hour), Reason: x("20 failures in a row"), Missed: 132, CanReactivate: true},
		{Project: Project{"project_2", x("Lumen Books")}, ID: "endpoint_09", Name: x("in.printer.example"), DisabledAt: now.Add(-100 * time.Hour), Reason: x("410 Gone"), Missed: 3, CanReactivate: true},
	}}
	return []sample{
		{"overview", Overview(overview)},
		{"overview-new", Overview(fresh)},
		{"alerts", Alerts(alerts)},
		{"alerts-empty", Alerts(AlertsProps{Layout: layout(SectionAlerts, "Alerts"), State: "open"})},
		{"health", RetryHealth(health)},
		{"periodic", Periodic(periodic)},
		{"policies", Policies(PoliciesProps{Layout: layout(SectionPolicies, "Policies"), Rows: samplePolicyRows(x), Profile: "standard", Profiles: settings.Profiles, CanChoose: true})},
		{"policy", Policy(policy)},
		{"simulate", Simulate(simulate)},
		{"team", Team(team)},
		{"keys", Keys(keys)},
		{"keys-refused", Keys(refused)},
		{"audit", Audit(audit)},
		{"settings", Settings(settings)},
		{"bulk", Bulk(bulk)},
		{"bulk-cancel", Bulk(cancel)},
		{"bulk-run", BulkRun(run)},
		{"account", Account(account)},
		{"signup", SignUp(SignUpProps{Layout: outside("Sign up"), Email: x("rui@acme"), Problems: map[string]string{"email": x("Write an address like you@example.com.")}, OIDCName: x("Acme SSO")})},
		{"signup-sent", SignUp(SignUpProps{Layout: outside("Sign up"), Sent: true, SentNote: x("Open the link in the mail that is on its way.")})},
		{"setup", SetUp(SetUpProps{Layout: outside("Set up"), Token: x("tok")})},
		{"confirm", Confirm(ConfirmProps{Layout: outside("Confirm"), Token: x("tok"), Email: x("rui@acme.example")})},
		{"confirm-address", ConfirmAddress(ConfirmAddressProps{Layout: outside("Confirm"), Token: x("tok"), Email: x("rui@acme.example"), Problem: x("taken")})},
		{"mail", Mail(sampleMail(x))},
		{"mail-none", Mail(MailProps{Layout: sampleLayout(x, SectionMail, "Mail"), NotifyCommand: x("curl https://entrega.example/v1/notifications"), Captures: true})},
		{"mail-one", Notification(sampleNotification(x))},
		{"mail-text", Notification(sampleMailSide(x, MailAsText))}, {"mail-headers", Notification(sampleMailSide(x, MailAsHeaders))},
		{"mail-source", Notification(sampleMailSide(x, MailAsSource))},
		{"suppressions", Suppressions(SuppressionsProps{Layout: sampleLayout(x, SectionMail, "Suppressions"), CanRemove: true, Pager: Pager{OlderURL: "/older"},
			Rows: []SuppressionRow{{ID: "suppression_1", Recipient: x("sales@acme.example"), Reason: x("hard bounce"), Detail: x("550 5.1.1 no such user"), NotificationID: x("notification_1"), At: sampleNow()}}})},
		{"mail-settings", MailSettings(sampleMailSettings(x))},
		{"admin-projects", AdminProjects(projects)},
		{"admin-disabled", AdminDisabled(disabled)},
		{"admin-audit", AdminAudit(AdminAuditProps{Layout: layout(SectionAdminAudit, "Installation audit"), Actions: []Option{{"user.log_in", "Logged in"}}, Rows: []AuditRow{
			{At: now, Actor: x("ines@acme.example"), Action: "logged in", Subject: x("user_1"), Project: &Project{}},
			{At: now, Actor: x("ines@acme.example"), Action: "retried the task", Subject: x("task 7"), SubjectURL: "/p/project_1/tasks/7", Project: &Project{"project_1", x("Acme Market")}},
		}})},
		{"admin-system", AdminSystem(sampleAdminSystem(x))},
	}
}
