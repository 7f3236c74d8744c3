package events

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
)

func TestPublishBatch_EachItemAnswersForItself(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "before")
	results, err := PublishBatch(b.ctx, b.pool, b.project, []New{
		newOrder("a"),
		changed(newOrder("b"), func(n *New) { n.Type = "not a type" }),
		newOrder("before"),
		changed(newOrder("before"), func(n *New) { n.Data = []byte("2") }),
		newOrder(""),
		changed(newOrder("late"), func(n *New) { n.ExpiresAt = time.Now().Add(-time.Hour) }),
		changed(newOrder("c"), func(n *New) { n.Metadata = map[string]string{"k": `"quoted"`}; n.Subscriber = "acme" }),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "invalid type", "before again", "mismatch", results[4].ID, "invalid expiresAt", "c"}
	if diff := cmp.Diff(want, sentences(results)); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if n := scan[int](t, b, `select count(*) from events`); n != 4 {
		t.Errorf("%d events are stored, want the good ones and the one before", n)
	}
	c, err := EventByID(b.ctx, b.pool, b.project, "c")
	if err != nil {
		t.Fatal(err)
	}
	if c.Metadata["k"] != `"quoted"` || c.Subscriber != "acme" {
		t.Errorf("stored %+v, want metadata and subscriber as given", c)
	}
}

func TestPublishBatch_ItemsClashAsIfSentInTurn(t *testing.T) {
	t.Parallel()
	other := func(n *New) { n.Data = []byte("2") }
	tests := map[string]struct {
		before []New // published first
		batch  []New
		want   []string
	}{
		"same id, same content": {nil,
			[]New{newOrder("x"), newOrder("x"), newOrder("x")},
			[]string{"x", "x again", "x again"}},
		"same id, other content": {nil,
			[]New{newOrder("x"), changed(newOrder("x"), other)},
			[]string{"x", "mismatch"}},
		"the first of an id wins, whatever the keys": {nil,
			[]New{changed(newOrder(""), withBoth("x", "z")), changed(newOrder(""), withBoth("x", "a"), other)},
			[]string{"x", "mismatch"}},
		"same key": {nil,
			[]New{changed(newOrder("x"), withBoth("x", "k")), changed(newOrder(""), withKey("k")), changed(newOrder(""), withKey("k"), other)},
			[]string{"x", "x again", "mismatch"}},
		"what clashes with a refused item is stored": {[]New{changed(newOrder(""), withBoth("old", "k"))},
			[]New{changed(newOrder(""), withBoth("x", "k")), newOrder("x"), newOrder("x")},
			[]string{"mismatch", "x", "x again"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for _, n := range test.before {
				if _, err := Publish(b.ctx, b.pool, b.project, n); err != nil {
					t.Fatal(err)
				}
			}
			results, err := PublishBatch(b.ctx, b.pool, b.project, test.batch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, sentences(results)); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPublishBatch_SequenceFollowsTheOrderGiven(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var batch []New
	var want []string
	for i := range MaxBatch {
		id := fmt.Sprintf("%04d", (i*7919)%MaxBatch)
		batch, want = append(batch, newOrder(id)), append(want, id)
	}
	if _, err := PublishBatch(b.ctx, b.pool, b.project, batch); err != nil {
		t.Fatal(err)
	}
	got := scan[[]string](t, b, `select array_agg(id order by seq) from events`)
	if !slices.Equal(want, got) {
		t.Errorf("sequence does not follow the batch:\n%s", cmp.Diff(want, got))
	}
}

func TestPublishBatch_TakesOneToAThousand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, n := range []int{0, MaxBatch + 1} {
		var invalid *store.InvalidError
		if _, err := PublishBatch(b.ctx, b.pool, b.project, make([]New, n)); !errors.As(err, &invalid) {
			t.Errorf("a batch of %d: %v, want it refused", n, err)
		}
	}
}

func TestPublishBatch_OppositeOrdersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for round := range 10 {
		var forth []New
		for i := range 200 {
			forth = append(forth, newOrder(fmt.Sprintf("%d-%d", round, i)))
		}
		back := slices.Clone(forth)
		slices.Reverse(back)

		var wg sync.WaitGroup
		stored := make([]int, 2)
		for i, batch := range [][]New{forth, back} {
			wg.Go(func() {
				results, err := PublishBatch(b.ctx, b.pool, b.project, batch)
				if err != nil {
					t.Error(err)
				}
				for _, r := range results {
					if r.Err != nil {
						t.Error(r.Err)
					}
					if !r.Duplicate {
						stored[i]++
					}
				}
			})
		}
		wg.Wait()
		if stored[0]+stored[1] != 200 {
			t.Fatalf("%d + %d answers say that they stored an event, want 200 in all", stored[0], stored[1])
		}
	}
}

// sentences puts each answer into a word or two.
func sentences(results []Result) []string {
	words := make([]string, len(results))
	for i, r := range results {
		var invalid *store.InvalidError
		var conflict *store.ConflictError
		switch {
		case errors.As(r.Err, &invalid):
			words[i] = "invalid " + invalid.Fields[0].Field
		case errors.As(r.Err, &conflict) && conflict.Code == CodeMismatch:
			words[i] = "mismatch"
		case r.Err != nil:
			words[i] = r.Err.Error()
		case r.Duplicate:
			words[i] = r.ID + " again"
		default:
			words[i] = r.ID
		}
	}
	return words
}
