package tenant

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

// ErrUnknownKey means that a request's API key is missing, wrong or revoked.
var ErrUnknownKey = errors.New("the API key is missing, wrong or revoked")

// An API key is "entrega_", eight hex digits that name it, "_", and 32 random bytes in base62.
const (
	keyMark       = "entrega_"
	keySecretSize = 32
	keySecretLen  = 43 // of 32 bytes in base62
	keyLen        = len(keyMark) + 8 + 1 + keySecretLen
)

// APIKey is a project's credential for the API. The key itself is shown once, when it is made; its SHA-256 is stored. That
// needs no slow hash: 32 random bytes cannot be guessed.
type APIKey struct {
	ID        string
	ProjectID string
	Name      string
	// Prefix is how the panel shows the key: its start, without the secret.
	Prefix string
	Scopes []Scope
	// CreatedBy is the name of whoever made it.
	CreatedBy string
	CreatedAt time.Time
	// LastUsedAt is some 75 s behind at most.
	LastUsedAt *time.Time
	RevokedAt  *time.Time
}

const apiKeyColumns = `id, project_id, name, prefix, scopes, created_by, created_at, last_used_at, revoked_at`

// NewAPIKey is what CreateAPIKey needs.
type NewAPIKey struct {
	Name   string
	Scopes []Scope
}

// CreateAPIKey makes a key and returns it together with the secret, which cannot be read again.
func CreateAPIKey(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID string, n NewAPIKey) (key APIKey, secret string, err error) {
	if err := actor.RequireIn(projectID, PermManageKeys); err != nil {
		return APIKey{}, "", err
	}
	var invalid store.InvalidError
	name, problem := checkName(n.Name)
	if problem != "" {
		invalid.Add("name", problem)
	}
	scopes, problem := checkScopes(n.Scopes)
	if problem != "" {
		invalid.Add("scopes", problem)
	}
	if err := invalid.OrNil(); err != nil {
		return APIKey{}, "", err
	}

	prefix, secret := newKey()
	err = store.InTx(ctx, pool, func(tx pgx.Tx) error {
		// An admin or a command may name a project that does not exist.
		if _, err := ProjectByID(ctx, tx, projectID); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			insert into api_keys (id, project_id, name, prefix, secret_hash, scopes, created_by)
			values (@id, @project_id, @name, @prefix, @hash, @scopes, @created_by)
			returning `+apiKeyColumns,
			pgx.StrictNamedArgs{
				"id": store.NewID("key"), "project_id": projectID, "name": name, "prefix": prefix, "hash": keyHash(secret),
				"scopes": scopes, "created_by": actor.Name,
			})
		if key, err = collectKey(rows, err); err != nil {
			return fmt.Errorf("create API key: %w", err)
		}
		return Audit(ctx, tx, actor.In(projectID), "api_key.create", "api_key", key.ID,
			map[string]any{"name": name, "prefix": prefix, "scopes": scopes})
	})
	if err != nil {
		return APIKey{}, "", err
	}
	return key, secret, nil
}

// ListAPIKeys lists the keys of a project, those that work first, then the newest.
func ListAPIKeys(ctx context.Context, db store.DB, projectID string) ([]APIKey, error) {
	rows, err := db.Query(ctx, `
		select `+apiKeyColumns+` from api_keys
		where project_id = @project_id
		order by revoked_at is not null, created_at desc, id`,
		pgx.StrictNamedArgs{"project_id": projectID})
	if err != nil {
		return nil, fmt.Errorf("list API keys: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByName[APIKey])
	if err != nil {
		return nil, fmt.Errorf("list API keys: %w", err)
	}
	return keys, nil
}

// RevokeAPIKey ends a key for good. To revoke it again changes nothing.
func RevokeAPIKey(ctx context.Context, pool *pgxpool.Pool, actor Actor, projectID, keyID string) (APIKey, error) {
	if err := actor.RequireIn(projectID, PermManageKeys); err != nil {
		return APIKey{}, err
	}
	args := pgx.StrictNamedArgs{"project_id": projectID, "id": keyID}
	var key APIKey
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			select `+apiKeyColumns+` from api_keys where project_id = @project_id and id = @id for update`, args)
		if key, err = collectKey(rows, err); err != nil {
			return fmt.Errorf("read API key %s: %w", keyID, err)
		}
		if key.RevokedAt != nil {
			return nil
		}
		rows, err = tx.Query(ctx, `
			update api_keys set revoked_at = now() where project_id = @project_id and id = @id returning `+apiKeyColumns, args)
		if key, err = collectKey(rows, err); err != nil {
			return fmt.Errorf("revoke API key %s: %w", keyID, err)
		}
		return Audit(ctx, tx, actor.In(projectID), "api_key.revoke", "api_key", keyID,
			map[string]any{"name": key.Name, "prefix": key.Prefix})
	})
	return key, err
}

// AuthenticateKey returns the actor of an API key, or ErrUnknownKey. It looks the key up by its hash, so the time it takes
// says nothing about how much of a guess was right. db is the pool: the note of the key's use, written at most once a
// minute, must not hold a lock until the end of the caller's transaction.
func AuthenticateKey(ctx context.Context, db store.DB, key string) (Actor, error) {
	if len(key) != keyLen || !strings.HasPrefix(key, keyMark) {
		return Actor{}, ErrUnknownKey
	}
	a := Actor{Kind: ActorAPIKey}
	var idle bool
	err := db.QueryRow(ctx, `
		select id, name, project_id, scopes, last_used_at is null or last_used_at < now() - interval '1 minute'
		from api_keys where secret_hash = @hash and revoked_at is null`,
		pgx.StrictNamedArgs{"hash": keyHash(key)},
	).Scan(&a.ID, &a.Name, &a.ProjectID, &a.Scopes, &idle)
	if errors.Is(err, pgx.ErrNoRows) {
		return Actor{}, ErrUnknownKey
	}
	if err != nil {
		return Actor{}, fmt.Errorf("look up API key: %w", err)
	}
	if idle {
		if err := noteKeyUse(ctx, db, a); err != nil {
			return Actor{}, err
		}
	}
	return a, nil
}

// checkScopes sorts scopes and drops repeated ones.
func checkScopes(scopes []Scope) (sorted []Scope, problem string) {
	if len(scopes) == 0 {
		return nil, "Choose at least one scope."
	}
	for _, s := range scopes {
		if !s.Valid() {
			return nil, "A scope is publish, read or manage."
		}
	}
	sorted = slices.Clone(scopes)
	slices.Sort(sorted)
	return slices.Compact(sorted), ""
}

func newKey() (prefix, secret string) {
	prefix = keyMark + hex.EncodeToString(randomBytes(4))
	number := new(big.Int).SetBytes(randomBytes(keySecretSize)).Text(62)
	return prefix, prefix + "_" + strings.Repeat("0", keySecretLen-len(number)) + number
}

func keyHash(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// collectKey reads the one key of a query whose error it is given as well.
func collectKey(rows pgx.Rows, err error) (APIKey, error) {
	if err != nil {
		return APIKey{}, err
	}
	key, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[APIKey])
	return key, store.MapError(err)
}
