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

func TestEndpoint_IsCreatedByAFormThatExplainsWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	action := views.EndpointsURL(p.ours.ID, views.EndpointFilter{})
	form := b.open(views.NewEndpointURL(p.ours.ID))
	refused := b.send(form, action, url.Values{"url": {"http://10.0.0.1/x"}, "description": {"My " + nasty}, "eventTypes": {"order created!"},
		"headers": {"host: evil\nno colon"}, "maxInFlight": {"many"}, "timeoutSeconds": {"99"}, "ratePerSecond": {"fast"}})
	if refused.status != http.StatusUnprocessableEntity {
		t.Fatalf("status %d, want 422", refused.status)
	}
	for field, value := range map[string]string{"url": "http://10.0.0.1/x", "description": "My " + nasty, "maxInFlight": "many"} {
		input := refused.byID("f-" + field)
		if attr(input, "value") != value {
			t.Errorf("the field %s came back as %q, want %q", field, attr(input, "value"), value)
		}
	}
	for _, field := range []string{"headers", "maxInFlight", "ratePerSecond"} {
		if attr(refused.byID("f-"+field), "aria-invalid") != "true" || text(refused.byID("problem-"+field)) == "" {
			t.Errorf("nothing is said about the field %s", field)
		}
	}
	domain := b.send(form, action, url.Values{"url": {"http://10.0.0.1/x"}, "eventTypes": {"order!"}, "headers": {"host: evil"}, "timeoutSeconds": {"99"}})
	for _, field := range []string{"url", "headers", "eventTypes", "timeoutSeconds"} {
		if text(domain.byID("problem-"+field)) == "" {
			t.Errorf("nothing is said about the field %s", field)
		}
	}

	created := b.send(form, action, url.Values{"url": {"http://127.0.0.1:9/hooks"}, "description": {"Northwind"}, "eventTypes": {"order.created\norder.paid"},
		"headers": {"Authorization: Bearer abc\nx-version: 2"}, "maxInFlight": {"4"}})
	if created.status != http.StatusOK || !strings.Contains(created.body, "whsec_") || created.heading() != "Endpoint created" {
		t.Fatalf("status %d (%s), want the secret", created.status, created.heading())
	}
	endpoint := b.open(hrefOf(t, created, "Go to the endpoint"))
	if endpoint.heading() != "Northwind" || !endpoint.says("x-version: 2") || !endpoint.says("authorization: (hidden)") || strings.Contains(endpoint.body, "Bearer abc") {
		t.Error("the endpoint's page does not show its settings, or shows its credentials")
	}
	secret := created.body[strings.Index(created.body, "whsec_"):][:30]
	if strings.Contains(endpoint.body, secret) {
		t.Error("the secret is shown again")
	}
}

func TestEndpoint_EditKeepsHiddenHeaders(t *testing.T) {
	t.Parallel()
	p := setup(t)
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: "http://127.0.0.1:9/hooks", EventTypes: []string{"order.created"}, Headers: map[string]string{"Authorization": "Bearer abc", "X-Version": "2"}})
	b := p.as("owner")
	path := views.EditEndpointURL(p.ours.ID, e.ID)
	form := b.open(path)
	if strings.Contains(form.body, "Bearer abc") {
		t.Error("the form shows the credentials")
	}
	after := b.submit(form, path, url.Values{"description": {"Renamed"}, "maxInFlight": {"8"}})
	if after.heading() != "Renamed" || !strings.Contains(after.flash(), "was changed") {
		t.Errorf("after the change: %q, %q", after.heading(), after.flash())
	}
	now, err := p.endpoints.EndpointByID(p.ctx, p.pool, p.ours.ID, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	if now.Headers["Authorization"] != "Bearer abc" || now.Headers["X-Version"] != "2" || now.MaxInFlight != 8 || len(now.EventTypes) != 1 {
		t.Errorf("the endpoint is %+v", now)
	}
}

func TestEndpoint_ActionsAnswerWithASentence(t *testing.T) {
	t.Parallel()
	p := setup(t)
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: "http://127.0.0.1:9/hooks"})
	b := p.as("owner")
	path := views.EndpointURL(p.ours.ID, e.ID)
	for _, step := range []struct {
		action, flash, health string
		fields                url.Values
	}{
		{views.TestEndpointURL(p.ours.ID, e.ID), "A test is on its way as task", "Unused", nil},
		{views.PauseEndpointURL(p.ours.ID, e.ID), "is paused", "Paused", nil},
		{views.ResumeEndpointURL(p.ours.ID, e.ID), "is resumed", "Unused", nil},
		{views.DisableEndpointURL(p.ours.ID, e.ID), "is disabled", "Disabled", url.Values{"reason": {"they " + nasty + " moved"}}},
		{views.ReactivateEndpointURL(p.ours.ID, e.ID), "is active again", "Unused", nil},
	} {
		page := b.submit(b.open(path), step.action, step.fields)
		if !strings.Contains(page.flash(), step.flash) || !strings.HasPrefix(page.sentence(), step.health) {
			t.Errorf("%s: %q and %q, want %q and %q", step.action, page.flash(), page.sentence(), step.flash, step.health)
		}
	}
	rotated := b.send(b.open(path), views.RotateSecretURL(p.ours.ID, e.ID), url.Values{"overlapHours": {"48"}})
	if rotated.status != http.StatusOK || !strings.Contains(rotated.body, "whsec_") || !rotated.says("48 more hours") {
		t.Errorf("rotation: status %d, want the new secret and how long the old one signs", rotated.status)
	}
	if secrets := strings.Count(text(b.open(path).byID("main")), "whsec_"); secrets != 2 {
		t.Errorf("%d secrets are listed, want 2", secrets)
	}
	gone := b.submit(b.open(path), views.DeleteEndpointURL(p.ours.ID, e.ID), nil)
	if gone.heading() != "Endpoints" || !strings.Contains(gone.flash(), "was deleted") || b.get(path).status != http.StatusNotFound {
		t.Errorf("after the deletion: %q, %q", gone.heading(), gone.flash())
	}
}

func TestEndpoint_DisabledIsReactivatedAndRedelivered(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, hook := p.start(), p.receiver(with(http.StatusGone, ""))
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: hook.url, Description: "Northwind"})
	task := n.deliver(p.ours, e, events.New{Type: "order.created", Data: []byte(`{}`)}, jobs.StateDiscarded)
	b := p.as("owner")
	path := views.EndpointURL(p.ours.ID, e.ID)

	page := b.open(path)
	if !strings.HasPrefix(page.sentence(), "Disabled") || !page.says("410, gone") {
		t.Errorf("the page says %q, want that it is gone", page.sentence())
	}
	overview := b.open(views.OverviewURL(p.ours.ID))
	if !strings.Contains(overview.rows()[e.ID], "Northwind") {
		t.Error("the overview does not list the endpoint among those that need attention")
	}
	refused := b.open(views.TaskURL(p.ours.ID, taskPath(task)))
	if refused.form(views.RetryTaskURL(p.ours.ID, taskPath(task))) != nil || !refused.says("Reactivate the endpoint first") {
		t.Error("a task of a disabled endpoint offers a retry, or does not say why not")
	}
	preview := b.open(views.RedeliverEndpointURL(p.ours.ID, e.ID))
	if !preview.says("Reactivate it first") {
		t.Error("the redelivery of a disabled endpoint does not say what comes first")
	}

	hook.answers(with(http.StatusOK, ""))
	b.submit(page, views.ReactivateEndpointURL(p.ours.ID, e.ID), nil)
	preview = b.open(hrefOf(t, b.open(path), "Redeliver 1"))
	if !preview.says("1 delivery will be sent again: 1 discarded, 0 missed.") {
		t.Errorf("the preview says %q", text(preview.byID("main")))
	}
	after := b.submit(preview, views.RedeliverEndpointURL(p.ours.ID, e.ID), nil)
	if after.heading() != "Redeliver tasks" || !strings.Contains(after.flash(), "1 delivery is on the way again") {
		t.Errorf("after the click: %q, %q, want the run", after.heading(), after.flash())
	}
	n.reach(p.ours, task.ID, jobs.StateCompleted)
	if got := b.open(path).sentence(); !strings.HasPrefix(got, "Healthy") {
		t.Errorf("the page says %q, want healthy", got)
	}
}

func TestRedeliver_OfManyAsksForAWord(t *testing.T) {
	t.Parallel()
	p := setup(t)
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: "http://127.0.0.1:9/"})
	for range 101 {
		p.newDelivery(p.ours, e, "event_1")
	}
	p.exec(`update river_job set state = 'discarded', finalized_at = now() where endpoint_id = $1`, e.ID)
	b := p.as("owner")
	action := views.RedeliverEndpointURL(p.ours.ID, e.ID)
	preview := b.open(action)
	if slip := b.send(preview, action, nil); slip.status != http.StatusUnprocessableEntity || !slip.says("Type the word redeliver") {
		t.Errorf("without the word: status %d, want 422", slip.status)
	}
	if bad := b.get(action + "?since=yesterday"); bad.status != http.StatusUnprocessableEntity && bad.status != http.StatusBadRequest {
		t.Errorf("a time that is none: status %d, want 422", bad.status)
	}
	if done := b.submit(preview, action, url.Values{"confirm": {"redeliver"}}); !strings.Contains(done.flash(), "101 deliveries are on the way") {
		t.Errorf("the flash says %q", done.flash())
	}
}

func TestEndpoints_ListFiltersByHealthAndSearch(t *testing.T) {
	t.Parallel()
	p := setup(t)
	names := map[string]string{}
	for _, name := range []string{"healthy", "failing", "rate limited", "paused", "disabled", "unused"} {
		names[name] = p.newEndpoint(p.ours, webhooks.Settings{URL: "http://127.0.0.1:9/" + url.PathEscape(name), Description: "The " + name + " one"}).ID
	}
	lane := func(set, name string) {
		p.exec(`update endpoint_lanes set `+set+` where endpoint_id = $1`, names[name])
	}
	lane(`last_success_at = now()`, "healthy")
	lane(`failing_since = now(), last_failure_at = now(), failures_in_a_row = 3`, "failing")
	lane(`pause_until = now() + interval '1 hour', last_failure_at = now()`, "rate limited")
	p.exec(`update endpoints set paused_at = now() where id = $1`, names["paused"])
	p.exec(`update endpoints set disabled_at = now(), disabled_reason = 'gone' where id = $1`, names["disabled"])
	b := p.as("owner")
	for name, id := range names {
		rows := b.open(views.EndpointsURL(p.ours.ID, views.EndpointFilter{Health: name})).rows()
		if len(rows) != 1 || rows[id] == "" {
			t.Errorf("health %q lists %v, want the %s one", name, rows, name)
		}
	}
	if rows := b.open(views.EndpointsURL(p.ours.ID, views.EndpointFilter{Query: "rate limited one"})).rows(); len(rows) != 1 {
		t.Errorf("the search lists %v, want one", rows)
	}
	if rows := p.as("viewer").open(views.EndpointsURL(p.ours.ID, views.EndpointFilter{Query: "9/healthy"})).rows(); len(rows) != 0 {
		t.Errorf("a viewer can guess at a masked address: %v", rows)
	}
}

func taskPath(t jobs.Task) string { return strconv.FormatInt(t.ID, 10) }
