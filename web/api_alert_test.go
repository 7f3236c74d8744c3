package web_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/alerts"
	"entrega/internal/tenant"
)

func TestAlertsAPI_ListsAcknowledgesAndResolves(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.alert(alerts.Alert{Kind: alerts.Backlog, About: "1,204 events", Text: "wait."})
	p.newAlert(p.theirs)
	id := p.alert(alerts.Alert{ProjectID: p.ours.ID, Kind: alerts.ReceiverRefuses, Subject: "endpoint_1", About: "api.lumen.example", Text: "answered 401.", Count: 3, EndpointID: "endpoint_1"})
	c := p.api(p.ours)
	list := c.do("GET", "/v1/alerts", nil).is(200)
	if n := len(list.list("data")); n != 1 {
		t.Fatalf("%d alerts are listed, want the project's own: %s", n, list.raw)
	}
	at := p.now()
	p.scan(&at, `select last_at from alerts where id = $1`, id)
	instant := at.UTC().Format(time.RFC3339Nano)
	want := map[string]any{"id": id, "kind": "receiver_refuses", "title": "Signature refused", "state": "open", "subject": "endpoint_1",
		"sentence": "api.lumen.example answered 401.", "count": json.Number("3"), "firstAt": instant, "lastAt": instant, "endpointId": "endpoint_1", "eventId": nil,
		"acknowledgedAt": nil, "acknowledgedBy": nil, "resolvedAt": nil, "resolvedBy": nil, "resolvedWhy": nil}
	got := list.list("data")[0].(map[string]any)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the alert differs (-want +got):\n%s", diff)
	}

	path := "/v1/alerts/" + id
	if a := c.do("POST", path+"/acknowledge", nil).is(200); a.text("state") != "acknowledged" || a.text("acknowledgedBy") != "test" {
		t.Errorf("acknowledged, it is %s", a.raw)
	}
	for query, want := range map[string]int{"?state=open": 0, "?state=acknowledged": 1, "?kind=receiver_refuses": 1, "?kind=backlog": 0, "?endpointId=endpoint_1": 1, "?endpointId=other": 0} {
		if n := len(c.do("GET", "/v1/alerts"+query, nil).is(200).list("data")); n != want {
			t.Errorf("%s lists %d, want %d", query, n, want)
		}
	}
	if a := c.do("POST", path+"/resolve", nil).is(200); a.text("state") != "resolved" || a.text("resolvedBy") != "test" || a.text("resolvedAt") == "" {
		t.Errorf("resolved, it is %s", a.raw)
	}
	c.do("POST", path+"/acknowledge", nil).problem(409, "alert_resolved")
	c.do("GET", "/v1/alerts?state=closed", nil).problem(422, "invalid")
	p.api(p.ours, tenant.ScopeRead).do("POST", path+"/resolve", nil).problem(403, "missing_scope")
	p.api(p.theirs).do("POST", path+"/resolve", nil).problem(404, "not_found")
}
