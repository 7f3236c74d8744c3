package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"entrega/jobs"
)

// counter is a receiver that verifies each request and counts them by webhook-id.
type counter struct {
	*httptest.Server
	t      *testing.T
	verify *standardwebhooks.Webhook

	mu       sync.Mutex
	requests map[string]int
	total    int
	waiting  map[int][]chan struct{} // by number of different ids
}

func newCounter(t *testing.T) *counter {
	c := &counter{t: t, requests: map[string]int{}, waiting: map[int][]chan struct{}{}}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *counter) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.verify == nil || c.verify.Verify(body, r.Header) != nil {
		c.t.Errorf("a request that does not verify: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.requests[r.Header.Get("webhook-id")]++
	c.total++
	for _, ch := range c.waiting[len(c.requests)] {
		close(ch)
	}
	delete(c.waiting, len(c.requests))
}

// reached closes when requests for n different events have come.
func (c *counter) reached(n int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan struct{})
	if len(c.requests) >= n {
		close(ch)
		return ch
	}
	c.waiting[n] = append(c.waiting[n], ch)
	return ch
}

// subscribe makes an endpoint for the receiver.
func (c *counter) subscribe(in *installation, key string, maxInFlight int) {
	c.t.Helper()
	var endpoint struct{ ID, Secret string }
	in.call(key, "POST", "/v1/endpoints", map[string]any{"url": c.URL, "maxInFlight": maxInFlight}, &endpoint, http.StatusCreated)
	verify, err := standardwebhooks.NewWebhook(endpoint.Secret)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verify = verify
}

func TestServe_Kill9InTheMiddleLosesNothing(t *testing.T) {
	t.Parallel()
	const events, lane, window = 2000, 16, 256
	in := install(t, "ENTREGA_ALLOW_HTTP=true", "ENTREGA_EGRESS_ALLOW=127.0.0.1")
	in.start()
	project, key := in.project("Crash")
	receiver := newCounter(t)
	receiver.subscribe(in, key, lane)

	half := receiver.reached(events / 4)
	for batch := range events / 500 {
		var items []map[string]any
		for i := range 500 {
			items = append(items, map[string]any{"id": fmt.Sprintf("crash-%d-%d", batch, i), "type": "order.created", "data": map[string]any{"n": i}})
		}
		in.call(key, "POST", "/v1/events/batch", map[string]any{"events": items}, nil, http.StatusAccepted)
	}
	within(t, half, time.Minute, "a quarter is delivered")
	in.kill()
	killed := time.Now()
	in.start()
	within(t, receiver.reached(events), time.Minute, "every event is delivered")
	t.Logf("all delivered %s after the kill", time.Since(killed).Round(time.Millisecond))
	in.stop() // so that all that was sent is recorded

	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	rows, lost := map[string]int{}, 0
	for line := range strings.Lines(in.command("evidence", "export", "--project", project)) {
		var r struct {
			Kind           string  `json:"kind"`
			IdempotencyKey *string `json:"idempotency_key"`
			Reason         string  `json:"reason"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.Kind == "webhook.deliver" && r.IdempotencyKey != nil {
			rows[*r.IdempotencyKey]++
			if r.Reason == jobs.ReasonWorkerLost {
				lost++
			}
		}
	}
	// Repeated is what was sent and had no record yet: the lane, and answers that waited for the ledger's commit. Nobody can tell
	// these from the tasks that a worker held for their turn in the lane, so all of them are recorded as lost: at most the window.
	if extra := receiver.total - events; extra > lost {
		t.Errorf("%d requests were repeated; at most the %d in flight may be", extra, lost)
	}
	if lost > window+lane {
		t.Errorf("%d attempts were in workers' hands without a record, with a window of %d and a lane of %d", lost, window, lane)
	}
	for id, requests := range receiver.requests {
		if rows[id] < requests {
			t.Errorf("event %s: the receiver saw %d requests, the ledger has %d rows", id, requests, rows[id])
		}
	}
	if out := in.command("evidence", "verify"); !strings.Contains(out, "All chains hold") {
		t.Error(out)
	}
}

func within(t *testing.T, done <-chan struct{}, limit time.Duration, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatalf("within %s not so: %s", limit, what)
	}
}
