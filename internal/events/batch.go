package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// MaxBatch is the most events that one PublishBatch takes.
const MaxBatch = 1000

// Result answers one event of a batch: Published, unless Err says what is wrong with it. Err is as Publish's.
type Result struct {
	Published
	Err error
}

// PublishBatch stores many events with one statement and answers each for itself, in their order: refused ones do not
// hold back the good, which are stored together. Events that share an id or key within the batch are answered as if they
// were published one after the other. The error of the whole is for a batch that is empty or too large, and for a
// database that did not answer; then nothing is known to be stored.
func PublishBatch(ctx context.Context, db store.DB, project string, batch []New) ([]Result, error) {
	return publishBatch(ctx, db, project, batch, nil)
}

// publishBatch is PublishBatch; inserted is as in publishAll.
func publishBatch(ctx context.Context, db store.DB, project string, batch []New, inserted func(error)) ([]Result, error) {
	if len(batch) == 0 || len(batch) > MaxBatch {
		return nil, store.Invalid("events", fmt.Sprintf("Give 1 to %d events; these are %d.", MaxBatch, len(batch)))
	}

	results := make([]Result, len(batch))
	posts := make([]post, 0, len(batch))
	now := time.Now()
	for i, n := range batch {
		if err := n.check(); err != nil {
			results[i].Err = err
			continue
		}
		posts = append(posts, post{row: n.row(project), expired: n.expired(now), result: &results[i]})
	}
	if err := publishAll(ctx, db, posts, inserted); err != nil {
		return nil, err
	}
	return results, nil
}

// post is a checked event on its way, with the place for its answer. Posts of one statement may belong to several
// projects and several callers.
type post struct {
	row row
	// apiKey is the id of the key that it came by; it is stored only while that is not revoked. Empty is none.
	apiKey  string
	expired bool
	result  *Result
}

// named reports whether the post has a name of the publisher's choice, which an earlier event may have too.
func (p post) named() bool { return p.row.ownID || p.row.key != nil }

// publishAll stores what can be stored and answers every post. The database tells the relays of what it stores; or inserted does, where it is
// not nil: it is called as soon as that is committed, and with an error where it may be.
func publishAll(ctx context.Context, db store.DB, posts []post, inserted func(error)) error {
	first, later := firstOfEach(posts)
	stored, err := insertRows(ctx, db, first, inserted != nil)
	if inserted != nil {
		inserted(err)
	}
	if err != nil {
		return err
	}
	rest := later
	for _, p := range first {
		if stored[name{p.row.project, p.row.id}] {
			p.result.Published = Published{ID: p.row.id}
			continue
		}
		rest = append(rest, p)
	}
	if len(rest) == 0 {
		return nil
	}

	earlier, err := findEarlier(ctx, db, rest)
	if err != nil {
		return err
	}
	for _, p := range rest {
		p.result.Published, p.result.Err = earlier.answer(p.row, p.expired)
	}
	// What clashed with a post that was itself refused has nothing before it and is still to be stored. That is too rare
	// for a statement of its own kind.
	for _, p := range later {
		if !errors.Is(p.result.Err, store.ErrNotFound) {
			continue
		}
		p.result.Published, p.result.Err = publishPost(ctx, db, p)
	}
	return nil
}

// firstOfEach parts the posts that no earlier one shares an id or key with from those that must wait for its answer.
// Expired posts are for answering only, so they wait too.
func firstOfEach(posts []post) (first, later []post) {
	ids, keys := map[name]bool{}, map[name]bool{}
	for _, p := range posts {
		id, key, hasKey := name{p.row.project, p.row.id}, name{}, p.row.key != nil
		if hasKey {
			key = name{p.row.project, *p.row.key}
		}
		if p.expired || ids[id] || hasKey && keys[key] {
			later = append(later, p)
			continue
		}
		ids[id] = true
		if hasKey {
			keys[key] = true
		}
		first = append(first, p)
	}
	return first, later
}

// insertRows stores the rows of posts with one statement and returns the names of those that were stored. Sequence numbers
// follow the order of posts; the inserts follow the order of keys and ids, so that of two statements which share some
// of them one waits for the other, and neither for both. Untold, the trigger on events notifies nobody (migration 020).
func insertRows(ctx context.Context, db store.DB, posts []post, untold bool) (map[name]bool, error) {
	stored := make(map[name]bool, len(posts))
	if len(posts) == 0 {
		return stored, nil
	}
	onConflict := ""
	if slices.ContainsFunc(posts, post.named) { // Otherwise none can be there, and looking costs as much as storing.
		onConflict = "on conflict do nothing"
	}
	c := columnsOf(posts)
	result, err := db.Query(ctx, `
		insert into events (seq, project_id, id, idempotency_key, type, subscriber, data, occurred_at, expires_at, metadata)
		overriding system value
		select w.seq, p.id, w.id, w.key, w.type, w.subscriber, w.data, w.occurred_at, w.expires_at, w.metadata::jsonb
		from (
			select u.*, nextval('events_seq_seq') as seq
			from (select set_config('entrega.untold', $10::boolean::text, true)) quiet cross join
				unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::timestamptz[],
				$8::timestamptz[], $9::text[], $11::text[]) with ordinality
				as u (project, id, key, type, subscriber, data, occurred_at, expires_at, metadata, api_key, place)
			order by u.place
		) w
		join projects p on p.id = w.project
		where w.api_key = '' or exists (select from api_keys k where k.project_id = p.id and k.id = w.api_key and k.revoked_at is null)
		order by p.id, coalesce(w.key, w.id), w.place
		`+onConflict+` returning project_id, id`,
		c.project, c.id, c.key, c.typ, c.subscriber, c.data, c.occurredAt, c.expiresAt, c.metadata, untold, c.apiKey)
	if err != nil {
		return nil, fmt.Errorf("store %d events: %w", len(posts), err)
	}
	var n name
	_, err = pgx.ForEachRow(result, []any{&n.project, &n.text}, func() error {
		stored[n] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("store %d events: %w", len(posts), err)
	}
	return stored, nil
}

// columns are the rows of posts turned on their side, as unnest takes them.
type columns struct {
	project, id, typ, metadata, apiKey []string
	key, subscriber                    []*string
	data                               [][]byte
	occurredAt, expiresAt              []*time.Time
}

func columnsOf(posts []post) columns {
	var c columns
	for _, p := range posts {
		r := p.row
		c.project = append(c.project, r.project)
		c.id = append(c.id, r.id)
		c.key = append(c.key, r.key)
		c.typ = append(c.typ, r.typ)
		c.subscriber = append(c.subscriber, r.subscriber)
		c.data = append(c.data, r.data)
		c.occurredAt = append(c.occurredAt, r.occurredAt)
		c.expiresAt = append(c.expiresAt, r.expiresAt)
		c.metadata = append(c.metadata, metadataJSON(r.metadata))
		c.apiKey = append(c.apiKey, p.apiKey)
	}
	return c
}

// metadataJSON cannot fail: strings are always JSON.
func metadataJSON(metadata map[string]string) string {
	raw, _ := json.Marshal(metadata)
	return string(raw)
}
