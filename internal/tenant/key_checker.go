package tenant

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

// KeyChecker finds the actors of API keys for many calls at once: calls that come together share a statement. Nothing is remembered,
// so a revoked key is refused by the next call. It is safe for concurrent use.
type KeyChecker struct {
	pool *pgxpool.Pool
	keys *store.Loader[string, checkedKey]
}

// checkedKey is a key that exists and was not revoked.
type checkedKey struct {
	actor Actor
	// idle tells that its use is to be noted.
	idle bool
}

// NewKeyChecker makes a KeyChecker.
func NewKeyChecker(pool *pgxpool.Pool) *KeyChecker {
	return &KeyChecker{pool: pool, keys: store.NewLoader(func(ctx context.Context, hashes []string) (map[string]checkedKey, error) {
		return findKeys(ctx, pool, hashes)
	})}
}

// Authenticate returns the actor of a key, as AuthenticateKey does.
func (c *KeyChecker) Authenticate(ctx context.Context, key string) (Actor, error) {
	if len(key) != keyLen || !strings.HasPrefix(key, keyMark) {
		return Actor{}, ErrUnknownKey
	}
	found, ok, err := c.keys.Get(ctx, string(keyHash(key)))
	switch {
	case err != nil:
		return Actor{}, fmt.Errorf("look up API key: %w", err)
	case !ok:
		return Actor{}, ErrUnknownKey
	case found.idle:
		err = noteKeyUse(ctx, c.pool, found.actor)
	}
	return found.actor, err
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

// noteKeyUse keeps last_used_at exact to the minute.
func noteKeyUse(ctx context.Context, db store.DB, a Actor) error {
	_, err := db.Exec(ctx, `
		update api_keys set last_used_at = now()
		where project_id = $1 and id = $2 and (last_used_at is null or last_used_at < now() - interval '1 minute')`, a.ProjectID, a.ID)
	if err != nil {
		return fmt.Errorf("note use of API key: %w", err)
	}
	return nil
}
