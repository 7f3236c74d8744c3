package store

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

const (
	// bulkRows is from how many rows on work is bulk.
	bulkRows = 16
	// courtesyFor is how long bulk work makes room after something came alone.
	courtesyFor = time.Second
	// longestRest bounds the rest after bulk work.
	longestRest = 50 * time.Millisecond
)

// Gate keeps statements on many rows from crowding out those on a few: in one process only so many run at once, half as many while
// there is something that came alone, and each then rests for half of what it took. What comes alone passes many short steps, and where
// all processors are busy it waits at each for whoever has them. A nil Gate lets everything in. It is safe for concurrent use.
//
// Whoever enters must hold no lock that others need to get through.
type Gate struct {
	all, few chan struct{}
	aloneAt  atomic.Int64
}

// NewGate makes a Gate for as many processors; for one of them it is as for two.
func NewGate(processors int) *Gate {
	n := max(processors, 2)
	return &Gate{all: make(chan struct{}, n), few: make(chan struct{}, n/2)}
}

// Alone notes that something came alone, and is not to wait for bulk work.
func (g *Gate) Alone() {
	if g != nil {
		g.aloneAt.Store(time.Now().UnixNano())
	}
}

// Courteous reports whether something came alone just now.
func (g *Gate) Courteous() bool {
	return g != nil && time.Duration(time.Now().UnixNano()-g.aloneAt.Load()) < courtesyFor
}

// Enter waits until work on as many rows may begin; work on a few never waits. Whoever entered must call leave when the work is done.
// The error is that of a context that ended first.
func (g *Gate) Enter(ctx context.Context, rows int) (leave func(), err error) {
	if g == nil || rows < bulkRows {
		return func() {}, nil
	}
	courteous := g.Courteous()
	if courteous {
		if err := enter(ctx, g.few); err != nil {
			return nil, err
		}
	}
	if err := enter(ctx, g.all); err != nil {
		if courteous {
			<-g.few
		}
		return nil, err
	}
	start := time.Now()
	return func() {
		<-g.all
		if courteous {
			time.AfterFunc(Rest(time.Since(start)), func() { <-g.few })
		}
	}, nil
}

// Rest is how long courteous bulk work rests that took so long.
func Rest(took time.Duration) time.Duration { return min(took/2, longestRest) }

func enter(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for other work on many rows: %w", context.Cause(ctx))
	}
}
