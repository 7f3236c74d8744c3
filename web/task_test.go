package web_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"entrega/internal/events"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

// nasty is text that would do something if it were not treated as text.
const nasty = `<script>alert(1)</script><img src=x onerror=alert(2)>"'` + "`${3}`"

func TestTask_TellsWhyItFailedAndRetryCompletesIt(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, hook := p.start(), p.receiver(with(http.StatusServiceUnavailable, "upstream "+nasty))
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: hook.url + "/hooks/orders", Description: "Northwind " + nasty, Headers: map[string]string{"X-Version": "2"}})
	data := `{"orderId":"SO-1","amount":12345678901234567890.10,"note":"` + strings.ReplaceAll(nasty, `"`, `\"`) + `"}`
	task := n.deliver(p.ours, e, events.New{Type: "order.created", Data: []byte(data)}, jobs.StateRetryable)
	id := strconv.FormatInt(task.ID, 10)

	b := p.as("on-call")
	page := b.open(views.TaskURL(p.ours.ID, id))
	if got, want := page.sentence(), "Attempt 1 of 18 answered 503. The next attempt is due in"; !strings.Contains(got, want) || !strings.HasPrefix(got, "Retryable") {
		t.Errorf("the page says %q, want %q", got, want)
	}
	if !page.says("chain verified, 1 record") {
		t.Error("the page does not say that the evidence was verified")
	}
	exchange := text(page.byID("exchange"))
	for _, want := range []string{"POST /hooks/orders", "x-version: 2", "webhook-signature: v1,", "HTTP 503 Service Unavailable", "12345678901234567890.10", "upstream <script>alert(1)</script>"} {
		if !strings.Contains(exchange, want) {
			t.Errorf("request and response do not show %q:\n%s", want, exchange)
		}
	}
	if !strings.Contains(raw(page.byID("exchange")), `"data":`+data+`}`) {
		t.Error("the payload is not shown byte for byte")
	}
	for n := range page.doc.Descendants() {
		if n.Data == "script" && n.FirstChild != nil || n.Data == "img" || attr(n, "onerror") != "" {
			t.Errorf("text became markup: %s", n.Data)
		}
	}

	hook.answers(with(http.StatusOK, "thanks"))
	after := b.submit(page, views.RetryTaskURL(p.ours.ID, id), nil)
	if want := "Task " + id + " will be tried again now."; after.flash() != want {
		t.Errorf("the flash says %q, want %q", after.flash(), want)
	}
	n.reach(p.ours, task.ID, jobs.StateCompleted)
	done := b.open(views.TaskURL(p.ours.ID, id))
	if want := "Attempt 2 of 18 answered 200 in"; !strings.HasPrefix(done.sentence(), "Completed") || !strings.Contains(done.sentence(), want) {
		t.Errorf("the page says %q, want %q", done.sentence(), want)
	}
	if done.flash() != "" {
		t.Errorf("the flash is shown twice: %q", done.flash())
	}
	if !done.says("chain verified, 2 records") || !done.says("retried the task") || !done.says("on-call@example.com") {
		t.Error("the page lacks the second record or the click with its person")
	}
	if len(done.rows()) != 2 {
		t.Errorf("%d attempts are listed, want 2", len(done.rows()))
	}
	first := b.open(views.TaskURL(p.ours.ID, id) + "?attempt=1")
	if !strings.Contains(text(first.byID("exchange")), "HTTP 503") {
		t.Error("the first attempt cannot be chosen")
	}
}

func TestTask_RefusalsComeBackAsASentence(t *testing.T) {
	t.Parallel()
	p := setup(t)
	ours := p.newThings(p.ours)
	b := p.as("owner")
	path := views.TaskURL(p.ours.ID, ours["tasks"])
	answer := b.post(views.RetryTaskURL(p.ours.ID, ours["tasks"]), url.Values{"return": {path}})
	if answer.status != http.StatusSeeOther || answer.location != path {
		t.Fatalf("status %d to %q, want 303 to the task", answer.status, answer.location)
	}
	page := b.open(answer.location)
	if !strings.Contains(page.flash(), "already queued") || !strings.Contains(attr(page.byID("flash"), "class"), "failed") {
		t.Errorf("the flash says %q, want why not, as a failure", page.flash())
	}
	plain := b.post(views.RetryTaskURL(p.ours.ID, ours["tasks"]), url.Values{"return": {"https://evil.example/"}})
	if plain.status != http.StatusConflict || !plain.says("already queued") {
		t.Errorf("with a foreign return address: status %d, want a 409 page", plain.status)
	}
	cancelled := b.submit(b.open(path), views.CancelTaskURL(p.ours.ID, ours["tasks"]), nil)
	if !strings.Contains(cancelled.flash(), "was cancelled") || !strings.HasPrefix(cancelled.sentence(), "Cancelled") {
		t.Errorf("after the cancel: %q, %q", cancelled.flash(), cancelled.sentence())
	}
}

func TestTask_ReadsRetryAfterOutLoud(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{"soon": "ignored: not a delay or date", "3600": "used: waits 1 hour", "999999999": "longer than the policy allows, capped: waits 10 hours"} {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			n, hook := p.start(), p.receiver(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", raw)
				w.WriteHeader(http.StatusTooManyRequests)
			})
			e := p.newEndpoint(p.ours, webhooks.Settings{URL: hook.url})
			state := jobs.StateSnoozed
			if raw == "soon" {
				state = jobs.StateRetryable
			}
			task := n.deliver(p.ours, e, events.New{Type: "order.created", Data: []byte(`{}`)}, state)
			page := p.as("owner").open(views.TaskURL(p.ours.ID, strconv.FormatInt(task.ID, 10)))
			if got := text(page.byID("exchange")); !strings.Contains(got, "retry-after: "+raw+" "+want) {
				t.Errorf("the page says %q, want retry-after: %s with %q", got, raw, want)
			}
		})
	}
}

func TestTask_CutsLongAnswersAndHidesBinaryOnes(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n := p.start()
	for want, body := range map[string]string{
		"The first 16 KiB. The rest was not kept.": strings.Repeat("é", 20<<10),
		"The body is not text (4 B).":              "\xff\xfe\x00\x01",
	} {
		hook := p.receiver(with(http.StatusBadRequest, body))
		e := p.newEndpoint(p.ours, webhooks.Settings{URL: hook.url, Subscriber: strconv.Itoa(len(body))})
		task := n.deliver(p.ours, e, events.New{Type: "order.created", Subscriber: strconv.Itoa(len(body)), Data: []byte(`{}`)}, jobs.StateDiscarded)
		page := p.as("owner").open(views.TaskURL(p.ours.ID, taskPath(task)))
		if !page.says(want) || strings.Contains(page.body, "\ufffd") {
			t.Errorf("the page does not say %q, or cuts through a character: %s", want, text(page.byID("exchange"))[:200])
		}
	}
}

func TestViewer_SeesNoPayloadsHeadersOrAddresses(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, hook := p.start(), p.receiver(with(http.StatusInternalServerError, "response-secret"))
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: hook.url + "/path-secret?key=query-secret", Headers: map[string]string{"X-Custom": "header-secret"}})
	task := n.deliver(p.ours, e, events.New{Type: "order.created", Data: []byte(`{"card":"payload-secret"}`), Metadata: map[string]string{"trace": "meta-secret"}}, jobs.StateRetryable)
	paths := []string{
		views.OverviewURL(p.ours.ID), views.TasksURL(p.ours.ID, views.TaskFilter{}), views.TaskURL(p.ours.ID, strconv.FormatInt(task.ID, 10)),
		views.EventsURL(p.ours.ID, views.EventFilter{}), views.EventURL(p.ours.ID, task.EventID),
		views.EndpointsURL(p.ours.ID, views.EndpointFilter{}), views.EndpointURL(p.ours.ID, e.ID), views.TeamURL(p.ours.ID),
		views.AuditURL(p.ours.ID, views.AuditFilter{}), views.KeysURL(p.ours.ID), views.SettingsURL(p.ours.ID), views.PoliciesURL(p.ours.ID),
		views.TasksCSVURL(p.ours.ID, views.TaskFilter{}), views.EventsCSVURL(p.ours.ID, views.EventFilter{}), views.AuditCSVURL(p.ours.ID, views.AuditFilter{}),
	}
	viewer, owner := p.as("viewer"), p.as("owner")
	seen := ""
	for _, path := range paths {
		body := viewer.open(path).body
		for _, secret := range []string{"payload-secret", "response-secret", "header-secret", "path-secret", "query-secret", "meta-secret", "owner@example.com"} {
			if strings.Contains(body, secret) {
				t.Errorf("%s shows a viewer %s", path, secret)
			}
		}
		for _, action := range viewer.open(path).actions() {
			if action != "/logout" && !strings.HasSuffix(action, "/remove") {
				t.Errorf("%s offers a viewer the action %s", path, action)
			}
		}
		seen += owner.open(path).body
	}
	for _, secret := range []string{"payload-secret", "response-secret", "header-secret", "path-secret", "query-secret", "meta-secret", "owner@example.com"} {
		if !strings.Contains(seen, secret) {
			t.Errorf("no page shows the owner %s, so the test proves nothing", secret)
		}
	}
}
