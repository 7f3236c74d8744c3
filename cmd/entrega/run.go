package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The times of a stop, from 2-architecture.md: requests under way get a moment, and at the same time tasks 20 s and what it takes
// to write down what was cut short. All of it, with the private Postgres, takes 25 s at most.
const (
	webDrain  = 5 * time.Second
	workDrain = 23 * time.Second
)

// parts are what --without can leave out.
var parts = []string{"web", "work"}

func checkWithout(without []string) error {
	for _, part := range without {
		if !slices.Contains(parts, part) {
			return fmt.Errorf("without: knows web and work, not %q", part)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(without)))) == len(parts) {
		return errors.New("without: leaves out both web and work, so nothing is left to do")
	}
	return nil
}

// run serves and works until the context ends, then drains: quickly once a.hurry closes. A part that fails ends the whole.
func (a *app) run(ctx context.Context, without []string, ready func()) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running sync.WaitGroup
	defer running.Wait()

	running.Go(func() { paceCollector(ctx) })
	stopWork := func() error { return nil }
	if !slices.Contains(without, "work") {
		stop, err := a.startWork(ctx, &running)
		if err != nil {
			return err
		}
		stopWork = stop
	}
	stopWeb := func() error { return nil }
	if !slices.Contains(without, "web") {
		stopWeb = a.startWeb(ctx, &running, fail)
	}
	if a.config.AdminListen != "" {
		if err := a.startAdmin(ctx, &running, fail); err != nil {
			fail(err)
		}
	}
	if a.db.server != nil {
		running.Go(func() {
			select {
			case <-ctx.Done():
			case <-a.db.server.Done():
				fail(errors.New("the private Postgres ended. Its log is pg.log in the data folder"))
			}
		})
	}
	ready()

	<-ctx.Done()
	cause := context.Cause(ctx)
	if errors.Is(cause, context.Canceled) {
		cause = nil
	}
	a.log.InfoContext(ctx, "stopping; attempts under way may finish within 20 s. Another signal cuts them short")
	web := make(chan error, 1)
	go func() { web <- stopWeb() }()
	return errors.Join(cause, stopWork(), <-web)
}

// startWork starts relay, lanes and worker. The lanes' keeper outlives the worker, since it holds the leases of what still runs.
func (a *app) startWork(ctx context.Context, running *sync.WaitGroup) (stop func() error, err error) {
	lanes, endLanes := context.WithCancel(context.WithoutCancel(ctx))
	if err := a.worker.Start(ctx); err != nil {
		endLanes()
		return nil, err
	}
	running.Go(func() { a.deliverer.Run(lanes) })
	running.Go(func() { a.relay.Run(ctx) })
	running.Go(func() { a.scanner.Run(ctx) })
	return func() error {
		defer endLanes()
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), workDrain)
		defer cancel()
		running.Go(func() {
			select {
			case <-a.hurry:
				if err := a.worker.Hurry(drain); err != nil {
					a.log.WarnContext(drain, "the stop could not be hurried", "error", err)
				}
			case <-drain.Done():
			}
		})
		return a.worker.Stop(drain)
	}, nil
}

func (a *app) startWeb(ctx context.Context, running *sync.WaitGroup, fail context.CancelCauseFunc) (stop func() error) {
	server := &http.Server{Handler: a.web.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10}
	server.RegisterOnShutdown(a.web.Close) // ends the live streams, which never end by themselves
	running.Go(func() {
		if err := server.Serve(a.listener); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serve: %w", err))
		}
	})
	return func() error {
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), webDrain)
		defer cancel()
		if err := server.Shutdown(drain); err != nil {
			return server.Close()
		}
		return nil
	}
}
