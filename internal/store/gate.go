package store

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// bulkRows is from how many rows on work is bulk.
	bulkRows = 16
	// courtesyFor is how long bulk work makes room after something came alone.
	courtesyFor = time.Second
	// longestWait is how long bulk work waits for its turn at most, longestYield while it makes room.
	longestWait  = 250 * time.Millisecond
	longestYield = time.Second
	// restFor is how many times as long as it took courteous bulk work rests, and longestRest bounds that.
	restFor     = 3
	longestRest = 200 * time.Millisecond
)

// Gate keeps statements on many rows from crowding out those on a few: in one process only so many run at once, half as many while
// there is something that came alone, and each then rests for three times as long as it took. What comes alone passes many short steps,
// and where all processors are busy it waits at each for whoever has them.
//
// It is a courtesy and no lock: nobody waits longer than a second, whatever those inside are waiting for. A nil Gate lets everything in.
// It is safe for concurrent use.
type Gate struct {
	all, few chan struct{}
	// made is where its clock begins; aloneAt is when something came alone last, on that clock, and 0 for never.
	made    time.Time
	aloneAt atomic.Int64
}

// NewGate makes a Gate for as many processors; for one of them it is as for two.
func NewGate(processors int) *Gate {
	n := max(processors, 2)
	return &Gate{all: make(chan struct{}, n), few: make(chan struct{}, n/2), made: time.Now()}
}

// Alone notes that something came alone, and is not to wait for bulk work.
func (g *Gate) Alone() {
	if g != nil {
		g.aloneAt.Store(max(1, int64(time.Since(g.made))))
	}
}

// Courteous reports whether something came alone just now.
func (g *Gate) Courteous() bool {
	if g == nil {
		return false
	}
	at := g.aloneAt.Load()
	return at > 0 && time.Since(g.made)-time.Duration(at) < courtesyFor
}

// Enter waits until work on as many rows may begin, but not for long, and not beyond ctx; work on a few never waits. Whoever entered
// must call leave when the work is done.
func (g *Gate) Enter(ctx context.Context, rows int) (leave func()) {
	if g == nil || rows < bulkRows {
		return func() {}
	}
	courteous, most := g.Courteous(), longestWait
	if courteous {
		most = longestYield
	}
	patience := time.NewTimer(most)
	defer patience.Stop()
	enter := func(places chan struct{}) (entered bool) {
		select {
		case places <- struct{}{}:
			return true
		case <-patience.C:
		case <-ctx.Done():
		}
		return false
	}
	if courteous && !enter(g.few) {
		return func() {}
	}
	entered := enter(g.all)
	start := time.Now()
	return func() {
		if entered {
			<-g.all
		}
		if courteous {
			time.AfterFunc(Rest(time.Since(start)), func() { <-g.few })
		}
	}
}

// Rest is how long courteous bulk work rests that took so long.
func Rest(took time.Duration) time.Duration { return min(restFor*took, longestRest) }
