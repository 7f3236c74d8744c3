package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// hangFor is how long a hanging sink keeps a request.
const hangFor = 15 * time.Second

// sentAtMark comes before the instant of publishing in each payload, in nanoseconds since 1970.
var sentAtMark = []byte(`"sentAt":`)

// receiver is the server that all deliveries go to. Each path is a sink of its own.
type receiver struct {
	listener net.Listener
	server   *http.Server
	stopped  chan struct{}
	ended    chan struct{}

	mu    sync.RWMutex
	sinks map[string]*sink
}

// sink counts the requests to one path.
type sink struct {
	path  string
	hangs bool
	timed bool

	got  atomic.Int64
	want int64
	full chan struct{}

	mu        sync.Mutex
	latencies []time.Duration
}

func startReceiver(ctx context.Context) (*receiver, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the receiver: %w", err)
	}
	r := &receiver{listener: l, stopped: make(chan struct{}), ended: make(chan struct{}), sinks: map[string]*sink{}}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(r.ended)
		_ = r.server.Serve(l) // It ends with ErrServerClosed; anything else shows as deliveries that fail.
	}()
	return r, nil
}

func (r *receiver) stop() {
	close(r.stopped)
	_ = r.server.Close() // Nothing it holds is worth draining.
	<-r.ended
}

func (r *receiver) url(s *sink) string { return "http://" + r.listener.Addr().String() + s.path }

// sink makes a new path. Its channel full closes with the request that makes want.
func (r *receiver) sink(want int) *sink {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &sink{path: "/" + strconv.Itoa(len(r.sinks)+1), want: int64(want), full: make(chan struct{})}
	r.sinks[s.path] = s
	return s
}

// ServeHTTP answers 200, at once or after hangFor.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.RLock()
	s := r.sinks[req.URL.Path]
	r.mu.RUnlock()
	body, err := io.ReadAll(req.Body)
	if s == nil || err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if s.hangs {
		select {
		case <-time.After(hangFor):
		case <-req.Context().Done():
		case <-r.stopped:
		}
		return
	}
	s.take(body)
}

func (s *sink) take(body []byte) {
	if s.timed {
		if sent, ok := sentAt(body); ok {
			s.mu.Lock()
			s.latencies = append(s.latencies, time.Since(sent))
			s.mu.Unlock()
		}
	}
	if s.got.Add(1) == s.want {
		close(s.full)
	}
}

func sentAt(body []byte) (time.Time, bool) {
	_, after, found := bytes.Cut(body, sentAtMark)
	digits, _, ended := bytes.Cut(after, []byte(","))
	if !found || !ended {
		return time.Time{}, false
	}
	ns, err := strconv.ParseInt(string(digits), 10, 64)
	return time.Unix(0, ns), err == nil
}

// wait waits until the sink is full, and complains when nothing came for a minute.
func (s *sink) wait(ctx context.Context) error {
	idle := time.NewTicker(time.Minute)
	defer idle.Stop()
	before := int64(-1)
	for {
		select {
		case <-s.full:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-idle.C:
			if now := s.got.Load(); now == before {
				return fmt.Errorf("the receiver got %d of %d and then nothing for a minute", now, s.want)
			}
			before = s.got.Load()
		}
	}
}

// payload is 1 KiB of JSON that names the instant.
func payload(at time.Time) string {
	head := string(sentAtMark) + strconv.FormatInt(at.UnixNano(), 10) + `,"orderId":"SO-1042","note":"`
	return "{" + head + strings.Repeat("x", 1024-len(head)-len(`{"}`)) + `"}`
}
