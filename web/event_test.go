package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"entrega/internal/events"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

func TestEvents_TestEventIsPublishedAsTyped(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	list := views.EventsURL(p.ours.ID, views.EventFilter{})
	page := b.open(list)
	if !page.says("No events yet") || !strings.Contains(page.body, "/v1/events") {
		t.Error("the empty list does not teach the first event")
	}
	action := views.PublishTestURL(p.ours.ID)
	refused := b.send(page, action, url.Values{"type": {"order created"}, "data": {`{"a":`}})
	if refused.status != http.StatusUnprocessableEntity || text(refused.byID("problem-type")) == "" || text(refused.byID("problem-data")) == "" {
		t.Errorf("status %d, want 422 with a sentence for each field", refused.status)
	}
	if got := text(refused.byID("f-data")); got != `{"a":` {
		t.Errorf("the data came back as %q", got)
	}
	data := `{"amount": 12345678901234567890.10, "note": "` + strings.ReplaceAll(nasty, `"`, `\"`) + `"}`
	done := b.submit(page, action, url.Values{"type": {"order.created"}, "data": {data}, "subscriber": {"acme"}})
	if done.heading() != "order.created" || !strings.Contains(done.flash(), "was published") || !strings.HasPrefix(done.sentence(), "Queued") {
		t.Errorf("after publishing: %q, %q, %q", done.heading(), done.flash(), done.sentence())
	}
	if !strings.Contains(raw(done.byID("main")), data) {
		t.Error("the payload is not shown byte for byte")
	}
	var audited int
	p.scan(&audited, `select count(*) from audit_log where project_id = $1 and action = 'event.publish_test'`, p.ours.ID)
	if audited != 1 {
		t.Errorf("%d audit rows, want 1", audited)
	}
}

func TestEvent_TellsWhichEndpointsWereConsidered(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, hook := p.start(), p.receiver(with(http.StatusOK, ""))
	taking := p.newEndpoint(p.ours, webhooks.Settings{URL: hook.url})
	other := p.newEndpoint(p.ours, webhooks.Settings{URL: hook.url, EventTypes: []string{"invoice.paid"}})
	customer := p.newEndpoint(p.ours, webhooks.Settings{URL: hook.url, Subscriber: "lumen"})
	task := n.deliver(p.ours, taking, events.New{Type: "order.created", Data: []byte(`{}`), Subscriber: "acme"}, jobs.StateCompleted)
	b := p.as("owner")
	page := b.open(views.EventURL(p.ours.ID, task.EventID))
	rows := page.rows()
	for id, want := range map[string]string{taking.ID: "Completed", other.ID: "it does not take this type", customer.ID: "it belongs to another subscriber"} {
		if !strings.Contains(rows[id], want) {
			t.Errorf("the row of %s says %q, want %q", id, rows[id], want)
		}
	}
	if !strings.Contains(page.sentence(), "1 of 1 delivered. 2 endpoints were passed over.") {
		t.Errorf("the page says %q", page.sentence())
	}
	for outcome, want := range map[string]int{"delivered": 1, "failed": 0, "queued": 0, "under way": 0, "unmatched": 0, "poisoned": 0, "": 1} {
		if got := len(b.open(views.EventsURL(p.ours.ID, views.EventFilter{Outcome: outcome})).rows()); got != want {
			t.Errorf("outcome %q lists %d events, want %d", outcome, got, want)
		}
	}
	again := b.submit(page, views.RedeliverEventURL(p.ours.ID, task.EventID), nil)
	if !strings.Contains(again.flash(), "on its way to 1 endpoint again") {
		t.Errorf("the flash says %q", again.flash())
	}
	n.await("a second delivery", func() bool {
		var done int
		p.scan(&done, `select count(*) from river_job where event_id = $1 and kind = 'webhook.deliver' and state = 'completed'`, task.EventID)
		return done == 2
	})
}

func TestEvent_WhoseDeliveryRunsIsUnderWay(t *testing.T) {
	t.Parallel()
	p := setup(t)
	id := p.publish(p.ours, events.New{Type: "order.created", Data: []byte(`{}`)})
	p.exec(`with done as (delete from event_outbox where event_id = $1 returning seq)
		insert into event_outcomes (seq, fanned_out_at, considered_at, deliveries) select seq, now(), now(), 1 from done`, id)
	p.exec(`insert into river_job (state, kind, queue, args, metadata, attempt, max_attempts, attempted_at) values ('running', 'webhook.deliver', 'webhook', '{}',
		jsonb_build_object('project_id', $1::text, 'event_id', $2::text, 'endpoint_id', 'endpoint_1'), 1, 15, now())`, p.ours.ID, id)
	b := p.as("owner")
	if rows := b.open(views.EventsURL(p.ours.ID, views.EventFilter{Outcome: "under way"})).rows(); rows[id] == "" {
		t.Errorf("the events under way are %v, want the one whose delivery runs", rows)
	}
}

func TestEvent_WhoseTasksRetentionRemovedIsNotCalledDelivered(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, hook := p.start(), p.receiver(with(http.StatusOK, ""))
	task := n.deliver(p.ours, p.newEndpoint(p.ours, webhooks.Settings{URL: hook.url}), events.New{Type: "order.created", Data: []byte(`{}`)}, jobs.StateCompleted)
	p.exec(`delete from river_job where id = $1`, task.ID)
	b := p.as("owner")
	page := b.open(views.EventURL(p.ours.ID, task.EventID))
	if !strings.HasPrefix(page.sentence(), "Past retention") || !strings.Contains(page.sentence(), "1 task removed by retention") {
		t.Errorf("the page says %q, want that its task was removed", page.sentence())
	}
	if row := b.open(views.EventsURL(p.ours.ID, views.EventFilter{Outcome: string(views.OutcomeRemoved)})).rows()[task.EventID]; !strings.Contains(row, "Past retention") {
		t.Errorf("the row reads %q", row)
	}
}

func TestEvent_PoisonedIsRequeued(t *testing.T) {
	t.Parallel()
	p := setup(t)
	id := p.publish(p.ours, events.New{Type: "order.created", Data: []byte(`{}`)})
	p.exec(`update event_outbox set poisoned_at = now(), relay_failures = 5, relay_error = $2 where event_id = $1`, id, "It broke "+nasty)
	b := p.as("on-call")
	page := b.open(views.EventURL(p.ours.ID, id))
	if !strings.HasPrefix(page.sentence(), "Poisoned") || !page.says("It broke <script>") {
		t.Errorf("the page says %q, want why it is poisoned", page.sentence())
	}
	after := b.submit(page, views.RequeueEventURL(p.ours.ID, id), nil)
	if !strings.HasPrefix(after.sentence(), "Queued") || !strings.Contains(after.flash(), "in the queue again") {
		t.Errorf("after the requeue: %q, %q", after.sentence(), after.flash())
	}
}

func TestEvent_LargePayloadIsCutAndDownloadedWhole(t *testing.T) {
	t.Parallel()
	p := setup(t)
	data := `{"text":"` + strings.Repeat("é", 20<<10) + `"}`
	id := p.publish(p.ours, events.New{ID: "large", Type: "order.created", Data: []byte(data)})
	b := p.as("owner")
	page := b.open(views.EventURL(p.ours.ID, id))
	if !page.says("The first 16 KiB of 40 KiB.") || strings.Contains(page.body, "\ufffd") {
		t.Error("the page does not say that it cuts the payload, or cuts through a character")
	}
	download := b.open(views.EventPayloadURL(p.ours.ID, id))
	if download.body != data || download.header.Get("Content-Disposition") != `attachment; filename="large.json"` || download.header.Get("Content-Type") != "application/json" {
		t.Error("the download is not the whole payload as it was published")
	}
}
