package webhooks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"entrega/internal/events"
	"entrega/internal/store"
)

// keptPayload is the largest payload that waits in memory for its place in the lane; larger ones are read when their turn comes.
const keptPayload = 32 << 10

// contentKey names an event.
type contentKey struct{ project, id string }

// content is what a delivery needs of an event. An event never changes.
type content struct {
	typ       string
	data      []byte // nil when it is larger than keptPayload
	at        time.Time
	expiresAt time.Time
}

const (
	// keepFor is how long what a fan-out read of an event is kept for the deliveries that start with it; keepMost is of how many.
	keepFor  = time.Second
	keepMost = 256
)

// contents are read in groups. Those of events that came alone are read by their fan-out already. It is safe for concurrent use.
type contents struct {
	loader *store.Loader[contentKey, content]

	mu   sync.Mutex
	kept map[contentKey]content
}

func newContents(db store.DB) *contents {
	return &contents{kept: map[contentKey]content{}, loader: store.NewLoader(func(ctx context.Context, keys []contentKey) (map[contentKey]content, error) {
		return readContents(ctx, db, keys)
	})}
}

// get returns what a delivery needs of an event and reports whether there is such an event. At the first attempt it may be what was kept.
func (c *contents) get(ctx context.Context, key contentKey, first bool) (v content, found bool, err error) {
	if v, found = c.recall(key); first && found {
		return v, true, nil
	}
	return c.loader.Get(ctx, key)
}

func (c *contents) recall(key contentKey) (v content, found bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, found = c.kept[key]
	return v, found
}

// keep remembers an event for a moment, if its payload is there.
func (c *contents) keep(key contentKey, v content) {
	if v.data == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) < keepMost {
		c.kept[key] = v
		time.AfterFunc(keepFor, func() { c.forget(key) })
	}
}

func (c *contents) forget(key contentKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.kept, key)
}

// readContentsByID asks for each event by its id. It is written so that only the index of ids fits: the database keeps the plan that it
// made when the table was new and empty, and any index looked as good then.
const readContentsByID = `
	select k.project, k.id, v.type, case when octet_length(v.data) <= $3 then v.data end, coalesce(v.occurred_at, v.created_at), v.expires_at
	from unnest($1::text[], $2::text[]) as k (project, id)
	cross join lateral (
		select * from events where project_id = k.project and id ~>=~ k.id and id ~<=~ k.id order by id using ~<~ limit 1
	) v`

func readContents(ctx context.Context, db store.DB, keys []contentKey) (map[contentKey]content, error) {
	projects, ids := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		projects[i], ids[i] = k.project, k.id
	}
	rows, err := db.Query(ctx, readContentsByID, projects, ids, keptPayload)
	if err != nil {
		return nil, fmt.Errorf("read events to deliver: %w", err)
	}
	found := make(map[contentKey]content, len(keys))
	for rows.Next() {
		var k contentKey
		var c content
		var expires *time.Time
		if err := rows.Scan(&k.project, &k.id, &c.typ, &c.data, &c.at, &expires); err != nil {
			rows.Close()
			return nil, fmt.Errorf("read events to deliver: %w", err)
		}
		c.expiresAt = orZero(expires)
		found[k] = c
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read events to deliver: %w", err)
	}
	return found, nil
}

// whole adds the payload where it was too large to wait.
func (c content) whole(ctx context.Context, db store.DB, k contentKey) (content, error) {
	if c.data != nil {
		return c, nil
	}
	data, err := events.PayloadByID(ctx, db, k.project, k.id)
	c.data = data
	return c, err
}
