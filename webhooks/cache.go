package webhooks

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/seal"
	"entrega/internal/store"
)

// maxTargets bounds the memory; past it, any one gives way, since a wrong choice costs no more than two reads.
const maxTargets = 10_000

// target is what sending to an endpoint needs of its settings, opened and ready. It is never changed once made.
type target struct {
	projectID, id string
	version       int64
	url           string
	requestLine   string
	headers       map[string]string
	secrets       []secret
	maxInFlight   int
	ratePerSecond float64
	timeout       time.Duration // zero leaves the policy's
}

// targets remembers targets between attempts. Whoever sends asks the database for the endpoint's version at that moment and
// hands it to at, so that nothing old is ever used: a secret that was removed does not sign, a former URL gets nothing.
type targets struct {
	loader *store.Loader[laneKey, loadedTarget]

	mu   sync.Mutex
	byID map[string]*target
}

// loadedTarget is what came of reading one; the error of one endpoint is not that of others that were read with it.
type loadedTarget struct {
	*target
	err error
}

func newTargets(db store.DB, box *seal.Box) *targets {
	return &targets{byID: map[string]*target{}, loader: store.NewLoader(func(ctx context.Context, keys []laneKey) (map[laneKey]loadedTarget, error) {
		return readTargets(ctx, db, box, keys)
	})}
}

// some returns the target as it was at some time, good for finding its lane. An endpoint that never was is
// store.ErrNotFound.
func (c *targets) some(ctx context.Context, project, id string) (*target, error) {
	if t := c.get(project, id); t != nil {
		return t, nil
	}
	return c.load(ctx, project, id)
}

// at returns the target of at least the given version.
func (c *targets) at(ctx context.Context, project, id string, version int64) (*target, error) {
	if t := c.get(project, id); t != nil && t.version >= version {
		return t, nil
	}
	return c.load(ctx, project, id)
}

func (c *targets) get(project, id string) *target {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.byID[id]; t != nil && t.projectID == project {
		return t
	}
	return nil
}

func (c *targets) load(ctx context.Context, project, id string) (*target, error) {
	t, found, err := c.loader.Get(ctx, laneKey{project, id})
	switch {
	case err != nil:
		return nil, fmt.Errorf("load an endpoint: %w", err)
	case !found:
		return nil, fmt.Errorf("load an endpoint: %w", store.ErrNotFound)
	case t.err != nil:
		return nil, t.err
	}
	c.put(t.target)
	return t.target, nil
}

func (c *targets) put(t *target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.byID[t.id]; known != nil && known.version > t.version {
		return
	}
	if len(c.byID) >= maxTargets {
		for id := range c.byID {
			delete(c.byID, id)
			break
		}
	}
	c.byID[t.id] = t
}

// readTargets reads endpoints before their secrets, so that these are at least as new as the version says.
func readTargets(ctx context.Context, db store.DB, box *seal.Box, keys []laneKey) (map[laneKey]loadedTarget, error) {
	projects, ids := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		projects[i], ids[i] = k.project, k.id
	}
	found := make(map[laneKey]loadedTarget, len(keys))
	batch := &pgx.Batch{}
	batch.Queue(`
		select e.project_id, e.id, e.version, e.url, e.headers, e.max_in_flight, coalesce(e.rate_per_second, 0), coalesce(e.timeout_seconds, 0)
		from unnest($1::text[], $2::text[]) as k (project, id) join endpoints e on e.project_id = k.project and e.id = k.id`,
		projects, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			t := loadedTarget{target: &target{}}
			var sealed []byte
			var seconds int
			if err := rows.Scan(&t.projectID, &t.id, &t.version, &t.url, &sealed, &t.maxInFlight, &t.ratePerSecond, &seconds); err != nil {
				return err
			}
			t.requestLine = requestLineOf(t.url)
			t.timeout = time.Duration(seconds) * time.Second
			t.headers, t.err = openHeaders(box, t.id, sealed)
			found[laneKey{t.projectID, t.id}] = t
		}
		return rows.Err()
	})
	batch.Queue(`
		select s.project_id, s.endpoint_id, s.id, s.sealed, s.created_at, coalesce(s.expires_at, '0001-01-01Z')
		from unnest($1::text[], $2::text[]) as k (project, id) join endpoint_secrets s on s.project_id = k.project and s.endpoint_id = k.id
		order by s.created_at desc, s.id desc`, projects, ids).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var k laneKey
			var s secret
			var sealed []byte
			if err := rows.Scan(&k.project, &k.id, &s.id, &sealed, &s.createdAt, &s.expiresAt); err != nil {
				return err
			}
			t, ok := found[k]
			if !ok {
				continue
			}
			var err error
			if s.key, err = box.Open(sealed, sealTableSecrets, s.id); err != nil {
				t.err = fmt.Errorf("open a secret of %s: %w", k.id, err)
				found[k] = t
				continue
			}
			t.secrets = append(t.secrets, s)
		}
		return rows.Err()
	})
	if err := db.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("load endpoints: %w", store.MapError(err))
	}
	return found, nil
}
