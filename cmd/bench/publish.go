package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// batchSize is how many events one batch holds.
const batchSize = 500

func eventBody() string {
	return `{"type":"order.created","data":` + payload(time.Now()) + `}`
}

func batchBody(n int) string {
	return `{"events":[` + strings.Repeat(eventBody()+",", n-1) + eventBody() + `]}`
}

// publishMany publishes n events in batches, over a few connections.
func (p *project) publishMany(ctx context.Context, n, conns int) error {
	var next atomic.Int64
	return parallel(ctx, conns, func(ctx context.Context, _ int) error {
		c, err := dial(ctx, p.addr())
		if err != nil {
			return err
		}
		defer c.Close()
		for {
			left := n - int(next.Add(batchSize)-batchSize)
			if left <= 0 {
				return nil
			}
			if _, err := c.send(rawPost(p.addr(), "/v1/events/batch", p.key, batchBody(min(left, batchSize)))); err != nil {
				return err
			}
		}
	})
}

// publishFor publishes single events over connections as fast as they are answered, for a while, and returns the rate and how long
// the answers took.
func (p *project) publishFor(ctx context.Context, conns int, d time.Duration) (rate float64, took []time.Duration, err error) {
	var mu sync.Mutex
	start := time.Now()
	err = parallel(ctx, conns, func(ctx context.Context, _ int) error {
		c, err := dial(ctx, p.addr())
		if err != nil {
			return err
		}
		defer c.Close()
		var mine []time.Duration
		for time.Since(start) < d {
			request, at := rawPost(p.addr(), "/v1/events", p.key, eventBody()), time.Now()
			if _, err := c.send(request); err != nil {
				return err
			}
			mine = append(mine, time.Since(at))
		}
		mu.Lock()
		defer mu.Unlock()
		took = append(took, mine...)
		return nil
	})
	return float64(len(took)) / time.Since(start).Seconds(), took, err
}

// batchesFor is publishFor with batches; the rate is that of events, of which there were n.
func (p *project) batchesFor(ctx context.Context, conns int, d time.Duration) (rate float64, n int, err error) {
	var sent atomic.Int64
	start := time.Now()
	request := rawPost(p.addr(), "/v1/events/batch", p.key, batchBody(batchSize))
	err = parallel(ctx, conns, func(ctx context.Context, _ int) error {
		c, err := dial(ctx, p.addr())
		if err != nil {
			return err
		}
		defer c.Close()
		for time.Since(start) < d {
			if _, err := c.send(request); err != nil {
				return err
			}
			sent.Add(batchSize)
		}
		return nil
	})
	return float64(sent.Load()) / time.Since(start).Seconds(), int(sent.Load()), err
}

// publishAt publishes events at an even rate for a while, whatever the answers take.
func (p *project) publishAt(ctx context.Context, perSecond float64, d time.Duration) error {
	const conns = 16
	work := make(chan struct{}, 1024)
	go func() {
		defer close(work)
		tick := time.NewTicker(time.Duration(float64(time.Second) / perSecond))
		defer tick.Stop()
		end := time.NewTimer(d)
		defer end.Stop()
		for {
			select {
			case <-tick.C:
				work <- struct{}{}
			case <-end.C:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	err := parallel(ctx, conns, func(ctx context.Context, _ int) error {
		c, err := dial(ctx, p.addr())
		if err != nil {
			return err
		}
		defer c.Close()
		for range work {
			if _, err := c.send(rawPost(p.addr(), "/v1/events", p.key, eventBody())); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("publish at an even rate: %w", err)
	}
	return nil
}
