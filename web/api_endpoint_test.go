package web_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const anEndpoint = `{"url":"https://shop.example.com/hooks"}`

func TestCreateEndpoint_AnswersItWithItsSecretOnce(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	a := c.do("POST", "/v1/endpoints", `{"url":"https://shop.example.com/hooks?a=1","description":"Order desk","subscriber":"acme","eventTypes":["order.created"],
		"profile":"compact","headers":{"x-tenant":"acme","Authorization":"Bearer x"},"maxInFlight":4,"ratePerSecond":0.5,"timeoutSeconds":30}`).is(201)
	id := a.text("id")
	health := map[string]any{"state": "healthy", "failingSince": nil, "failuresInARow": json.Number("0"), "lastSuccessAt": nil, "lastFailureAt": nil,
		"pauseUntil": nil, "pausedAt": nil, "disabledAt": nil, "disabledReason": nil, "disabledDetail": nil}
	want := map[string]any{"id": id, "url": "https://shop.example.com/hooks?a=1", "description": "Order desk", "subscriber": "acme",
		"eventTypes": []any{"order.created"}, "profile": "compact", "headers": map[string]any{"X-Tenant": "acme", "Authorization": "(hidden)"},
		"maxInFlight": json.Number("4"), "ratePerSecond": json.Number("0.5"), "timeoutSeconds": json.Number("30"), "health": health,
		"createdAt": a.text("createdAt"), "updatedAt": a.text("updatedAt"), "secret": a.text("secret"), "duplicate": false}
	if diff := cmp.Diff(want, a.body); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(a.text("secret"), "whsec_") || a.header.Get("Location") != "/v1/endpoints/"+id {
		t.Errorf("%s at %s", a.raw, a.header.Get("Location"))
	}
	read := c.do("GET", a.header.Get("Location"), nil).is(200)
	delete(want, "secret")
	delete(want, "duplicate")
	none := json.Number("0")
	want["lane"] = map[string]any{"inFlight": none, "outstanding": none, "pending": none, "later": none, "oldestAt": nil, "holder": nil,
		"heldUntil": nil, "pauseUntil": nil}
	if diff := cmp.Diff(want, read.body); diff != "" {
		t.Error(diff)
	}
	least := c.do("POST", "/v1/endpoints", anEndpoint).is(201)
	if least.at("subscriber") != nil || least.at("profile") != nil || least.at("ratePerSecond") != nil || least.at("timeoutSeconds") != nil ||
		least.number("maxInFlight") != 1 || len(least.list("eventTypes")) != 0 || len(least.at("headers").(map[string]any)) != 0 {
		t.Errorf("%s", least.raw)
	}
}

func TestCreateEndpoint_SameKeyAnswersTheFirstWithoutItsSecret(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours).with("Idempotency-Key", "k")
	answers := make([]answered, 20)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			var err error
			if answers[i], err = c.try(p.ctx, "POST", "/v1/endpoints", anEndpoint); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ids, secrets := map[string]bool{}, 0
	for _, a := range answers {
		ids[a.is(201).text("id")] = true
		if a.at("secret") != nil {
			secrets++
		}
		if (a.at("secret") == nil) != (a.at("duplicate") == true) {
			t.Errorf("%s", a.raw)
		}
	}
	if len(ids) != 1 || secrets != 1 {
		t.Errorf("%d endpoints, %d secrets", len(ids), secrets)
	}
	c.do("POST", "/v1/endpoints", `{"url":"https://shop.example.com/other"}`).problem(409, "idempotency_mismatch")
	// The key lives as long as the endpoint.
	for id := range ids {
		c.do("DELETE", "/v1/endpoints/"+id, nil).is(204)
	}
	if a := c.do("POST", "/v1/endpoints", anEndpoint).is(201); ids[a.text("id")] || a.at("secret") == nil {
		t.Errorf("%s", a.raw)
	}
}

func TestCreateEndpoint_NamesEveryWrongField(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	for body, want := range map[string][]string{
		`{}`: {"url"},
		`{"url":"ftp://x","profile":"fast","maxInFlight":0,"timeoutSeconds":31,"ratePerSecond":0}`:       {"maxInFlight", "ratePerSecond", "timeoutSeconds"},
		`{"url":"https://localhost/x","profile":"fast","headers":{"Host":"x"},"eventTypes":["a","b c"]}`: {"eventTypes[1]", "headers.Host", "profile", "url"},
		`{"url":"https://shop.example.com/hooks","secret":"hunter2"}`:                                    {"secret"},
		`{"url":"https://shop.example.com/hooks","event_types":["a"]}`:                                   {"event_types"},
		`{"url":"https://10.0.0.1/x"}`: {"url"},
	} {
		fields := c.do("POST", "/v1/endpoints", body).problem(422, "invalid")
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(fields))); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
	if a := c.do("POST", "/v1/endpoints", `{"url":"https://shop.example.com/hooks","secret":"hunter2"}`); strings.Contains(string(a.raw), "hunter2") {
		t.Errorf("a refused secret is repeated: %s", a.raw)
	}
}

func TestUpdateEndpoint_ChangesWhatIsGivenAndNothingElse(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	created := c.do("POST", "/v1/endpoints", `{"url":"https://shop.example.com/hooks","subscriber":"acme","ratePerSecond":5,"timeoutSeconds":5,"profile":"compact","maxInFlight":3,
		"eventTypes":["a"],"headers":{"Authorization":"Bearer x","X-Tenant":"acme"}}`).is(201)
	path := created.header.Get("Location")

	same := c.do("PATCH", path, `{}`).is(200)
	if same.text("updatedAt") != created.text("updatedAt") {
		t.Error("a change of nothing was written")
	}
	changed := c.do("PATCH", path, `{"description":"New","maxInFlight":8}`).is(200)
	if changed.text("description") != "New" || changed.number("maxInFlight") != 8 || changed.text("subscriber") != "acme" || changed.number("timeoutSeconds") != 5 {
		t.Errorf("%s", changed.raw)
	}
	cleared := c.do("PATCH", path, `{"subscriber":null,"ratePerSecond":null,"timeoutSeconds":null,"profile":null,"maxInFlight":null,"eventTypes":null,"description":null}`).is(200)
	if cleared.at("subscriber") != nil || cleared.at("ratePerSecond") != nil || cleared.at("timeoutSeconds") != nil || cleared.at("profile") != nil ||
		cleared.number("maxInFlight") != 1 || len(cleared.list("eventTypes")) != 0 || cleared.text("description") != "" {
		t.Errorf("%s", cleared.raw)
	}
	if fields := c.do("PATCH", path, `{"url":null,"maxInFlight":0,"id":"x"}`).problem(422, "invalid"); len(fields) != 3 {
		t.Error(fields)
	}

	// What was read can be sent back: the hidden value stays what it was.
	headers, err := json.Marshal(map[string]any{"headers": cleared.at("headers")})
	if err != nil {
		t.Fatal(err)
	}
	c.do("PATCH", path, string(headers)).is(200)
	stored, err := p.endpoints.EndpointByID(p.ctx, p.pool, p.ours.ID, created.text("id"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"Authorization": "Bearer x", "X-Tenant": "acme"}, stored.Headers); diff != "" {
		t.Error(diff)
	}
	c.do("PATCH", path, `{"headers":null}`).is(200)
	if stored, err = p.endpoints.EndpointByID(p.ctx, p.pool, p.ours.ID, created.text("id")); err != nil || len(stored.Headers) != 0 {
		t.Error(stored.Headers, err)
	}
}

func TestDeleteEndpoint_IsGoneAfterwards(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	path := c.do("POST", "/v1/endpoints", anEndpoint).is(201).header.Get("Location")
	if a := c.do("DELETE", path, nil).is(204); len(a.raw) != 0 {
		t.Errorf("%s", a.raw)
	}
	c.do("DELETE", path, nil).problem(404, "not_found")
	c.do("GET", path, nil).problem(404, "not_found")
	c.do("PATCH", path, `{"description":"x"}`).problem(404, "not_found")
	if got := c.do("GET", "/v1/endpoints", nil).is(200).list("data"); len(got) != 0 {
		t.Error(got)
	}
}

func TestListEndpoints_Filters(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	for i := range 3 {
		c.do("POST", "/v1/endpoints", fmt.Sprintf(`{"url":"https://shop.example.com/%d","subscriber":"s%d"}`, i, i)).is(201)
	}
	disabled := c.do("POST", "/v1/endpoints", anEndpoint).is(201)
	c.do("POST", disabled.header.Get("Location")+"/disable", `{"reason":"moving"}`).is(200)
	for query, want := range map[string]int{"": 4, "?state=disabled": 1, "?state=healthy": 3, "?subscriber=s1": 1, "?search=EXAMPLE.com/2": 1, "?limit=3": 3} {
		if got := len(c.do("GET", "/v1/endpoints"+query, nil).is(200).list("data")); got != want {
			t.Errorf("%s finds %d, want %d", query, got, want)
		}
	}
}

func TestDisableAndReactivate_KeepTheReason(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	path := c.do("POST", "/v1/endpoints", anEndpoint).is(201).header.Get("Location")
	c.do("POST", path+"/reactivate", nil).problem(409, "not_disabled")
	a := c.do("POST", path+"/disable", `{"reason":"The host moves"}`).is(200)
	if a.text("health.state") != "disabled" || a.text("health.disabledReason") != "manual" || a.text("health.disabledDetail") != "The host moves" || a.text("health.disabledAt") == "" {
		t.Errorf("%s", a.raw)
	}
	if again := c.do("POST", path+"/disable", `{"reason":"Another"}`).is(200); again.text("health.disabledDetail") != "The host moves" {
		t.Errorf("%s", again.raw)
	}
	c.do("POST", path+"/test", nil).problem(409, "endpoint_disabled")
	c.do("POST", path+"/redeliver", nil).problem(409, "endpoint_disabled")
	c.do("POST", path+"/redeliver", `{"dryRun":true}`).is(200)
	if fields := c.do("POST", path+"/reactivate", map[string]string{"reason": strings.Repeat("x", 501)}).problem(422, "invalid"); fields["reason"] == "" {
		t.Error(fields)
	}
	if a := c.do("POST", path+"/reactivate", `{"reason":"Moved"}`).is(200); a.text("health.state") != "healthy" || a.at("health.disabledAt") != nil {
		t.Errorf("%s", a.raw)
	}
	var actor string
	p.scan(&actor, `select string_agg(actor_kind || ' ' || action, ', ' order by id) from audit_log where action like 'endpoint.%' and project_id = $1`, p.ours.ID)
	if actor != "api_key endpoint.create, api_key endpoint.disable, api_key endpoint.reactivate" {
		t.Error(actor)
	}
}

func TestRotateSecret_AnswersTheNewOneOnce(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	created := c.do("POST", "/v1/endpoints", anEndpoint).is(201)
	path := created.header.Get("Location") + "/rotate-secret"
	first := c.do("POST", path, nil).is(200)
	if !strings.HasPrefix(first.text("secret"), "whsec_") || first.text("secret") == created.text("secret") || first.at("duplicate") != false {
		t.Errorf("%s", first.raw)
	}
	keyed := c.with("Idempotency-Key", "rotation")
	second := keyed.do("POST", path, `{"overlapHours":1}`).is(200)
	again := keyed.do("POST", path, `{"overlapHours":1}`).is(200)
	if second.text("secret") == first.text("secret") || again.at("secret") != nil || again.at("duplicate") != true {
		t.Errorf("%s then %s", second.raw, again.raw)
	}
	keyed.do("POST", path, `{"overlapHours":2}`).problem(409, "idempotency_mismatch")
	var live int
	if p.scan(&live, `select count(*) from endpoint_secrets where endpoint_id = $1`, created.text("id")); live != 3 {
		t.Errorf("%d secrets sign, want 3", live)
	}
	own := c.do("POST", path, `{"overlapHours":0,"secret":"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="}`).is(200)
	if own.text("secret") != "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=" {
		t.Errorf("%s", own.raw)
	}
	for _, body := range []string{`{"overlapHours":169}`, `{"overlapHours":-1}`, `{"overlapHours":null}`, `{"overlapHours":"24"}`} {
		if fields := c.do("POST", path, body).problem(422, "invalid"); fields["overlapHours"] == "" {
			t.Errorf("%s: %v", body, fields)
		}
	}
}

func TestIdempotencyKey_HoldsForTestsAndRedeliveries(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	endpoint := c.do("POST", "/v1/endpoints", anEndpoint).is(201).header.Get("Location")
	event := "/v1/events/" + c.do("POST", "/v1/events", anEvent).is(202).text("id")
	for path, same := range map[string]string{endpoint + "/test": "eventId", event + "/redeliver": "deliveryIds"} {
		keyed := c.with("Idempotency-Key", path)
		answers := make([]answered, 10)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				var err error
				if answers[i], err = keyed.try(p.ctx, "POST", path, nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		firsts := 0
		for _, a := range answers {
			if a.is(202).at("duplicate") == false {
				firsts++
			}
			if diff := cmp.Diff(answers[0].at(same), a.at(same)); diff != "" {
				t.Errorf("%s: %s", path, diff)
			}
		}
		if firsts != 1 {
			t.Errorf("%s was done %d times", path, firsts)
		}
	}
	var tasks int
	if p.scan(&tasks, `select count(*) from river_job where kind = 'webhook.deliver'`); tasks != 2 {
		t.Errorf("%d deliveries, want one test and one redelivery", tasks)
	}
	// One key is for one request, whatever it is about.
	c.with("Idempotency-Key", endpoint+"/test").do("POST", event+"/redeliver", nil).problem(409, "idempotency_mismatch")
}
