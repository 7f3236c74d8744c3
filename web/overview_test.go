package web_test

import (
	"net/http"
	"strings"
	"testing"

	"entrega/internal/events"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

func TestOverview_GuidesANewProject(t *testing.T) {
	t.Parallel()
	p := setup(t)
	page := p.as("owner").open(views.OverviewURL(p.ours.ID))
	for _, want := range []string{"First steps", "Create an endpoint", "Create an API key", "/v1/events"} {
		if !page.says(want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	viewer := p.as("viewer").open(views.OverviewURL(p.ours.ID))
	for _, a := range find(viewer.doc, "a") {
		if attr(a, "href") == views.NewEndpointURL(p.ours.ID) {
			t.Error("a viewer is offered to create an endpoint")
		}
	}
}

func TestOverviewAndHealth_CountWhatHappened(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n := p.start()
	good, bad := p.receiver(with(http.StatusOK, "")), p.receiver(with(http.StatusInternalServerError, ""))
	healthy := p.newEndpoint(p.ours, webhooks.Settings{URL: good.url, EventTypes: []string{"order.created"}})
	failing := p.newEndpoint(p.ours, webhooks.Settings{URL: bad.url, EventTypes: []string{"order.paid"}, Description: "Broken"})
	for range 3 {
		n.deliver(p.ours, healthy, events.New{Type: "order.created", Data: []byte(`{}`)}, jobs.StateCompleted)
	}
	n.deliver(p.ours, failing, events.New{Type: "order.paid", Data: []byte(`{}`)}, jobs.StateRetryable)

	b := p.as("viewer")
	overview := b.open(views.OverviewURL(p.ours.ID))
	figures := spacedOut(text(overview.live("figures")))
	for _, want := range []string{"Delivered, 24 h3100 % of all", "Waiting to retry1next due in", "Attempts per delivery1.33"} {
		if !strings.Contains(figures, spacedOut(want)) {
			t.Errorf("the figures are %q, want %q", figures, want)
		}
	}
	if rows := overview.rows(); !strings.Contains(rows[failing.ID], "Broken") || rows[healthy.ID] != "" {
		t.Errorf("in need of attention are %v, want only the failing endpoint", rows)
	}
	chart := text(overview.live("chart"))
	for _, want := range []string{"Retried later 1", "Given up 0"} {
		if !strings.Contains(chart, want) {
			t.Errorf("the chart says %q, want %q", chart, want)
		}
	}
	health := b.open(views.HealthURL(p.ours.ID, "24h"))
	if row := health.rows()["webhook.deliver, standard"]; !strings.Contains(spacedOut(row), spacedOut("3 1.33 100 % 0 0")) {
		t.Errorf("the policy's row says %q, want 3 ended, 1.33 attempts each, all at the first try", row)
	}
	if !health.says("ALLOWED") {
		t.Error("the retry is not among the decisions")
	}
}
