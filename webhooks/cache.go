package webhooks

import (
	"context"
	"fmt"
	"sync"
	"time"

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
	headers       map[string]string
	secrets       []secret
	maxInFlight   int
	ratePerSecond float64
	timeout       time.Duration // zero leaves the policy's
}

// targets remembers targets between attempts. Whoever sends asks the database for the endpoint's version at that moment and
// hands it to at, so that nothing old is ever used: a secret that was removed does not sign, a former URL gets nothing.
type targets struct {
	db  store.DB
	box *seal.Box

	mu   sync.Mutex
	byID map[string]*target
}

func newTargets(db store.DB, box *seal.Box) *targets {
	return &targets{db: db, box: box, byID: map[string]*target{}}
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

// load reads the endpoint before its secrets, so that these are at least as new as the version says.
func (c *targets) load(ctx context.Context, project, id string) (*target, error) {
	t := &target{projectID: project, id: id}
	var sealed []byte
	var seconds int
	err := c.db.QueryRow(ctx, `
		select version, url, headers, max_in_flight, coalesce(rate_per_second, 0), coalesce(timeout_seconds, 0)
		from endpoints where project_id = $1 and id = $2`, project, id).
		Scan(&t.version, &t.url, &sealed, &t.maxInFlight, &t.ratePerSecond, &seconds)
	if err != nil {
		return nil, fmt.Errorf("load an endpoint: %w", store.MapError(err))
	}
	t.timeout = time.Duration(seconds) * time.Second
	if t.headers, err = openHeaders(c.box, id, sealed); err != nil {
		return nil, err
	}
	if t.secrets, err = openSecrets(ctx, c.db, c.box, project, id); err != nil {
		return nil, err
	}
	c.put(t)
	return t, nil
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
