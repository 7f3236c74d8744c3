package events

import (
	"errors"
	"strings"
	"testing"
	"time"

	"entrega/internal/store"
)

func TestIsType(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"order.created":                  true,
		"order":                          true,
		"Order_2.line-item.created":      true,
		strings.Repeat("a", 128):         true,
		strings.Repeat("a", 129):         false,
		"":                               false,
		".order":                         false,
		"order.":                         false,
		"order..created":                 false,
		"order created":                  false,
		"order.créé":                     false,
		"order.created\n":                false,
		"<script>alert(1)</script>":      false,
		"order.*":                        false,
		"order.created'; drop table x--": false,
	} {
		if got := IsType(name); got != want {
			t.Errorf("IsType(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestNew_EachRuleNamesItsField(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		change func(*New)
		field  string // "" when nothing is wrong
	}{
		"as it should be":                   {func(*New) {}, ""},
		"longest id":                        {func(n *New) { n.ID = strings.Repeat("a", 128) }, ""},
		"id with every sign":                {func(n *New) { n.ID = "Az09._:-" }, ""},
		"id too long":                       {func(n *New) { n.ID = strings.Repeat("a", 129) }, "id"},
		"id with a space":                   {func(n *New) { n.ID = "a b" }, "id"},
		"id with a line end":                {func(n *New) { n.ID = "a\n" }, "id"},
		"id beyond ASCII":                   {func(n *New) { n.ID = "é" }, "id"},
		"key too long":                      {func(n *New) { n.IdempotencyKey = strings.Repeat("k", 256) }, "idempotencyKey"},
		"key with a tab":                    {func(n *New) { n.IdempotencyKey = "a\tb" }, "idempotencyKey"},
		"no type":                           {func(n *New) { n.Type = "" }, "type"},
		"no data":                           {func(n *New) { n.Data = nil }, "data"},
		"data is blank":                     {func(n *New) { n.Data = []byte("  ") }, "data"},
		"data is two values":                {func(n *New) { n.Data = []byte("1 2") }, "data"},
		"data is cut off":                   {func(n *New) { n.Data = []byte(`{"a":`) }, "data"},
		"data is not UTF-8":                 {func(n *New) { n.Data = []byte("\"\xff\"") }, "data"},
		"data has a raw control":            {func(n *New) { n.Data = []byte("\"a\x00\"") }, "data"},
		"data is null":                      {func(n *New) { n.Data = []byte("null") }, ""},
		"data is as large as may be":        {func(n *New) { n.Data = sized(MaxDataBytes) }, ""},
		"data is a byte too large":          {func(n *New) { n.Data = sized(MaxDataBytes + 1) }, "data"},
		"subscriber of 128 characters":      {func(n *New) { n.Subscriber = strings.Repeat("é", 128) }, ""},
		"subscriber too long":               {func(n *New) { n.Subscriber = strings.Repeat("é", 129) }, "subscriber"},
		"subscriber with a control":         {func(n *New) { n.Subscriber = "a\x7f" }, "subscriber"},
		"subscriber not UTF-8":              {func(n *New) { n.Subscriber = "\xff" }, "subscriber"},
		"occurred before computers":         {func(n *New) { n.OccurredAt = at.AddDate(-200, 0, 0) }, "occurredAt"},
		"occurred beyond four digits":       {func(n *New) { n.OccurredAt = at.AddDate(9000, 0, 0) }, "occurredAt"},
		"expires when it occurs":            {func(n *New) { n.OccurredAt, n.ExpiresAt = at, at }, "expiresAt"},
		"expires after it occurs":           {func(n *New) { n.OccurredAt, n.ExpiresAt = at, at.Add(time.Second) }, ""},
		"expires beyond four digits":        {func(n *New) { n.ExpiresAt = at.AddDate(9000, 0, 0) }, "expiresAt"},
		"metadata":                          {func(n *New) { n.Metadata = map[string]string{"user": "ünï\ncode"} }, ""},
		"metadata with an empty key":        {func(n *New) { n.Metadata = map[string]string{"": "x"} }, "metadata"},
		"metadata with a long key":          {func(n *New) { n.Metadata = map[string]string{strings.Repeat("k", 65): "x"} }, "metadata"},
		"metadata with a NUL":               {func(n *New) { n.Metadata = map[string]string{"k": "a\x00"} }, "metadata"},
		"metadata that is not UTF-8":        {func(n *New) { n.Metadata = map[string]string{"k": "\xff"} }, "metadata"},
		"metadata as large as may be":       {func(n *New) { n.Metadata = map[string]string{"k": strings.Repeat("v", 8192-9)} }, ""},
		"metadata a byte too large":         {func(n *New) { n.Metadata = map[string]string{"k": strings.Repeat("v", 8192-8)} }, "metadata"},
		"metadata of many keys is too much": {func(n *New) { n.Metadata = manyKeys(1000) }, "metadata"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newOrder("event_1")
			test.change(&n)
			err := n.check()
			if test.field == "" {
				if err != nil {
					t.Fatalf("check: %v, want no error", err)
				}
				return
			}
			var invalid *store.InvalidError
			if !errors.As(err, &invalid) || invalid.Sentence(test.field) == "" || len(invalid.Fields) != 1 {
				t.Fatalf("check: %v, want one sentence about %s", err, test.field)
			}
		})
	}
}

func TestNew_SaysEverythingThatIsWrongAtOnce(t *testing.T) {
	t.Parallel()
	err := New{ID: " ", Type: " "}.check()
	var invalid *store.InvalidError
	if !errors.As(err, &invalid) || len(invalid.Fields) != 3 {
		t.Fatalf("check: %v, want sentences about id, type and data", err)
	}
}

// sized makes a JSON string of n bytes.
func sized(n int) []byte {
	return []byte(`"` + strings.Repeat("x", n-2) + `"`)
}

func manyKeys(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m["key_"+strings.Repeat("k", i%40)+string(rune('a'+i%26))+time.Duration(i).String()] = "v"
	}
	return m
}
