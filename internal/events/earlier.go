package events

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// stored is what an event in the table is compared by.
type stored struct {
	Project    string
	ID         string
	Key        *string
	Type       string
	Subscriber *string
	DataSHA256 []byte
	OccurredAt *time.Time
	ExpiresAt  *time.Time
	Metadata   map[string]string
}

// holds reports that s has the content of r, whatever their ids and keys.
func (s stored) holds(r row) bool {
	sum := sha256.Sum256(r.data)
	return s.Type == r.typ && equal(s.Subscriber, r.subscriber) && string(s.DataSHA256) == string(sum[:]) &&
		equalInstant(s.OccurredAt, r.occurredAt) && equalInstant(s.ExpiresAt, r.expiresAt) && maps.Equal(s.Metadata, r.metadata)
}

// name is an id or a key within its project.
type name struct{ project, text string }

// earlier holds events that were in the table before, by what a publisher can name them with.
type earlier struct {
	byID, byKey map[name]stored
}

// findEarlier reads the events that hold the ids and keys of posts. Payloads stay in the database: their hashes tell enough.
func findEarlier(ctx context.Context, db store.DB, posts []post) (earlier, error) {
	var idProjects, ids, keyProjects, keys []string
	for _, p := range posts {
		r := p.row
		if r.ownID {
			idProjects, ids = append(idProjects, r.project), append(ids, r.id)
		}
		if r.key != nil {
			keyProjects, keys = append(keyProjects, r.project), append(keys, *r.key)
		}
	}
	found := earlier{byID: map[name]stored{}, byKey: map[name]stored{}}
	if len(ids) == 0 && len(keys) == 0 {
		return found, nil
	}

	const columns = `e.project_id as project, e.id, e.idempotency_key as key, e.type, e.subscriber,
		sha256(e.data) as data_sha256, e.occurred_at, e.expires_at, e.metadata`
	result, err := db.Query(ctx, `
		select `+columns+` from unnest($1::text[], $2::text[]) as w (project, id)
		join events e on e.project_id = w.project and e.id = w.id
		union all
		select `+columns+` from unnest($3::text[], $4::text[]) as w (project, key)
		join events e on e.project_id = w.project and e.idempotency_key = w.key`,
		idProjects, ids, keyProjects, keys)
	if err != nil {
		return earlier{}, fmt.Errorf("look for earlier events: %w", err)
	}
	all, err := pgx.CollectRows(result, pgx.RowToStructByName[stored])
	if err != nil {
		return earlier{}, fmt.Errorf("look for earlier events: %w", err)
	}
	for _, s := range all {
		found.byID[name{s.Project, s.ID}] = s
		if s.Key != nil {
			found.byKey[name{s.Project, *s.Key}] = s
		}
	}
	return found, nil
}

// answer says what becomes of r, which was not stored: the first event again, or why not. The id decides before the key;
// a key that belongs to another id is a mismatch, since the id is part of what was asked. An expired event with nothing
// before it could have been stored but for its expiry.
func (e earlier) answer(r row, expired bool) (Published, error) {
	var byID, byKey stored
	var hasID, hasKey bool
	if r.ownID {
		byID, hasID = e.byID[name{r.project, r.id}]
	}
	if r.key != nil {
		byKey, hasKey = e.byKey[name{r.project, *r.key}]
	}
	switch {
	case hasID && (!byID.holds(r) || hasKey && byKey.ID != byID.ID):
		return Published{}, &store.ConflictError{Code: CodeMismatch,
			Sentence: r.id + " was published before with other content. Use a new id for a new event."}
	case hasID:
		return Published{ID: byID.ID, Duplicate: true}, nil
	case hasKey && (r.ownID || !byKey.holds(r)):
		return Published{}, &store.ConflictError{Code: CodeMismatch,
			Sentence: "This idempotency key was used before with other content. Use a new key for a new event."}
	case hasKey:
		return Published{ID: byKey.ID, Duplicate: true}, nil
	case expired:
		return Published{}, store.Invalid("expiresAt", "The time must lie in the future.")
	default:
		return Published{}, store.ErrNotFound
	}
}

func equal(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func equalInstant(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}
