package events

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

func TestPublish_StoresWhatWasGiven(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 123_456_789, time.FixedZone("", 3600))
	n := New{ID: "order-1", IdempotencyKey: "k", Type: "order.created", Subscriber: "acme", Data: []byte(`{"a":1}`),
		OccurredAt: at, ExpiresAt: time.Now().Add(time.Hour), Metadata: map[string]string{"user": "7"}}
	published, err := Publish(b.ctx, b.pool, b.project, n)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Published{ID: "order-1"}); published != want {
		t.Errorf("published %+v, want %+v", published, want)
	}

	got, err := EventByID(b.ctx, b.pool, b.project, "order-1")
	if err != nil {
		t.Fatal(err)
	}
	want := Event{ProjectID: b.project, ID: "order-1", Seq: got.Seq, Type: "order.created", Subscriber: "acme", DataBytes: 7,
		Data: n.Data, OccurredAt: at.Truncate(time.Microsecond), ExpiresAt: n.ExpiresAt.Truncate(time.Microsecond),
		Metadata: n.Metadata, CreatedAt: got.CreatedAt}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored event (-want +got):\n%s", diff)
	}
	if !got.Timestamp().Equal(want.OccurredAt) {
		t.Errorf("timestamp %v, want when it occurred", got.Timestamp())
	}
}

func TestPublish_MakesAnIDWhenNoneIsGiven(t *testing.T) {
	t.Parallel()
	b := setup(t)
	published, err := Publish(b.ctx, b.pool, b.project, newOrder(""))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(published.ID, "event_") || published.Duplicate {
		t.Fatalf("published %+v, want a new TypeID", published)
	}
	event, err := EventByID(b.ctx, b.pool, b.project, published.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !event.Timestamp().Equal(event.CreatedAt) {
		t.Errorf("timestamp %v, want when it was published", event.Timestamp())
	}
}

// oddPayloads are JSON texts that a decoder would give back differently.
var oddPayloads = map[string]string{
	"big numbers":      `{"n":123456789012345678901234567890,"f":0.1000000000000000055511151231257827,"e":1E400,"z":-0.0}`,
	"odd white space":  " {\t\"a\" :\n [1 ,2 ]\r\n}  ",
	"unicode":          `{"a":"é日本🚚 ","escaped":"\u00e9\ud83d\ude9a\/"}`,
	"key order":        `{"z":1,"a":2,"m":3}`,
	"duplicate keys":   `{"a":1,"a":2,"a":1}`,
	"lone surrogate":   `{"a":"\ud800"}`,
	"escaped NUL":      `{"a":"\u0000"}`,
	"scalar":           `"text"`,
	"markup":           `{"a":"</script><script>alert(1)</script>"}`,
	"no white space":   `{"a":[{},[],null,true]}`,
	"as large as fits": string(sized(MaxDataBytes)),
}

func TestPublish_KeepsDataByteForByte(t *testing.T) {
	t.Parallel()
	b := setup(t)
	doors := map[string]func(data string) (string, error){
		"single": func(data string) (string, error) {
			p, err := Publish(b.ctx, b.pool, b.project, New{Type: "a", Data: []byte(data)})
			return p.ID, err
		},
		"batch": func(data string) (string, error) {
			r, err := PublishBatch(b.ctx, b.pool, b.project, []New{{Type: "a", Data: []byte(data)}})
			return r[0].ID, errors.Join(err, r[0].Err)
		},
		"SQL": func(data string) (id string, err error) {
			err = b.pool.QueryRow(b.ctx, `select entrega.publish($1, 'a', $2::text::json)`, b.project, data).Scan(&id)
			return id, err
		},
	}
	for door, publish := range doors {
		for name, data := range oddPayloads {
			t.Run(door+"/"+name, func(t *testing.T) {
				id, err := publish(data)
				if err != nil {
					t.Fatal(err)
				}
				got, err := PayloadByID(b.ctx, b.pool, b.project, id)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, []byte(data)) {
					t.Errorf("stored %.200q, want %.200q", got, data)
				}
			})
		}
	}
}

func TestPublish_SameContentIsADuplicate(t *testing.T) {
	t.Parallel()
	full := New{Type: "order.created", Subscriber: "acme", Data: []byte(`{"a": 1}`), OccurredAt: time.Now(),
		ExpiresAt: time.Now().Add(time.Hour), Metadata: map[string]string{"b": "2", "a": "1"}}
	tests := map[string]struct{ first, second func(*New) }{
		"by id":                  {withID("x"), withID("x")},
		"by key":                 {withKey("k"), withKey("k")},
		"by both":                {withBoth("x", "k"), withBoth("x", "k")},
		"by id, key is new":      {withID("x"), withBoth("x", "k")},
		"by id, another key":     {withBoth("x", "k1"), withBoth("x", "k2")},
		"by key of a chosen id":  {withBoth("x", "k"), withKey("k")},
		"by id, key is left out": {withBoth("x", "k"), withID("x")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			first, err := Publish(b.ctx, b.pool, b.project, changed(full, test.first))
			if err != nil {
				t.Fatal(err)
			}
			second, err := Publish(b.ctx, b.pool, b.project, changed(full, test.second))
			if err != nil {
				t.Fatal(err)
			}
			if want := (Published{ID: first.ID, Duplicate: true}); second != want {
				t.Errorf("second publish: %+v, want %+v", second, want)
			}
		})
	}
}

func TestPublish_OtherContentIsAMismatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	full := New{Type: "order.created", Subscriber: "acme", Data: []byte(`{"a":1}`), OccurredAt: now,
		ExpiresAt: now.Add(time.Hour), Metadata: map[string]string{"a": "1"}}
	if _, err := Publish(b.ctx, b.pool, b.project, changed(full, withBoth("x", "k"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Publish(b.ctx, b.pool, b.project, changed(full, withID("y"))); err != nil {
		t.Fatal(err)
	}
	same := func(*New) {}
	tests := map[string]struct{ name, change func(*New) }{
		"type":                         {withID("x"), func(n *New) { n.Type = "order.paid" }},
		"white space of data":          {withID("x"), func(n *New) { n.Data = []byte(`{"a": 1}`) }},
		"subscriber":                   {withID("x"), func(n *New) { n.Subscriber = "other" }},
		"no subscriber":                {withID("x"), func(n *New) { n.Subscriber = "" }},
		"occurredAt":                   {withID("x"), func(n *New) { n.OccurredAt = now.Add(time.Millisecond) }},
		"no occurredAt":                {withID("x"), func(n *New) { n.OccurredAt = time.Time{} }},
		"expiresAt":                    {withID("x"), func(n *New) { n.ExpiresAt = now.Add(2 * time.Hour) }},
		"metadata":                     {withID("x"), func(n *New) { n.Metadata = map[string]string{"a": "2"} }},
		"no metadata":                  {withID("x"), func(n *New) { n.Metadata = nil }},
		"data under the key":           {withKey("k"), func(n *New) { n.Data = []byte(`2`) }},
		"the key with a new id":        {withBoth("z", "k"), same},
		"the key with another's id":    {withBoth("y", "k"), same},
		"same id, data, key are other": {withBoth("x", "k"), func(n *New) { n.Data = []byte(`2`) }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Publish(b.ctx, b.pool, b.project, changed(full, test.name, test.change))
			var conflict *store.ConflictError
			if !errors.As(err, &conflict) || conflict.Code != CodeMismatch {
				t.Errorf("publish: %v, want a conflict %s", err, CodeMismatch)
			}
		})
	}
	if n := scan[int](t, b, `select count(*) from events`); n != 2 {
		t.Errorf("%d events are stored, want the first two only", n)
	}
}

func TestPublish_IDsAndKeysBelongToAProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, project := range []string{b.project, b.newProject(t)} {
		published, err := Publish(b.ctx, b.pool, project, changed(newOrder(""), withBoth("x", "k")))
		if err != nil {
			t.Fatal(err)
		}
		if published.Duplicate {
			t.Errorf("an id of another project is taken for a duplicate")
		}
	}
}

func TestPublish_FiftyAtOnceStoreOneEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, given := range map[string]func(*New){"id": withID("x"), "key": withKey("k")} {
		t.Run(name, func(t *testing.T) {
			answers := make([]Published, 50)
			errs := make([]error, 50)
			var wg sync.WaitGroup
			for i := range answers {
				wg.Go(func() { answers[i], errs[i] = Publish(b.ctx, b.pool, b.project, changed(newOrder(""), given)) })
			}
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			stored := 0
			for _, a := range answers {
				if a.ID != answers[0].ID {
					t.Errorf("answers name %s and %s", a.ID, answers[0].ID)
				}
				if !a.Duplicate {
					stored++
				}
			}
			if stored != 1 {
				t.Errorf("%d answers say that they stored the event, want 1", stored)
			}
			if n := scan[int](t, b, `select count(*) from events where id = $1`, answers[0].ID); n != 1 {
				t.Errorf("%d events are stored, want 1", n)
			}
		})
	}
}

func TestPublish_ExpiredIsRefusedButStillAnswered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := changed(newOrder("x"), func(n *New) { n.ExpiresAt = time.Now().Add(-time.Second) })
	_, err := Publish(b.ctx, b.pool, b.project, n)
	var invalid *store.InvalidError
	if !errors.As(err, &invalid) || invalid.Sentence("expiresAt") == "" {
		t.Fatalf("publish: %v, want a sentence about expiresAt", err)
	}

	if _, err := Publish(b.ctx, b.pool, b.project, changed(n, func(n *New) { n.ExpiresAt = time.Time{} })); err != nil {
		t.Fatal(err)
	}
	b.exec(t, `update events set expires_at = $1`, n.ExpiresAt)
	published, err := Publish(b.ctx, b.pool, b.project, n)
	if err != nil || !published.Duplicate {
		t.Errorf("publish again after the expiry: %+v, %v, want the first answer", published, err)
	}
}

func TestPublish_UnknownProjectIsNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := Publish(b.ctx, b.pool, "project_none", newOrder("")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("publish: %v, want not found", err)
	}
}

func TestPublish_SharesTheCallersTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "taken")
	undo := errors.New("undo")
	err := store.InTx(b.ctx, b.pool, func(tx pgx.Tx) error {
		var conflict *store.ConflictError
		other := changed(newOrder("taken"), func(n *New) { n.Data = []byte("2") })
		if _, err := Publish(b.ctx, tx, b.project, other); !errors.As(err, &conflict) {
			t.Errorf("publish: %v, want a conflict", err)
		}
		if _, err := Publish(b.ctx, tx, "project_none", newOrder("")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("publish: %v, want not found", err)
		}
		if _, err := Publish(b.ctx, tx, b.project, newOrder("fresh")); err != nil {
			t.Errorf("publish after refusals: %v, want the transaction to be sound", err)
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	if _, err := EventByID(b.ctx, b.pool, b.project, "fresh"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("event of a rolled-back transaction: %v, want not found", err)
	}
}

func TestPublish_TakesOneStatement(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var counter queryCounter
	config := b.pool.Config()
	config.ConnConfig.Tracer = &counter
	pool, err := pgxpool.NewWithConfig(b.ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := Publish(b.ctx, pool, b.project, changed(newOrder(""), withBoth("x", "k"))); err != nil {
		t.Fatal(err)
	}
	if n := counter.n.Load(); n != 1 {
		t.Errorf("a publish took %d statements, want 1", n)
	}
}

// queryCounter counts statements.
type queryCounter struct{ n atomic.Int64 }

func (c *queryCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (c *queryCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func changed(n New, changes ...func(*New)) New {
	for _, change := range changes {
		change(&n)
	}
	return n
}

func withID(id string) func(*New)        { return func(n *New) { n.ID = id } }
func withKey(key string) func(*New)      { return func(n *New) { n.IdempotencyKey = key } }
func withBoth(id, key string) func(*New) { return func(n *New) { n.ID, n.IdempotencyKey = id, key } }
