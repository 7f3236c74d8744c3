package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The steps of each line, and what the lines have in common.
const (
	growDeliveries = 10_000
	growWidth      = 64
	growTime       = 10 * time.Second
)

// line is how one thing that grows is measured: what x of it do to the rate of deliveries and to a calm project's latency.
type line struct {
	of    string
	title string
	steps []int
	// make prepares x of it and returns what publishes, as many deliveries as are to come, and the sink that counts them.
	make func(ctx context.Context, in *installation, x int) (publish func(ctx context.Context) error, s *sink, err error)
	// n is how many deliveries x of it make.
	n func(x int) int
}

func (b *bench) lines() []line {
	fixed := func(x int) int { return max(growDeliveries, x) }
	return []line{
		{"backlog", "deliveries that wait for one endpoint", []int{1_000, 10_000, 100_000}, b.growBacklog, func(x int) int { return x }},
		{"endpoints", "endpoints of one project", []int{1, 100, 10_000}, b.growEndpoints, fixed},
		{"projects", "projects with an endpoint each", []int{1, 50, 1_000}, b.growProjects, fixed},
	}
}

// growth measures each line once and draws it.
func (b *bench) growth(ctx context.Context) error {
	for _, l := range b.lines() {
		if !b.only.MatchString("growth: " + l.of) {
			continue
		}
		c := chart{title: l.title}
		for _, x := range l.steps {
			rate, p99, err := b.grow(ctx, l, x)
			if err != nil {
				return fmt.Errorf("growth: %d %s: %w", x, l.of, err)
			}
			c.points = append(c.points, point{x: float64(x), rate: rate, p99: p99})
			fmt.Printf("  growth: %d %s: %.0f deliveries/s, p99 %.0f ms\n", x, l.of, rate, p99)
		}
		if err := os.WriteFile(filepath.Join(b.growthDir, "growth-"+l.of+".svg"), []byte(c.svg()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// grow measures one step. A node without workers takes the events; the rate is what a node with workers then does from the outbox to
// the receiver. The latency is that of a calm project of 50 events/s once all has gone, and while a backlog waits for an endpoint
// that is paused where it is a backlog that grows.
func (b *bench) grow(ctx context.Context, l line, x int) (rate, p99 float64, err error) {
	in, err := b.install(ctx, 0)
	if in != nil {
		defer func() { err = errors.Join(err, in.close()) }()
	}
	if err != nil {
		return 0, 0, err
	}
	if err := in.start(ctx, "--without=work"); err != nil {
		return 0, 0, err
	}
	publish, s, err := l.make(ctx, in, x)
	if err != nil {
		return 0, 0, err
	}
	if err := publish(ctx); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := in.start(ctx, "--without=web"); err != nil {
		return 0, 0, err
	}
	ready := time.Since(start)
	if err := s.wait(ctx); err != nil {
		return 0, 0, err
	}
	rate = float64(l.n(x)) / (time.Since(start) - ready).Seconds()

	p, timed, err := in.timedProject(ctx, 8)
	if err != nil {
		return 0, 0, err
	}
	if err := p.publishAt(ctx, evenRate, growTime); err != nil {
		return 0, 0, err
	}
	took, err := timed.drain(ctx)
	return rate, ms(quantile(took, 0.99)), err
}

func (b *bench) growBacklog(ctx context.Context, in *installation, x int) (func(context.Context) error, *sink, error) {
	p, err := in.project(ctx, "Backlog")
	if err != nil {
		return nil, nil, err
	}
	s := b.receiver.sink(x)
	if _, err := p.endpoint(ctx, s, growWidth); err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context) error { return p.publishMany(ctx, x, 2) }, s, nil
}

func (b *bench) growEndpoints(ctx context.Context, in *installation, x int) (func(context.Context) error, *sink, error) {
	p, err := in.project(ctx, "Endpoints")
	if err != nil {
		return nil, nil, err
	}
	s := b.receiver.sink(max(growDeliveries, x))
	err = parallel(ctx, 4, func(ctx context.Context, i int) error {
		for n := i; n < x; n += 4 {
			if _, err := p.endpoint(ctx, s, growWidth); err != nil {
				return err
			}
		}
		return nil
	})
	return func(ctx context.Context) error { return p.publishMany(ctx, max(growDeliveries/x, 1), 2) }, s, err
}

func (b *bench) growProjects(ctx context.Context, in *installation, x int) (func(context.Context) error, *sink, error) {
	s := b.receiver.sink(growDeliveries)
	all := make([]*project, x)
	for i := range all {
		var err error
		if all[i], err = in.project(ctx, fmt.Sprintf("Project %d", i+1)); err != nil {
			return nil, nil, err
		}
		if _, err := all[i].endpoint(ctx, s, growWidth); err != nil {
			return nil, nil, err
		}
	}
	return func(ctx context.Context) error {
		for _, p := range all {
			if err := p.publishMany(ctx, growDeliveries/x, 1); err != nil {
				return err
			}
		}
		return nil
	}, s, nil
}
