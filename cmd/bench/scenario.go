package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The sizes of the scenarios.
const (
	backlogEvents = 20_000
	fanEvents     = 2_000
	fanEndpoints  = 10
	publishConns  = 32
	publishTime   = 5 * time.Second
	evenRate      = 50
	evenTime      = 12 * time.Second
	floodEvents   = 100_000
)

// scenario is one figure, or some that come together.
type scenario struct {
	name  string
	nodes int
	do    func(ctx context.Context, in *installation) error
}

// scenarios in the order of the table. Each has an installation of its own, so that none finds the traces of another.
func (b *bench) scenarios() []scenario {
	return []scenario{
		{"deliver: 20,000 to one endpoint, 64 at once", 1, func(ctx context.Context, in *installation) error {
			return b.backlog(ctx, in, "deliver: 20,000 to one endpoint, 64 at once", limitRP, b.size(backlogEvents), 1, 64)
		}},
		{"deliver: 2,000 events to 10 endpoints each", 1, func(ctx context.Context, in *installation) error {
			return b.backlog(ctx, in, "deliver: 2,000 events to 10 endpoints each", limitRP, b.size(fanEvents), fanEndpoints, 64)
		}},
		{"deliver: 20,000 to one endpoint, 1 at once", 1, func(ctx context.Context, in *installation) error {
			return b.backlog(ctx, in, "deliver: 20,000 to one endpoint, 1 at once", limitPost1, b.size(backlogEvents), 1, 1)
		}},
		{"deliver: 2,000 events to 10 endpoints each, two nodes", 2, func(ctx context.Context, in *installation) error {
			return b.backlog(ctx, in, "deliver: 2,000 events to 10 endpoints each, two nodes", "deliver: 2,000 events to 10 endpoints each", b.size(fanEvents), fanEndpoints, 64)
		}},
		{"publish: single events, 32 connections", 1, b.publishSingles},
		{"publish: batches of 500", 1, b.publishBatches},
		{"latency: 50 events/s", 1, b.latency},
		{"hang: a fifth of 50/s goes to an endpoint that hangs", 1, func(ctx context.Context, in *installation) error {
			return b.hang(ctx, in, 50)
		}},
		{"hang: a fifth of 150/s goes to an endpoint that hangs", 1, func(ctx context.Context, in *installation) error {
			return b.hang(ctx, in, 150)
		}},
		{"flood: another project publishes 100,000", 1, b.flood},
		{"full tables: 1,000,000 finished tasks and 10,000,000 rows of the ledger", 1, b.full},
	}
}

// entrega measures each scenario once.
func (b *bench) entrega(ctx context.Context) error {
	for _, s := range b.scenarios() {
		if !b.only.MatchString(s.name) {
			continue
		}
		if err := b.one(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (b *bench) one(ctx context.Context, s scenario) (err error) {
	in, err := b.install(ctx, s.nodes)
	if in != nil {
		defer func() { err = errors.Join(err, in.close()) }()
	}
	if err != nil {
		return err
	}
	if err := s.do(ctx, in); err != nil {
		return err
	}
	for _, n := range in.nodes {
		b.figures.add("memory of a node, at most", " MiB", peakMiB(n.cmd.Process.Pid))
	}
	return nil
}

// backlog lets deliveries pile up behind endpoints that are paused, and measures how fast they go once the pause ends.
func (b *bench) backlog(ctx context.Context, in *installation, name, against string, events, endpoints, width int) error {
	rate, used, err := b.drain(ctx, in, name, events, endpoints, width)
	if err != nil {
		return err
	}
	b.figures.add(name, "/s", rate)
	b.figures.compare(name, against)
	b.addUsage(name, used, events*endpoints)
	return nil
}

func (b *bench) drain(ctx context.Context, in *installation, name string, events, endpoints, width int) (rate float64, used usage, err error) {
	p, err := in.project(ctx, "Backlog")
	if err != nil {
		return 0, used, err
	}
	n := events * endpoints
	s := b.receiver.sink(n)
	ids := make([]string, endpoints)
	for i := range ids {
		if ids[i], err = p.endpoint(ctx, s, width); err != nil {
			return 0, used, err
		}
		if _, err := in.endpoints.Pause(ctx, p.actor, ids[i]); err != nil {
			return 0, used, err
		}
	}
	if err := p.publishMany(ctx, events, 2); err != nil {
		return 0, used, err
	}
	if err := in.pending(ctx, n); err != nil {
		return 0, used, err
	}
	stop, err := in.watch(ctx, name)
	if err != nil {
		return 0, used, err
	}
	before, start := b.usage(in.nodes), time.Now()
	for _, id := range ids {
		if _, err := in.endpoints.Unpause(ctx, p.actor, id); err != nil {
			return 0, used, err
		}
	}
	if err := s.wait(ctx); err != nil {
		return 0, used, err
	}
	took := time.Since(start)
	used = b.usage(in.nodes).since(before)
	return float64(n) / took.Seconds(), used, stop()
}

// pending waits until n deliveries wait in the table.
func (in *installation) pending(ctx context.Context, n int) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var have int
		if err := in.pool.QueryRow(ctx, `select count(*) from river_job where kind = 'webhook.deliver' and state = 'pending'`).Scan(&have); err != nil {
			return err
		}
		if have >= n {
			// What the making of the backlog left behind is not to be paid by what is measured.
			_, err := in.pool.Exec(ctx, `vacuum analyze river_job`)
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *bench) publishSingles(ctx context.Context, in *installation) error {
	const name = "publish: single events, 32 connections"
	p, err := in.project(ctx, "Publisher")
	if err != nil {
		return err
	}
	stop, err := in.watch(ctx, name)
	if err != nil {
		return err
	}
	before := b.usage(in.nodes)
	rate, took, err := p.publishFor(ctx, publishConns, b.lasting(publishTime))
	if err != nil {
		return err
	}
	used := b.usage(in.nodes).since(before)
	b.figures.add(name, "/s", rate)
	b.figures.compare(name, limitC)
	b.figures.add("publish: single events, p50", " ms", ms(quantile(took, 0.5)))
	b.addUsage(name, used, len(took))
	return stop()
}

func (b *bench) publishBatches(ctx context.Context, in *installation) error {
	const name = "publish: batches of 500"
	p, err := in.project(ctx, "Publisher")
	if err != nil {
		return err
	}
	stop, err := in.watch(ctx, name)
	if err != nil {
		return err
	}
	before := b.usage(in.nodes)
	rate, events, err := p.batchesFor(ctx, 4, b.lasting(publishTime))
	if err != nil {
		return err
	}
	used := b.usage(in.nodes).since(before)
	b.figures.add(name, "/s", rate)
	b.figures.compare(name, limitC)
	b.addUsage(name, used, events)
	return stop()
}

// latency measures from publishing to receipt at a calm rate.
func (b *bench) latency(ctx context.Context, in *installation) error {
	const name = "latency: 50 events/s"
	p, s, err := in.timedProject(ctx, 8)
	if err != nil {
		return err
	}
	stop, err := in.watch(ctx, name)
	if err != nil {
		return err
	}
	if err := p.publishAt(ctx, evenRate, b.lasting(evenTime)); err != nil {
		return err
	}
	took, err := s.drain(ctx)
	if err != nil {
		return err
	}
	b.figures.add(name+", p50", " ms", ms(quantile(took, 0.5)))
	b.figures.add(name+", p99", " ms", ms(quantile(took, 0.99)))
	return stop()
}

// timedProject is a project with one endpoint whose receipts are timed, warmed up.
func (in *installation) timedProject(ctx context.Context, width int) (*project, *sink, error) {
	p, err := in.project(ctx, "Timed")
	if err != nil {
		return nil, nil, err
	}
	s := in.bench.receiver.sink(-1)
	s.timed = true
	if _, err := p.endpoint(ctx, s, width); err != nil {
		return nil, nil, err
	}
	if err := p.publishAt(ctx, 20, time.Second); err != nil {
		return nil, nil, err
	}
	_, err = s.drain(ctx)
	return p, s, err
}

// drain waits until nothing has come for a second, and returns the latencies since the last call.
func (s *sink) drain(ctx context.Context) ([]time.Duration, error) {
	for before := int64(-1); s.got.Load() != before; {
		before = s.got.Load()
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	took := s.latencies
	s.latencies = nil
	return took, nil
}

// hang measures the others' latency without, and then with, an endpoint that hangs and gets a fifth of the events.
func (b *bench) hang(ctx context.Context, in *installation, perSecond float64) error {
	p, s, err := in.timedProject(ctx, 8)
	if err != nil {
		return err
	}
	other, err := in.project(ctx, "Hanging")
	if err != nil {
		return err
	}
	hanging := b.receiver.sink(-1)
	hanging.hangs = true
	if _, err := other.endpoint(ctx, hanging, 1); err != nil {
		return err
	}
	d := b.lasting(evenTime)
	if err := p.publishAt(ctx, perSecond*0.8, d); err != nil {
		return err
	}
	without, err := s.drain(ctx)
	if err != nil {
		return err
	}
	err = parallel(ctx, 2, func(ctx context.Context, i int) error {
		if i == 0 {
			return p.publishAt(ctx, perSecond*0.8, d)
		}
		return other.publishAt(ctx, perSecond*0.2, d)
	})
	if err != nil {
		return err
	}
	with, err := s.drain(ctx)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("hang: a fifth of %.0f/s goes to an endpoint that hangs, others' p99", perSecond)
	base := fmt.Sprintf("hang: the same without, p99 at %.0f/s", perSecond)
	b.figures.add(base, " ms", ms(quantile(without, 0.99)))
	b.figures.add(name, " ms", ms(quantile(with, 0.99)))
	b.figures.compare(name, base)
	return nil
}

// flood measures one project's latency when idle, and while another publishes very many events at once.
func (b *bench) flood(ctx context.Context, in *installation) error {
	p, s, err := in.timedProject(ctx, 8)
	if err != nil {
		return err
	}
	other, err := in.project(ctx, "Flood")
	if err != nil {
		return err
	}
	n := b.size(floodEvents)
	all := b.receiver.sink(n)
	if _, err := other.endpoint(ctx, all, 16); err != nil {
		return err
	}
	d := b.lasting(evenTime)
	if err := p.publishAt(ctx, evenRate, d); err != nil {
		return err
	}
	idle, err := s.drain(ctx)
	if err != nil {
		return err
	}
	stop, err := in.watch(ctx, "flood: another project publishes 100,000")
	if err != nil {
		return err
	}
	// Up to where the flood has been stored it is the generator and the publishing that compete; both belong to it.
	err = parallel(ctx, 2, func(ctx context.Context, i int) error {
		if i == 0 {
			return p.publishAt(ctx, evenRate, 2*d)
		}
		return other.publishMany(ctx, n, 1)
	})
	if err != nil {
		return err
	}
	flooded, err := s.drain(ctx)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	b.figures.add("flood: a calm project alone, p99", " ms", ms(quantile(idle, 0.99)))
	b.figures.add("flood: while another publishes 100,000, p99", " ms", ms(quantile(flooded, 0.99)))
	b.figures.compare("flood: while another publishes 100,000, p99", "flood: a calm project alone, p99")
	b.figures.add("flood: while another publishes 100,000, p50", " ms", ms(quantile(flooded, 0.5)))
	return nil
}

func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
