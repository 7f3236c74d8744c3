package store_test

import (
	"cmp"
	"encoding/base64"
	"errors"
	"slices"
	"testing"

	"entrega/internal/store"

	gocmp "github.com/google/go-cmp/cmp"
)

type key struct {
	At string `json:"a"`
	ID int64  `json:"i"`
}

func compare(a, b key) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) }

// selectRows does what a list's SQL does, on a table that is sorted already.
func selectRows(table []key, k store.Keyset[key]) []key {
	rows := slices.Clone(table)
	if k.Backward() {
		slices.Reverse(rows)
	}
	if k.From != nil {
		rows = slices.DeleteFunc(rows, func(r key) bool {
			if k.Backward() {
				return compare(r, *k.From) >= 0
			}
			return compare(r, *k.From) <= 0
		})
	}
	return rows[:min(len(rows), k.Fetch())]
}

func page(t *testing.T, table []key, limit int, cursor string) store.List[key] {
	t.Helper()
	k, err := store.KeysetOf[key](store.Page{Limit: limit, Cursor: cursor})
	if err != nil {
		t.Fatal(err)
	}
	return store.ListOf(k, selectRows(table, k), func(r key) key { return r })
}

func table(n int) []key {
	rows := make([]key, n)
	for i := range rows {
		rows[i] = key{At: string(rune('a' + i/2)), ID: int64(1)<<60 + int64(i)} // Ties in At, and ids beyond a float's reach.
	}
	return rows
}

func TestList_WalksForwardAndBackOverEveryRowOnce(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 3, 4, 6, 7} {
		rows := table(size)
		var forward [][]key
		cursor := ""
		for {
			list := page(t, rows, 3, cursor)
			forward = append(forward, list.Rows)
			if (list.Prev == "") != (cursor == "") {
				t.Errorf("%d rows: the cursor back is %q on page %d", size, list.Prev, len(forward))
			}
			if list.Next == "" {
				cursor = list.Prev
				break
			}
			cursor = list.Next
		}
		if diff := gocmp.Diff(rows, slices.Concat(forward...)); diff != "" {
			t.Errorf("%d rows forward (-want +got):\n%s", size, diff)
		}

		backward := [][]key{forward[len(forward)-1]}
		for cursor != "" {
			list := page(t, rows, 3, cursor)
			backward = append(backward, list.Rows)
			if list.Next == "" {
				t.Errorf("%d rows: no way forward again", size)
			}
			cursor = list.Prev
		}
		slices.Reverse(backward)
		if diff := gocmp.Diff(forward, backward); diff != "" {
			t.Errorf("%d rows: the pages back differ from those forward (-forward +backward):\n%s", size, diff)
		}
	}
}

func TestList_EmptyHasNoNeighbours(t *testing.T) {
	t.Parallel()
	if list := page(t, nil, 3, ""); len(list.Rows) != 0 || list.Next != "" || list.Prev != "" {
		t.Errorf("list = %+v", list)
	}
}

func TestKeysetOf_Limits(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{0: 50, 1: 1, 200: 200, -1: 0, 201: 0} {
		k, err := store.KeysetOf[key](store.Page{Limit: limit})
		if want != 0 {
			if err != nil || k.Limit != want {
				t.Errorf("limit %d: %d, %v; want %d", limit, k.Limit, err, want)
			}
			continue
		}
		var invalid *store.InvalidError
		if !errors.As(err, &invalid) || invalid.Sentence("limit") == "" {
			t.Errorf("limit %d: error = %v", limit, err)
		}
	}
}

func TestKeysetOf_RefusesForeignCursors(t *testing.T) {
	t.Parallel()
	for _, cursor := range []string{
		"?", "e30", "bnVsbA",
		base64.RawURLEncoding.EncodeToString([]byte(`{"d":"up","k":{"a":"x","i":1}}`)),
		base64.RawURLEncoding.EncodeToString([]byte(`{"d":"next","k":{"endpoint":"x"}}`)),
		base64.RawURLEncoding.EncodeToString([]byte(`{"d":"next","k":7}`)),
	} {
		_, err := store.KeysetOf[key](store.Page{Cursor: cursor})
		var invalid *store.InvalidError
		if !errors.As(err, &invalid) || invalid.Sentence("cursor") == "" {
			t.Errorf("cursor %s: error = %v", cursor, err)
		}
	}
}
