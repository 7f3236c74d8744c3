package events

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"entrega/internal/store"
)

func TestPublisher_EachCallerGetsTheirOwnAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "taken")
	p := NewPublisher(PublisherOptions{Pool: b.pool})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			got, err := p.Publish(b.ctx, b.project, "", New{ID: fmt.Sprintf("own-%d", i), Type: "a.b", Data: []byte(`{}`)})
			if err != nil || got.Duplicate || got.ID != fmt.Sprintf("own-%d", i) {
				t.Errorf("own-%d: %+v, %v", i, got, err)
			}
		})
		all.Go(func() {
			if _, err := p.Publish(b.ctx, b.project, "", New{ID: "taken", Type: "other.type", Data: []byte(`{}`)}); !isConflict(err, CodeMismatch) {
				t.Errorf("a taken id with other content: %v", err)
			}
		})
		all.Go(func() {
			if _, err := p.Publish(b.ctx, "project_unknown", "", New{Type: "a.b", Data: []byte(`{}`)}); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("an unknown project: %v", err)
			}
		})
	}
	all.Wait()
	if n := b.count(t); n != 41 {
		t.Errorf("%d events are stored, want 41", n)
	}
}

func TestPublisher_OneKeyAtOnceIsOneEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := NewPublisher(PublisherOptions{Pool: b.pool})
	var mu sync.Mutex
	ids, fresh := map[string]bool{}, 0
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			got, err := p.Publish(b.ctx, b.project, "", New{IdempotencyKey: "once", Type: "a.b", Data: []byte(`{"n":1}`)})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[got.ID] = true
			if !got.Duplicate {
				fresh++
			}
		})
	}
	all.Wait()
	if len(ids) != 1 || fresh != 1 || b.count(t) != 1 {
		t.Errorf("ids %v, %d of them new, %d stored", ids, fresh, b.count(t))
	}
}

func isConflict(err error, code string) bool {
	var conflict *store.ConflictError
	return errors.As(err, &conflict) && conflict.Code == code
}

// count is how many events there are.
func (b *bundle) count(t *testing.T) (n int) {
	t.Helper()
	if err := b.pool.QueryRow(b.ctx, `select count(*) from events`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPublisher_StoresNothingForAKeyThatIsRevoked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "before")
	other := b.newProject(t)
	b.exec(t, `insert into api_keys (id, project_id, name, prefix, secret_hash, scopes, created_by, revoked_at)
		values ('good', $1, 'k', 'p', 'a', '{publish}', 't', null), ('bad', $1, 'k', 'p', 'b', '{publish}', 't', now()), ('foreign', $2, 'k', 'p', 'c', '{publish}', 't', null)`,
		b.project, other)
	p := NewPublisher(PublisherOptions{Pool: b.pool})
	var all sync.WaitGroup
	for i := range 10 { // They share statements.
		for _, key := range []string{"good", "bad", "foreign", "unknown"} {
			all.Go(func() {
				_, err := p.Publish(b.ctx, b.project, key, newOrder(fmt.Sprintf("%s-%d", key, i)))
				if good := key == "good"; good != (err == nil) || !good && !errors.Is(err, store.ErrNotFound) {
					t.Errorf("with the key %s: %v", key, err)
				}
			})
		}
	}
	all.Wait()
	if n := b.count(t); n != 11 {
		t.Errorf("%d events are stored, want 11", n)
	}
}
