package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"entrega/jobs"
)

// inbox is a customer's server that notes each request by its path and webhook-id, and which of them it answered.
type inbox struct {
	*httptest.Server
	mu       sync.Mutex
	wait     map[string]time.Duration // by path; below zero hangs
	requests map[string]int           // by path and id
	answered map[string]int
	changed  chan struct{}
}

func newInbox(t *testing.T) *inbox {
	b := &inbox{wait: map[string]time.Duration{}, requests: map[string]int{}, answered: map[string]int{}, changed: make(chan struct{})}
	b.Server = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.Close)
	return b
}

func (b *inbox) serve(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // Only then does the server notice that the sender has gone.
	key := r.URL.Path + " " + r.Header.Get("webhook-id")
	b.mu.Lock()
	b.requests[key]++
	wait := b.wait[r.URL.Path]
	b.signal()
	b.mu.Unlock()
	var answer <-chan time.Time // never, when it hangs
	if wait >= 0 {
		answer = time.After(wait)
	}
	select {
	case <-answer:
	case <-r.Context().Done():
		return
	}
	w.WriteHeader(http.StatusNoContent)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answered[key]++
	b.signal()
}

// signal wakes whoever awaits something. The caller holds the mutex.
func (b *inbox) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// answers sets how long the requests of a path to come wait for their answer.
func (b *inbox) answers(path string, after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wait[path] = after
}

// count counts different deliveries of a path.
func (b *inbox) count(of map[string]int, path string) (n int) {
	for key := range of {
		if strings.HasPrefix(key, path+" ") {
			n++
		}
	}
	return n
}

// await waits until ok holds; it is asked with the mutex held.
func (b *inbox) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		b.mu.Lock()
		done, changed := ok(), b.changed
		b.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// underLoad starts an installation with deliveries in flight: to receivers that answer slowly, and to some that hang for longer
// than a stop may take.
func underLoad(t *testing.T, events int) (in *installation, box *inbox, project string, endpoints map[string]string) {
	in = install(t, "ENTREGA_ALLOW_HTTP=true", "ENTREGA_EGRESS_ALLOW=127.0.0.1")
	in.start()
	box = newInbox(t)
	project, key := in.project("Stop")
	endpoints = map[string]string{}
	for path, after := range map[string]time.Duration{"/slow": 50 * time.Millisecond, "/hangs-1": -1, "/hangs-2": -1} {
		box.answers(path, after)
		var e struct{ ID string }
		in.call(key, "POST", "/v1/endpoints", map[string]any{"url": box.URL + path, "maxInFlight": 8, "timeoutSeconds": 30}, &e, http.StatusCreated)
		endpoints[e.ID] = path
	}
	var items []map[string]any
	for i := range events {
		items = append(items, map[string]any{"id": fmt.Sprintf("stop-%d", i), "type": "order.created", "data": i})
	}
	in.call(key, "POST", "/v1/events/batch", map[string]any{"events": items}, nil, http.StatusAccepted)
	box.await(t, "all receivers are busy", func() bool {
		return box.count(box.answered, "/slow") >= 10 && box.count(box.requests, "/hangs-1") > 0 && box.count(box.requests, "/hangs-2") > 0
	})
	return in, box, project, endpoints
}

// wantNothingLost starts the installation again and checks that all is delivered, that nothing was sent twice but what was in
// flight at the stop, that each request has its row in the ledger, and that the stop spent no attempt.
func wantNothingLost(t *testing.T, in *installation, box *inbox, project string, endpoints map[string]string, events int) {
	t.Helper()
	box.mu.Lock()
	inFlight := map[string]bool{}
	for key, n := range box.requests {
		if box.answered[key] < n {
			inFlight[key] = true
		}
	}
	box.mu.Unlock()
	for _, path := range endpoints {
		box.answers(path, 0)
	}
	in.start()
	box.await(t, "all is delivered", func() bool { return len(box.answered) == events*len(endpoints) })
	in.stop() // so that all that was sent is recorded
	rows := map[string]int{}
	for line := range strings.Lines(in.command("evidence", "export", "--project", project)) {
		var r struct {
			Kind       string  `json:"kind"`
			EventID    *string `json:"event_id"`
			EndpointID *string `json:"endpoint_id"`
			Attempt    int     `json:"attempt"`
			Charged    bool    `json:"charged"`
			Reason     string  `json:"reason"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if r.Kind != "webhook.deliver" {
			continue
		}
		key := endpoints[*r.EndpointID] + " " + *r.EventID
		rows[key]++
		if r.Reason == jobs.ReasonInterrupted {
			inFlight[key] = true // Its answer crossed the end of the attempt.
		}
		if r.Attempt != 1 || r.Charged != (r.Reason != jobs.ReasonInterrupted) {
			t.Errorf("a row with attempt %d, charged %t, reason %s: a stop spends no attempt", r.Attempt, r.Charged, r.Reason)
		}
	}
	for key, n := range box.requests {
		if most := map[bool]int{true: 2, false: 1}[inFlight[key]]; n > most {
			t.Errorf("%s was sent %d times", key, n)
		}
		if rows[key] != n {
			t.Errorf("%s: the receiver saw %d requests, the ledger has %d rows", key, n, rows[key])
		}
	}
	if out := in.command("evidence", "verify"); !strings.Contains(out, "All chains hold") {
		t.Error(out)
	}
}

func TestServe_StopsUnderLoadWithin25SecondsAndLosesNothing(t *testing.T) {
	t.Parallel()
	const events = 300
	in, box, project, endpoints := underLoad(t, events)
	asked := time.Now()
	in.stop()
	if took := time.Since(asked); took > 25*time.Second {
		t.Errorf("the stop took %s", took)
	}
	wantNothingLost(t, in, box, project, endpoints, events)
}

func TestServe_ASecondSignalCutsTheStopShortAndLosesNothing(t *testing.T) {
	t.Parallel()
	const events = 100
	in, box, project, endpoints := underLoad(t, events)
	asked := time.Now()
	if err := in.serve.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	// The panel closes with the first signal, so that the second one is one.
	for {
		res, err := http.Get(in.url + "/livez")
		if err != nil {
			break
		}
		res.Body.Close()
	}
	in.stop()
	if took := time.Since(asked); took > 15*time.Second {
		t.Errorf("the stop took %s after a second signal, while receivers hang for longer", took)
	}
	wantNothingLost(t, in, box, project, endpoints, events)
}
