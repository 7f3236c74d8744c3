package store

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
)

// Lists hold DefaultLimit rows when the caller does not say, and MaxLimit at most.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// Page is what a caller asks of a list, as it came in: a limit (0 means DefaultLimit) and the opaque cursor of an
// earlier answer ("" means the first page).
type Page struct {
	Limit  int
	Cursor string
}

// Direction is the way a cursor leads, seen from the list's own order.
type Direction string

// Next leads towards the end of the list, Prev back towards its start.
const (
	Next Direction = "next"
	Prev Direction = "prev"
)

// Keyset is a Page made ready for SQL. K is the type of the list's key: the columns it is ordered by, ending in one that
// is unique.
type Keyset[K any] struct {
	// Limit is how many rows the page holds.
	Limit int
	// Direction is Next on the first page.
	Direction Direction
	// From is the key to go on from, exclusive; nil on the first page.
	From *K
}

// List is one page of rows in the list's own order, with the cursors of its neighbours; "" where there is none.
type List[T any] struct {
	Rows []T
	Next string
	Prev string
}

// cursor is the JSON inside an opaque cursor. The short names keep it short in URLs.
type cursor[K any] struct {
	Direction Direction `json:"d"`
	Key       K         `json:"k"`
}

// KeysetOf reads p for a list whose key is K. A limit out of range or a cursor that is not one of this list is an
// *InvalidError of field "limit" or "cursor".
func KeysetOf[K any](p Page) (Keyset[K], error) {
	k := Keyset[K]{Limit: p.Limit, Direction: Next}
	if k.Limit == 0 {
		k.Limit = DefaultLimit
	}
	if k.Limit < 1 || k.Limit > MaxLimit {
		return Keyset[K]{}, Invalid("limit", fmt.Sprintf("The limit must be between 1 and %d.", MaxLimit))
	}
	if p.Cursor == "" {
		return k, nil
	}

	c, err := decodeCursor[K](p.Cursor)
	if err != nil {
		return Keyset[K]{}, Invalid("cursor", "This is not a cursor of this list. Start again from its first page.")
	}
	k.Direction, k.From = c.Direction, &c.Key
	return k, nil
}

// Fetch is how many rows to select: one more than the page holds tells whether there is a page behind it.
func (k Keyset[K]) Fetch() int { return k.Limit + 1 }

// Backward reports that the rows must be selected in the reverse of the list's order.
func (k Keyset[K]) Backward() bool { return k.Direction == Prev }

// ListOf makes a page of the rows that were selected, at most k.Fetch() of them, in the order in which they were
// selected: away from k.From. key returns a row's key.
func ListOf[T, K any](k Keyset[K], rows []T, key func(T) K) List[T] {
	more := len(rows) > k.Limit
	if more {
		rows = rows[:k.Limit]
	}
	if k.Backward() {
		slices.Reverse(rows)
	}

	list := List[T]{Rows: rows}
	if len(rows) == 0 {
		return list
	}
	// Where the caller came from there is a page, or was one a moment ago.
	hasNext, hasPrev := more, k.From != nil
	if k.Backward() {
		hasNext, hasPrev = true, more
	}
	if hasNext {
		list.Next = encodeCursor(cursor[K]{Next, key(rows[len(rows)-1])})
	}
	if hasPrev {
		list.Prev = encodeCursor(cursor[K]{Prev, key(rows[0])})
	}
	return list
}

// encodeCursor panics when K cannot be JSON, which is a mistake in the program that the first test of a list finds.
func encodeCursor[K any](c cursor[K]) string {
	raw, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("store: encode a cursor of %T: %v", c.Key, err))
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func decodeCursor[K any](s string) (cursor[K], error) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return cursor[K]{}, fmt.Errorf("decode base64: %w", err)
	}
	var c cursor[K]
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return cursor[K]{}, fmt.Errorf("decode json: %w", err)
	}
	if c.Direction != Next && c.Direction != Prev {
		return cursor[K]{}, fmt.Errorf("direction %q is unknown", c.Direction)
	}
	return c, nil
}
