package alerts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"entrega/internal/store"
)

const (
	// badgeFresh is how long a count is kept.
	badgeFresh = 2 * time.Second
	// badgeViews bounds how many views are remembered.
	badgeViews = 10_000
)

// Badge counts open alerts for every page of the panel, and therefore keeps each count for 2 s. It is safe for concurrent use.
type Badge struct {
	db  store.DB
	now func() time.Time

	mu   sync.Mutex
	kept map[View]badgeCount
}

type badgeCount struct {
	open int
	at   time.Time
}

// NewBadge makes a Badge. now is the clock; nil means time.Now.
func NewBadge(db store.DB, now func() time.Time) *Badge {
	if now == nil {
		now = time.Now
	}
	return &Badge{db: db, now: now, kept: map[View]badgeCount{}}
}

// Open is how many open alerts a view has, at most 10,001.
func (b *Badge) Open(ctx context.Context, v View) (int, error) {
	if open, ok := b.get(v); ok {
		return open, nil
	}
	var open int
	err := b.db.QueryRow(ctx, `select count(*) from (select from alerts where project_id = any($1) and rank = $2 limit $3) as t`,
		v.projects(), StateOpen.rank(), countMost+1).Scan(&open)
	if err != nil {
		return 0, fmt.Errorf("count open alerts: %w", err)
	}
	b.put(v, open)
	return open, nil
}

// Forget makes the next counts fresh, as after a person's action.
func (b *Badge) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.kept)
}

func (b *Badge) get(v View) (int, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.kept[v]
	return c.open, ok && b.now().Sub(c.at) < badgeFresh
}

func (b *Badge) put(v View, open int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.kept) >= badgeViews {
		clear(b.kept)
	}
	b.kept[v] = badgeCount{open: open, at: b.now()}
}
