package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// roomyPercent has the garbage collected seldom while the heap is small: it is what a node under load spends most on that serves
	// nobody.
	roomyPercent = 400
	// roomyBytes is how much memory a node may take before it collects more often.
	roomyBytes = 112 << 20
	// paceEvery is how often the limit follows what is alive.
	paceEvery = time.Second
)

// paceCollector trades memory for time while there is little of it in use, until ctx ends. A person's GOGC or GOMEMLIMIT wins.
func paceCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(roomyPercent)
	tick := time.NewTicker(paceEvery)
	defer tick.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for {
		metrics.Read(live)
		debug.SetMemoryLimit(memoryLimit(live[0].Value.Uint64()))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// memoryLimit leaves a large heap half its size to grow between two collections, so that these never become all that is done.
func memoryLimit(live uint64) int64 {
	return max(roomyBytes, int64(live+live/2)+32<<20)
}
