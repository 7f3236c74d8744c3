package jobs

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// versionRaces bounds how often two nodes that boot at once may take the same ordinal before something else is wrong.
const versionRaces = 20

// PolicyVersion is a policy as it was stored when it first came into effect.
type PolicyVersion struct {
	Policy
	CreatedAt time.Time
}

// StoreVersions stores each policy of the set that was never stored before, as an immutable version, and gives every
// policy its number. Numbers count per kind and profile, from 1; a policy that comes back after a change keeps the number
// it had. Nodes may boot at once. It writes to the set, so it is called before anyone else reads it.
func (s *PolicySet) StoreVersions(ctx context.Context, db store.DB) error {
	for _, p := range s.policies {
		version, err := storeVersion(ctx, db, p)
		if err != nil {
			return fmt.Errorf("store policy %s/%s: %w", p.Kind, p.Profile, err)
		}
		p.Version = version
	}
	return nil
}

// storeVersion looks first, since nearly every boot finds all policies stored. An insert that loses a race for the next
// ordinal does nothing, and the next look tells whether it was the same policy that won.
func storeVersion(ctx context.Context, db store.DB, p *Policy) (int, error) {
	for range versionRaces {
		var version int
		err := db.QueryRow(ctx, `select version from policy_versions where kind = $1 and profile = $2 and hash = $3`,
			p.Kind, p.Profile, p.Hash[:]).Scan(&version)
		if !errors.Is(err, pgx.ErrNoRows) {
			return version, err
		}
		_, err = db.Exec(ctx, `
			insert into policy_versions (kind, profile, version, hash, document)
			select $1, $2, coalesce(max(version), 0) + 1, $3, $4
			from policy_versions where kind = $1 and profile = $2
			on conflict do nothing`, p.Kind, p.Profile, p.Hash[:], string(p.Canonical()))
		if err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("its number was taken %d times in a row", versionRaces)
}

// PolicyByVersion is the stored policy that a ledger row names, or store.ErrNotFound. A document that does not have the
// recorded hash is an error: it was changed.
func PolicyByVersion(ctx context.Context, db store.DB, kind, profile string, version int) (Policy, error) {
	versions, err := queryVersions(ctx, db, `where kind = $1 and profile = $2 and version = $3`, kind, profile, version)
	switch {
	case err != nil:
		return Policy{}, err
	case len(versions) == 0:
		return Policy{}, store.ErrNotFound
	default:
		return versions[0].Policy, nil
	}
}

// ListPolicyVersions is the history of a kind and profile, newest first.
func ListPolicyVersions(ctx context.Context, db store.DB, kind, profile string) ([]PolicyVersion, error) {
	return queryVersions(ctx, db, `where kind = $1 and profile = $2 order by version desc`, kind, profile)
}

func queryVersions(ctx context.Context, db store.DB, where string, args ...any) ([]PolicyVersion, error) {
	rows, err := db.Query(ctx, `select kind, profile, version, hash, document, created_at from policy_versions `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("read policy versions: %w", err)
	}
	versions, err := pgx.CollectRows(rows, scanVersion)
	if err != nil {
		return nil, fmt.Errorf("read policy versions: %w", err)
	}
	return versions, nil
}

func scanVersion(row pgx.CollectableRow) (PolicyVersion, error) {
	var kind, profile, document string
	var version int
	var hash []byte
	var createdAt time.Time
	if err := row.Scan(&kind, &profile, &version, &hash, &document, &createdAt); err != nil {
		return PolicyVersion{}, err
	}
	p, err := ParseCanonical([]byte(document))
	if err != nil {
		return PolicyVersion{}, fmt.Errorf("version %d of %s/%s: %w", version, kind, profile, err)
	}
	if sum := sha256.Sum256([]byte(document)); string(hash) != string(sum[:]) || p.Kind != kind || p.Profile != profile {
		return PolicyVersion{}, fmt.Errorf("version %d of %s/%s is not the document that was stored", version, kind, profile)
	}
	p.Version = version
	return PolicyVersion{Policy: p, CreatedAt: createdAt}, nil
}
