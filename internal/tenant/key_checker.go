package tenant

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

const (
	// recallFor is how long a key is remembered, and recallMost how many are.
	recallFor  = 15 * time.Second
	recallMost = 10_000
)

// KeyChecker finds the actors of API keys for many calls at once: calls that come together share a statement. Authenticate remembers
// nothing, so a revoked key is refused by the next call. It is safe for concurrent use.
type KeyChecker struct {
	pool *pgxpool.Pool
	keys *store.Loader[string, checkedKey]

	mu     sync.Mutex
	recent map[string]recentKey
}

// recentKey is a key that was good lately.
type recentKey struct {
	actor Actor
	until time.Time
}

// checkedKey is a key that exists and was not revoked.
type checkedKey struct {
	actor Actor
	// idle tells that its use is to be noted.
	idle bool
}

// NewKeyChecker makes a KeyChecker.
func NewKeyChecker(pool *pgxpool.Pool) *KeyChecker {
	return &KeyChecker{pool: pool, recent: map[string]recentKey{}, keys: store.NewLoader(func(ctx context.Context, hashes []string) (map[string]checkedKey, error) {
		return findKeys(ctx, pool, hashes)
	})}
}

// Authenticate returns the actor of a key, as AuthenticateKey does.
func (c *KeyChecker) Authenticate(ctx context.Context, key string) (Actor, error) {
	if len(key) != keyLen || !strings.HasPrefix(key, keyMark) {
		return Actor{}, ErrUnknownKey
	}
	hash := string(keyHash(key))
	found, ok, err := c.keys.Get(ctx, hash)
	switch {
	case err != nil:
		return Actor{}, fmt.Errorf("look up API key: %w", err)
	case !ok:
		c.forget(hash)
		return Actor{}, ErrUnknownKey
	case found.idle:
		err = noteKeyUse(ctx, c.pool, found.actor)
	}
	if err == nil {
		c.remember(hash, found.actor)
	}
	return found.actor, err
}

// Recall returns the actor of a key that was good some seconds ago, without asking. It may be revoked since: whoever does something for
// it must have the database see, in the statement that does it, that it is not, and must authenticate the key before any other answer.
func (c *KeyChecker) Recall(key string) (Actor, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	recent, ok := c.recent[string(keyHash(key))]
	if !ok || time.Now().After(recent.until) {
		return Actor{}, false
	}
	return recent.actor, true
}

func (c *KeyChecker) forget(hash string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.recent, hash)
}

func (c *KeyChecker) remember(hash string, actor Actor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.recent) >= recallMost {
		clear(c.recent)
	}
	c.recent[hash] = recentKey{actor, time.Now().Add(recallFor)}
}

func findKeys(ctx context.Context, db store.DB, hashes []string) (map[string]checkedKey, error) {
	wanted := make([][]byte, len(hashes))
	for i, h := range hashes {
		wanted[i] = []byte(h)
	}
	rows, err := db.Query(ctx, `
		select secret_hash, id, name, project_id, scopes, last_used_at is null or last_used_at < now() - interval '1 minute'
		from api_keys where secret_hash = any($1) and revoked_at is null`, wanted)
	if err != nil {
		return nil, fmt.Errorf("look up API keys: %w", err)
	}
	defer rows.Close()
	found := make(map[string]checkedKey, len(hashes))
	for rows.Next() {
		var hash []byte
		k := checkedKey{actor: Actor{Kind: ActorAPIKey}}
		if err := rows.Scan(&hash, &k.actor.ID, &k.actor.Name, &k.actor.ProjectID, &k.actor.Scopes, &k.idle); err != nil {
			return nil, fmt.Errorf("look up API keys: %w", err)
		}
		found[string(hash)] = k
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look up API keys: %w", err)
	}
	return found, nil
}

// noteKeyUse keeps last_used_at exact to a minute and recallFor.
func noteKeyUse(ctx context.Context, db store.DB, a Actor) error {
	_, err := db.Exec(ctx, `
		update api_keys set last_used_at = now()
		where project_id = $1 and id = $2 and (last_used_at is null or last_used_at < now() - interval '1 minute')`, a.ProjectID, a.ID)
	if err != nil {
		return fmt.Errorf("note use of API key: %w", err)
	}
	return nil
}
