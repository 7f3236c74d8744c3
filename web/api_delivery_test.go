package web_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/events"
	"entrega/jobs"
	"entrega/webhooks"
)

func TestDelivery_ItsAttemptsTellEverything(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, c := p.start(), p.api(p.ours)
	const answer = "try again later \xff"
	r := p.receiver(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.Header().Add("X-Twice", "1")
		w.Header().Add("X-Twice", "2")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, answer)
	})
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: r.url})
	task := n.deliver(p.ours, e, events.New{Type: "order.created", Data: []byte(`1`)}, jobs.StateSnoozed)
	path := fmt.Sprint("/v1/deliveries/", task.ID)

	got := c.do("GET", path, nil).is(200)
	want := map[string]any{"id": json.Number(fmt.Sprint(task.ID)), "eventId": task.EventID, "endpointId": e.ID, "status": "retrying", "reason": "snoozed",
		"attempt": json.Number("1"), "maxAttempts": json.Number("18"), "nextAttemptAt": got.text("nextAttemptAt"), "errorType": "HttpError", "createdAt": got.text("createdAt")}
	if diff := cmp.Diff(want, got.body); diff != "" {
		t.Error(diff)
	}
	if next, err := time.Parse(time.RFC3339, got.text("nextAttemptAt")); err != nil || time.Until(next) < time.Minute {
		t.Errorf("the next attempt is at %q", got.text("nextAttemptAt"))
	}

	list := c.do("GET", path+"/attempts", nil).is(200)
	if len(list.list("data")) != 1 || list.at("nextCursor") != nil || list.at("prevCursor") != nil {
		t.Fatalf("%s", list.raw)
	}
	attempt := list.list("data")[0].(map[string]any)
	records, err := jobs.AttemptsOfTask(p.ctx, p.pool, p.ours.ID, task.ID)
	if err != nil {
		t.Fatal(err)
	}
	response := attempt["response"].(map[string]any)
	headers := response["headers"].(map[string]any)
	wantAttempt := map[string]any{"attempt": json.Number("1"), "trigger": "schedule", "startedAt": attempt["startedAt"], "durationMs": attempt["durationMs"],
		"errorType": "HttpError", "phase": nil, "statusCode": json.Number("503"), "decision": "snoozed", "reason": "retry_after", "waitMs": json.Number("120000"),
		"retryAfter": map[string]any{"raw": "120", "read": "used"}, "nextAttemptAt": attempt["nextAttemptAt"],
		"policy":   map[string]any{"kind": "webhook.deliver", "version": json.Number("1"), "hash": hex.EncodeToString(records[0].PolicyHash)},
		"peer":     strings.TrimPrefix(r.url, "http://"),
		"response": map[string]any{"headers": headers, "body": "try again later \uFFFD", "truncated": false}}
	if diff := cmp.Diff(wantAttempt, attempt); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{"1", "2"}, headers["X-Twice"]); diff != "" {
		t.Error(diff)
	}
}

func TestDelivery_ListedByEachFilter(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, c := p.start(), p.api(p.ours)
	good, bad := p.receiver(with(200, "")), p.receiver(with(400, "no"))
	first, second := p.newEndpoint(p.ours, webhooks.Settings{URL: good.url, EventTypes: []string{"a"}}), p.newEndpoint(p.ours, webhooks.Settings{URL: bad.url, EventTypes: []string{"b"}})
	delivered := n.deliver(p.ours, first, events.New{ID: "one", Type: "a", Data: []byte(`1`)}, jobs.StateCompleted)
	rejected := n.deliver(p.ours, second, events.New{ID: "two", Type: "b", Data: []byte(`1`)}, jobs.StateDiscarded)
	for query, want := range map[string][]int64{
		"":                                    {rejected.ID, delivered.ID},
		"?status=delivered":                   {delivered.ID},
		"?status=exhausted":                   {rejected.ID},
		"?status=retrying":                    nil,
		"?status=pending":                     nil,
		"?status=processing":                  nil,
		"?status=cancelled":                   nil,
		"?endpointId=" + first.ID:             {delivered.ID},
		"?eventId=two":                        {rejected.ID},
		"?errorType=HttpError":                {rejected.ID},
		"?errorType=Timeout":                  nil,
		"?since=2100-01-01T00:00:00Z":         nil,
		"?until=2100-01-01T00:00:00Z&limit=1": {rejected.ID},
		"?eventId=two&status=delivered":       nil,
	} {
		var got []int64
		for _, d := range c.do("GET", "/v1/deliveries"+query, nil).is(200).list("data") {
			id, err := d.(map[string]any)["id"].(json.Number).Int64()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, id)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
	// The other kinds of tasks are no deliveries.
	var fanout int64
	p.scan(&fanout, `select min(id) from river_job where kind = 'webhook.fanout'`)
	c.do("GET", fmt.Sprint("/v1/deliveries/", fanout), nil).problem(404, "not_found")
	c.do("POST", fmt.Sprint("/v1/deliveries/", fanout, "/retry"), nil).problem(404, "not_found")

	got := c.do("GET", fmt.Sprint("/v1/deliveries/", rejected.ID), nil).is(200)
	if got.text("status") != "exhausted" || got.text("reason") != "rejected" || got.number("attempt") != 1 || got.at("nextAttemptAt") != nil {
		t.Errorf("%s", got.raw)
	}
	got = c.do("GET", fmt.Sprint("/v1/deliveries/", delivered.ID), nil).is(200)
	if got.text("status") != "delivered" || got.at("reason") != nil || got.at("errorType") != nil {
		t.Errorf("%s", got.raw)
	}
	event := c.do("GET", "/v1/events/two", nil).is(200)
	if event.text("state") != "fanned_out" || event.number("deliveryCount") != 1 || len(event.list("deliveries")) != 1 ||
		!cmp.Equal(event.at("skippedCounts"), map[string]any{"type_not_subscribed": json.Number("1")}) ||
		!cmp.Equal(event.list("skipped"), []any{map[string]any{"endpointId": first.ID, "reason": "type_not_subscribed"}}) {
		t.Errorf("%s", event.raw)
	}
}

func TestRetryAndCancel_AnswerConflictsInsteadOfSilence(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	own := p.newSubjects(p.ours)
	path := "/v1/deliveries/" + own.delivery
	set := func(state string, scheduled string) {
		p.exec(`update river_job set state = $2::river_job_state, scheduled_at = now() + $3::interval,
			finalized_at = case when $2 in ('completed', 'discarded', 'cancelled') then now() end where id = $1::bigint`, own.delivery, state, scheduled)
	}
	for _, test := range []struct{ state, scheduled, retry, cancel string }{
		{"available", "-1s", "already_queued", ""},
		{"running", "-1s", "already_queued", ""},
		{"completed", "-1s", "completed", "completed"},
		{"discarded", "-1s", "", "completed"},
		{"cancelled", "-1s", "", "completed"},
		{"retryable", "1h", "", ""},
		{"scheduled", "1h", "", ""},
	} {
		for action, code := range map[string]string{"/retry": test.retry, "/cancel": test.cancel} {
			set(test.state, test.scheduled)
			a := c.do("POST", path+action, nil)
			switch {
			case code != "":
				a.problem(409, code)
			case action == "/retry":
				if a.is(202).text("status") != "pending" {
					t.Errorf("%s of %s: %s", action, test.state, a.raw)
				}
			case test.state == "running":
				if a.is(200).text("status") != "processing" {
					t.Errorf("%s of %s: %s", action, test.state, a.raw)
				}
			default:
				if a.is(200).text("status") != "cancelled" || a.at("reason") != nil {
					t.Errorf("%s of %s: %s", action, test.state, a.raw)
				}
			}
		}
	}
	set("discarded", "-1s")
	c.do("POST", "/v1/endpoints/"+own.endpoint+"/disable", nil).is(200)
	c.do("POST", path+"/retry", nil).problem(409, "endpoint_disabled")
	c.do("DELETE", "/v1/endpoints/"+own.endpoint, nil).is(204)
	c.do("POST", path+"/retry", nil).problem(409, "endpoint_disabled")
}

func TestRetry_FiftyAtOnceMakeOneAttempt(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, c := p.start(), p.api(p.ours)
	var mu sync.Mutex
	requests := 0
	r := p.receiver(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests++
		w.WriteHeader(http.StatusBadRequest)
	})
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: r.url})
	task := n.deliver(p.ours, e, events.New{Type: "a", Data: []byte(`1`)}, jobs.StateDiscarded)
	r.answers(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests++
	})
	statuses := map[string]int{}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			a, err := c.try(p.ctx, "POST", fmt.Sprint("/v1/deliveries/", task.ID, "/retry"), nil)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			word := fmt.Sprint(a.status)
			if code, ok := a.body["code"].(string); ok {
				word += " " + code
			}
			statuses[word]++
		})
	}
	wg.Wait()
	n.reach(p.ours, task.ID, jobs.StateCompleted)
	if statuses["202"] != 1 || statuses["202"]+statuses["409 already_queued"]+statuses["409 completed"] != 50 {
		t.Errorf("%v", statuses)
	}
	if mu.Lock(); requests != 2 {
		t.Errorf("%d requests, want the first and one more", requests)
	}
	mu.Unlock()
	list := c.do("GET", fmt.Sprint("/v1/deliveries/", task.ID, "/attempts?limit=1"), nil).is(200)
	second := c.do("GET", fmt.Sprint("/v1/deliveries/", task.ID, "/attempts?limit=1&cursor=", list.text("nextCursor")), nil).is(200)
	if a := second.list("data")[0].(map[string]any); a["trigger"] != "manual" || a["decision"] != "accepted" || a["errorType"] != nil {
		t.Errorf("%s", second.raw)
	}
}

func TestRedeliver_CountsThenBringsWhatWasMissed(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, c := p.start(), p.api(p.ours)
	r := p.receiver(with(400, ""))
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: r.url})
	n.deliver(p.ours, e, events.New{ID: "discarded", Type: "a", Data: []byte(`1`)}, jobs.StateDiscarded)
	path := "/v1/endpoints/" + e.ID
	c.do("POST", path+"/disable", `{"reason":"test"}`).is(200)
	p.publish(p.ours, events.New{ID: "missed", Type: "a", Data: []byte(`1`)})
	if _, err := n.relay.Sweep(p.ctx); err != nil {
		t.Fatal(err)
	}
	n.await("the missed event to be considered", func() bool {
		return c.do("GET", "/v1/events/missed", nil).is(200).text("state") == "fanned_out"
	})
	c.do("POST", path+"/redeliver", `{}`).problem(409, "endpoint_disabled")
	c.do("POST", path+"/reactivate", nil).is(200)
	r.answers(with(200, ""))

	counts := map[string][]int64{`{"dryRun":true}`: {2, 1, 1}, `{"dryRun":true,"scope":"missed"}`: {1, 0, 1}, `{"dryRun":true,"scope":"discarded"}`: {1, 1, 0},
		`{"dryRun":true,"since":"2100-01-01T00:00:00Z"}`: {0, 0, 0}, `{"since":"2100-01-01T00:00:00Z"}`: {0, 0, 0}}
	for body, want := range counts {
		a := c.do("POST", path+"/redeliver", body).is(200)
		if got := []int64{a.number("count"), a.number("deliveries"), a.number("missed")}; !slices.Equal(got, want) || a.at("bulkId") != nil {
			t.Errorf("%s: %s", body, a.raw)
		}
	}
	keyed := c.with("Idempotency-Key", "bring them")
	started := keyed.do("POST", path+"/redeliver", nil).is(202)
	again := keyed.do("POST", path+"/redeliver", nil).is(202)
	if started.number("count") != 2 || started.text("bulkId") == "" || again.text("bulkId") != started.text("bulkId") || again.at("duplicate") != true {
		t.Errorf("%s then %s", started.raw, again.raw)
	}
	var bulk answered
	n.await("the redelivery to end", func() bool {
		bulk = c.do("GET", "/v1/bulks/"+started.text("bulkId"), nil).is(200)
		return bulk.text("state") == "completed"
	})
	if bulk.number("done") != 2 || bulk.number("total") != 2 || bulk.number("skipped") != 0 || bulk.text("action") != "redeliver" || bulk.text("finishedAt") == "" {
		t.Errorf("%s", bulk.raw)
	}
	n.await("both to be delivered", func() bool {
		return len(c.do("GET", "/v1/deliveries?status=delivered", nil).is(200).list("data")) == 2
	})
	for body, field := range map[string]string{`{"scope":"all"}`: "scope", `{"since":"2026-01-02T00:00:00Z","until":"2026-01-01T00:00:00Z"}`: "until", `{"dry_run":true}`: "dry_run"} {
		if fields := c.do("POST", path+"/redeliver", body).problem(422, "invalid"); !slices.Equal(slices.Collect(maps.Keys(fields)), []string{field}) {
			t.Errorf("%s: %v", body, fields)
		}
	}
}

func TestRedeliverEvent_ToAllOrToNamedEndpoints(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, c := p.start(), p.api(p.ours)
	r := p.receiver(with(200, ""))
	first, second := p.newEndpoint(p.ours, webhooks.Settings{URL: r.url + "/1"}), p.newEndpoint(p.ours, webhooks.Settings{URL: r.url + "/2"})
	n.deliver(p.ours, first, events.New{ID: "e", Type: "a", Data: []byte(`{"x": 1}`)}, jobs.StateCompleted)
	n.await("both to be delivered", func() bool {
		return len(c.do("GET", "/v1/deliveries?status=delivered&eventId=e", nil).is(200).list("data")) == 2
	})
	path := "/v1/events/e/redeliver"
	if a := c.do("POST", path, nil).is(202); len(a.list("deliveryIds")) != 2 || len(a.list("skipped")) != 0 || a.at("duplicate") != false {
		t.Errorf("%s", a.raw)
	}
	n.await("all to be delivered", func() bool {
		return len(c.do("GET", "/v1/deliveries?status=delivered&eventId=e", nil).is(200).list("data")) == 4
	})
	if a := c.do("POST", path, map[string]any{"endpointIds": []string{second.ID}}).is(202); len(a.list("deliveryIds")) != 1 {
		t.Errorf("%s", a.raw)
	}
	c.do("POST", "/v1/endpoints/"+second.ID+"/disable", nil).is(200)
	c.do("POST", path, map[string]any{"endpointIds": []string{second.ID}}).problem(409, "endpoint_disabled")
	a := c.do("POST", path, nil).is(202)
	if !cmp.Equal(a.list("skipped"), []any{map[string]any{"endpointId": second.ID, "reason": "endpoint_disabled"}}) {
		t.Errorf("%s", a.raw)
	}
	for _, body := range []string{`{"endpointIds":[]}`, `{"endpointIds":null}`, `{"endpointIds":"x"}`} {
		if fields := c.do("POST", path, body).problem(422, "invalid"); fields["endpointIds"] == "" {
			t.Errorf("%s: %v", body, fields)
		}
	}
}

func TestSendTest_IsOneEventToOneEndpoint(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, c := p.start(), p.api(p.ours)
	got := make(chan string, 1)
	r := p.receiver(func(_ http.ResponseWriter, req *http.Request) { got <- req.Header.Get("Webhook-Id") })
	e := p.newEndpoint(p.ours, webhooks.Settings{URL: r.url, EventTypes: []string{"never"}})
	a := c.do("POST", "/v1/endpoints/"+e.ID+"/test", nil).is(202)
	n.reach(p.ours, a.number("deliveryId"), jobs.StateCompleted)
	if id := <-got; id != a.text("eventId") {
		t.Errorf("the receiver saw %s, the answer says %s", id, a.raw)
	}
	if event := c.do("GET", "/v1/events/"+a.text("eventId"), nil).is(200); event.text("type") != "entrega.test" {
		t.Errorf("%s", event.raw)
	}
}

// From the wire of the publisher to the wire of the receiver, nothing touches the data.
func TestPublish_ReceiverGetsTheDataByteForByte(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n, c := p.start(), p.api(p.ours)
	bodies := make(chan string, 1)
	r := p.receiver(func(_ http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		bodies <- string(body)
	})
	p.newEndpoint(p.ours, webhooks.Settings{URL: r.url})
	const data = "{ \"n\" : [12345678901234567890 ,1e400, -0.0],\r\n\t\"n\":\"\\u00e9 \\ud800 < & \u2028\" }"
	c.do("POST", "/v1/events", `{"type":"order.created","id":"wire","occurredAt":"2026-03-01T12:00:00Z","data":`+data+`}`).is(202)
	if _, err := n.relay.Sweep(p.ctx); err != nil {
		t.Fatal(err)
	}
	n.await("the delivery", func() bool { return len(c.do("GET", "/v1/deliveries?status=delivered", nil).is(200).list("data")) == 1 })
	if got := <-bodies; !strings.HasSuffix(got, `"data":`+data+`}`) {
		t.Errorf("the receiver got %s", got)
	}
}
