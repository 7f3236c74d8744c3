package webhooks

import (
	"context"
	"testing"

	"entrega/internal/store"
)

func TestContents_WhatIsKeptIsForFirstAttempts(t *testing.T) {
	t.Parallel()
	reads := 0
	c := &contents{kept: map[contentKey]content{}, loader: store.NewLoader(func(context.Context, []contentKey) (map[contentKey]content, error) {
		reads++
		return nil, nil
	})}
	small, large := contentKey{"project", "small"}, contentKey{"project", "large"}
	c.keep(small, content{typ: "a", data: []byte("1")})
	c.keep(large, content{typ: "a"})
	for name, ask := range map[string]struct {
		key   contentKey
		first bool
		kept  bool
	}{
		"a first attempt":                     {small, true, true},
		"a later one":                         {small, false, false},
		"an event without its payload":        {large, true, false},
		"an event of the same id, of another": {contentKey{"other", "small"}, true, false},
	} {
		before := reads
		v, found, err := c.get(t.Context(), ask.key, ask.first)
		if err != nil || found != ask.kept || ask.kept != (string(v.data) == "1") || ask.kept != (reads == before) {
			t.Errorf("%s: %+v, %t, %v after %d reads", name, v, found, err, reads-before)
		}
	}
	c.forget(small)
	if _, found := c.recall(small); found {
		t.Error("it is kept for good")
	}
}
