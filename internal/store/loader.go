package store

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	loaderGroup   = 500              // keys in one statement at most
	loaderWait    = time.Millisecond // how long a group waits for company, once there was some
	loaderTimeout = 10 * time.Second
)

// Loader answers many single reads with few statements: reads that come while a statement is under way share the next one. A lone
// read goes at once. Nothing is remembered: each answer is read after it was asked for. It is safe for concurrent use.
type Loader[K comparable, V any] struct {
	load func(ctx context.Context, keys []K) (map[K]V, error)

	mu      sync.Mutex
	next    *group[K, V]
	running bool
}

// group is the reads of one statement.
type group[K comparable, V any] struct {
	keys  []K
	known map[K]bool
	reads int
	full  chan struct{}
	done  chan struct{}
	found map[K]V
	err   error
}

// NewLoader makes a Loader. What load does not find it leaves out of its map.
func NewLoader[K comparable, V any](load func(ctx context.Context, keys []K) (map[K]V, error)) *Loader[K, V] {
	return &Loader[K, V]{load: load}
}

// Get reads one value and reports whether it exists. The context ends the waiting, not the statement that others share.
func (l *Loader[K, V]) Get(ctx context.Context, key K) (value V, found bool, err error) {
	g := l.join(key)
	select {
	case <-g.done:
	case <-ctx.Done():
		return value, false, fmt.Errorf("wait for a shared read: %w", context.Cause(ctx))
	}
	if g.err != nil {
		return value, false, g.err
	}
	value, found = g.found[key]
	return value, found, nil
}

// join adds a read to the group that gathers, and sees to it that somebody works.
func (l *Loader[K, V]) join(key K) *group[K, V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &group[K, V]{known: map[K]bool{}, full: make(chan struct{}), done: make(chan struct{})}
	}
	g := l.next
	g.reads++
	if !g.known[key] {
		g.known[key] = true
		g.keys = append(g.keys, key)
		if len(g.keys) == loaderGroup {
			close(g.full)
			l.next = nil
			go l.answer(g)
			return g
		}
	}
	if !l.running {
		l.running = true
		go l.work()
	}
	return g
}

// work answers one group after the other until none gathers.
func (l *Loader[K, V]) work() {
	company := false
	for {
		l.mu.Lock()
		g := l.next
		if g == nil {
			l.running = false
			l.mu.Unlock()
			return
		}
		if company {
			l.mu.Unlock()
			wait := time.NewTimer(loaderWait)
			select {
			case <-wait.C:
			case <-g.full:
			}
			wait.Stop()
			l.mu.Lock()
		}
		if l.next != g { // It was full and went by itself.
			l.mu.Unlock()
			continue
		}
		l.next = nil
		l.mu.Unlock()
		l.answer(g)
		company = g.reads > 1
	}
}

func (l *Loader[K, V]) answer(g *group[K, V]) {
	ctx, cancel := context.WithTimeout(context.Background(), loaderTimeout)
	defer cancel()
	defer close(g.done)
	g.found, g.err = l.load(ctx, g.keys)
}
