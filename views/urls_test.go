package views

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestURLs_AlsoMakeRoutes(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		OverviewURL(":project"):                              "/p/:project",
		TasksURL(":project", TaskFilter{}):                   "/p/:project/tasks",
		RetryTaskURL(":project", ":id"):                      "/p/:project/tasks/:id/retry",
		ReactivateEndpointURL(":project", ":id"):             "/p/:project/endpoints/:id/reactivate",
		PolicyURL(":project", ":kind", ":profile"):           "/p/:project/policies/:kind/:profile",
		PolicyURL("p", "webhook.fanout", ""):                 "/p/p/policies/webhook.fanout/default",
		SetUpURL(":token"):                                   "/setup/:token",
		AdminReactivateURL(":project", ":id"):                "/admin/disabled/:project/:id/reactivate",
		BulkURL(":project", "", TaskFilter{}):                "/p/:project/bulk",
		TaskAttemptURL("p", "184203", 2):                     "/p/p/tasks/184203?attempt=2#exchange",
		AlertsURL("p", "resolved"):                           "/p/p/alerts?state=resolved",
		BulkURL("p", "retry", TaskFilter{After: "9"}):        "/p/p/bulk?action=retry",
		TasksURL("p", TaskFilter{State: "a&b", Query: "?#"}): "/p/p/tasks?q=%3F%23&state=a%26b",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestURLs_EscapeSegments(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		TaskURL("a/b", "../x"):                "/p/a%2Fb/tasks/..%2Fx",
		EndpointURL("p", "e?x=1#y"):           "/p/p/endpoints/e%3Fx=1%23y",
		RunPeriodicURL("p", "//evil.example"): "/p/p/periodic/%2F%2Fevil.example/run",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestFilters_ComeBackAsTheyWent(t *testing.T) {
	t.Parallel()
	query := func(address string) url.Values {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query()
	}
	task := TaskFilter{State: "discarded", Kind: "webhook.deliver", Endpoint: "endpoint_1", Event: "event_1", Period: "7d", Query: "a b&c", After: "x", Before: "y"}
	if diff := cmp.Diff(task, TaskFilterFrom(query(TasksURL("p", task)))); diff != "" {
		t.Errorf("task filter (-want +got):\n%s", diff)
	}
	event := EventFilter{Type: "order.created", Subscriber: "acme", Outcome: "under way", Period: "1h", Query: "q", After: "x", Before: "y"}
	if diff := cmp.Diff(event, EventFilterFrom(query(EventsURL("p", event)))); diff != "" {
		t.Errorf("event filter (-want +got):\n%s", diff)
	}
	endpoint := EndpointFilter{Health: "rate limited", Query: "q", After: "x", Before: "y"}
	if diff := cmp.Diff(endpoint, EndpointFilterFrom(query(EndpointsURL("p", endpoint)))); diff != "" {
		t.Errorf("endpoint filter (-want +got):\n%s", diff)
	}
	audit := AuditFilter{Actor: "1", Action: "retry", Query: "q", After: "x", Before: "y"}
	if diff := cmp.Diff(audit, AuditFilterFrom(query(AuditURL("p", audit)))); diff != "" {
		t.Errorf("audit filter (-want +got):\n%s", diff)
	}
}
