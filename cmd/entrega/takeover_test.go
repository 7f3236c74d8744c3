package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// arrival is one request.
type arrival struct {
	id string
	at time.Time
}

// line is a receiver that notes what arrives, in order.
type line struct {
	*httptest.Server
	mu      sync.Mutex
	got     []arrival
	after   time.Duration
	changed chan struct{}
}

// newLine answers with 204 after a while, but for the request number busy: 429 with a Retry-After in seconds.
func newLine(t *testing.T, after time.Duration, busy, retryAfter int) *line {
	l := &line{after: after, changed: make(chan struct{})}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Only then does the server notice that the sender has gone.
		l.mu.Lock()
		l.got = append(l.got, arrival{r.Header.Get("webhook-id"), time.Now()})
		number, after := len(l.got), l.after
		close(l.changed)
		l.changed = make(chan struct{})
		l.mu.Unlock()
		if number == busy {
			w.Header().Set("Retry-After", fmt.Sprint(retryAfter))
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		select {
		case <-time.After(after):
		case <-r.Context().Done():
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(l.Close)
	return l
}

// await waits until ok holds of what arrived.
func (l *line) await(t *testing.T, what string, ok func(got []arrival) bool) {
	t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		l.mu.Lock()
		done, changed := ok(l.got), l.changed
		l.mu.Unlock()
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

func different(got []arrival) int {
	ids := map[string]bool{}
	for _, a := range got {
		ids[a.id] = true
	}
	return len(ids)
}

// wantOrder checks that events arrived in the order published, where at most so many requests come a second time.
func (l *line) wantOrder(t *testing.T, what string, again int) {
	t.Helper()
	last := ""
	for _, a := range l.got {
		switch {
		case a.id < last:
			t.Errorf("%s: %s arrived after %s", what, a.id, last)
		case a.id == last:
			again--
		}
		last = a.id
	}
	if again < 0 {
		t.Errorf("%s: %d requests too many came a second time", what, -again)
	}
}

// laneRead is the part of an endpoint's answer that tells how its lane stands.
type laneRead struct {
	Lane struct {
		InFlight, Outstanding, Pending int
		Holder                         *string
		PauseUntil                     *time.Time
	}
}

func TestNodes_AnotherTakesOverWithinTheLeaseAndKeepsOrderAndPause(t *testing.T) {
	t.Parallel()
	const events, pause, lease = 600, 30, 35 * time.Second
	in := install(t, "ENTREGA_ALLOW_HTTP=true", "ENTREGA_EGRESS_ALLOW=127.0.0.1")
	in.start()
	_, key := in.project("Nodes")
	busy, paused := newLine(t, 100*time.Millisecond, 0, 0), newLine(t, 0, 4, pause)
	ids := map[*line]string{}
	for _, l := range []*line{busy, paused} {
		var e struct{ ID string }
		in.call(key, "POST", "/v1/endpoints", map[string]any{"url": l.URL, "maxInFlight": 1}, &e, http.StatusCreated)
		ids[l] = e.ID
	}
	publish := func(in *installation, from, n int) {
		var items []map[string]any
		for i := range n {
			items = append(items, map[string]any{"id": fmt.Sprintf("event-%04d", from+i), "type": "order.created", "data": i})
		}
		in.call(key, "POST", "/v1/events/batch", map[string]any{"events": items}, nil, http.StatusAccepted)
	}
	publish(in, 0, events)
	busy.await(t, "its backlog is worked", func(got []arrival) bool { return len(got) >= 20 })
	paused.await(t, "it asks for a pause", func(got []arrival) bool { return len(got) == 4 })

	other := *in
	other.serve = nil
	other.start()
	var before, after, held laneRead
	for deadline := time.Now().Add(pause * time.Second); held.Lane.PauseUntil == nil; {
		if time.Now().After(deadline) {
			t.Fatal("the lane does not tell of the pause")
		}
		in.call(key, "GET", "/v1/endpoints/"+ids[paused], nil, &held, http.StatusOK)
	}
	in.call(key, "GET", "/v1/endpoints/"+ids[busy], nil, &before, http.StatusOK)
	if l := before.Lane; l.Holder == nil || l.InFlight != 1 || l.Outstanding > 256 || l.Pending == 0 {
		t.Fatalf("a lane with a backlog reads %+v", l)
	}
	in.kill()
	killed := time.Now()
	publish(&other, events, 5)
	seen := 0
	busy.await(t, "the other node goes on", func(got []arrival) bool {
		seen = len(got)
		return seen > 0 && got[seen-1].at.After(killed.Add(time.Second))
	})
	if took := busy.got[seen-1].at.Sub(killed); took > lease {
		t.Errorf("the other node took over after %s, the lease is %s", took, lease)
	} else {
		t.Logf("the other node took over after %s", took.Round(time.Millisecond))
	}
	other.call(key, "GET", "/v1/endpoints/"+ids[busy], nil, &after, http.StatusOK)
	if after.Lane.Holder == nil || *after.Lane.Holder == *before.Lane.Holder {
		t.Errorf("after the takeover the lane reads %+v", after.Lane)
	}
	busy.mu.Lock()
	busy.after = 0 // The rest may go faster.
	busy.mu.Unlock()
	all := func(got []arrival) bool { return different(got) == events+5 }
	busy.await(t, "all is delivered", all)
	paused.await(t, "all is delivered after the pause", all)
	other.stop()
	busy.wantOrder(t, "the lane that was taken over", 1)
	paused.wantOrder(t, "the lane that was paused", 1)
	if next := paused.got[4].at; next.Before(held.Lane.PauseUntil.Add(-time.Second)) {
		t.Errorf("a request came %s before the end of the pause", held.Lane.PauseUntil.Sub(next))
	}
}
