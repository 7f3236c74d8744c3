package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"entrega/internal/store"
	"entrega/webhooks"
)

// behaviour is how one of the demo's receivers answers its n-th request, counted from 0.
type behaviour struct {
	path, about string
	answer      func(w http.ResponseWriter, n int)
}

// A bad spell comes round after demoCycle requests, so that there is always something to look at, and most of it works.
const demoCycle = 60

var behaviours = []behaviour{
	{"/healthy", "Demo: always answers 200", func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusOK) }},
	{"/flaky", "Demo: fails twice, then works", func(w http.ResponseWriter, n int) {
		if n%demoCycle < 2 {
			http.Error(w, "upstream unavailable", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	}},
	{"/busy", "Demo: now and then answers 429 with Retry-After", func(w http.ResponseWriter, n int) {
		if n%(demoCycle/4) == 3 {
			w.Header().Set("Retry-After", "20")
			http.Error(w, "slow down", http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusOK)
	}},
}

// receiver is the demo's customer side, on loopback.
type receiver struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}

	mu       sync.Mutex
	requests map[string]int // by path
}

// startReceiver listens on addr, or on any free port where that is taken.
func startReceiver(ctx context.Context, addr string) (*receiver, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		if l, err = lc.Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
			return nil, fmt.Errorf("start the demo's receiver: %w", err)
		}
	}
	r := &receiver{listener: l, done: make(chan struct{}), requests: map[string]int{}}
	mux := http.NewServeMux()
	for _, b := range behaviours {
		mux.HandleFunc("POST "+b.path, func(w http.ResponseWriter, _ *http.Request) { b.answer(w, r.count(b.path)) })
	}
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(r.done)
		// Serve ends with ErrServerClosed when stop is called; any other end shows as failing deliveries in the panel.
		_ = r.server.Serve(l)
	}()
	return r, nil
}

func (r *receiver) count(path string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.requests[path]
	r.requests[path]++
	return n
}

func (r *receiver) addr() string { return r.listener.Addr().String() }

func (r *receiver) url(b behaviour) string { return "http://" + r.addr() + b.path }

func (r *receiver) stop() {
	_ = r.server.Close() // nothing it holds is worth draining
	<-r.done
}

// repointEndpoints makes the demo's endpoints follow the receiver where its port is another than before.
func (a *app) repointEndpoints(ctx context.Context, project string, r *receiver) error {
	list, err := a.endpoints.ListEndpoints(ctx, a.db.pool, project, webhooks.EndpointFilter{}, store.Page{Limit: store.MaxLimit})
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range list.Rows {
		u, err := url.Parse(e.URL)
		if err != nil {
			continue
		}
		for _, b := range behaviours {
			if b.path == u.Path && b.about == e.Description && e.URL != r.url(b) {
				target := r.url(b)
				_, err := a.endpoints.UpdateEndpoint(ctx, cli().In(project), e.ID, webhooks.Change{URL: &target})
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
