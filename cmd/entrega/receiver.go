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

// behaviour is how one of the demo's receivers answers.
type behaviour struct {
	path, about string
	answer      func(w http.ResponseWriter, tries int)
}

var behaviours = []behaviour{
	{"/healthy", "Demo: always answers 200", func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusOK) }},
	{"/flaky", "Demo: fails twice, then works", func(w http.ResponseWriter, tries int) {
		if tries <= 2 {
			http.Error(w, "upstream unavailable", http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	}},
	{"/busy", "Demo: answers 429 with Retry-After once", func(w http.ResponseWriter, tries int) {
		if tries <= 1 {
			w.Header().Set("Retry-After", "15")
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

	mu    sync.Mutex
	tries map[string]int // by path and webhook-id
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
	r := &receiver{listener: l, done: make(chan struct{}), tries: map[string]int{}}
	mux := http.NewServeMux()
	for _, b := range behaviours {
		mux.HandleFunc("POST "+b.path, func(w http.ResponseWriter, req *http.Request) {
			b.answer(w, r.count(b.path+" "+req.Header.Get("webhook-id")))
		})
	}
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(r.done)
		// Serve ends with ErrServerClosed when stop is called; any other end shows as failing deliveries in the panel.
		_ = r.server.Serve(l)
	}()
	return r, nil
}

func (r *receiver) count(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tries) > 100_000 {
		r.tries = map[string]int{}
	}
	r.tries[key]++
	return r.tries[key]
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
