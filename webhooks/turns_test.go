package webhooks

import (
	"context"
	"errors"
	"testing"
)

func TestTurns_OneAfterTheOtherForEachKey(t *testing.T) {
	t.Parallel()
	var all turns
	first, err := all.take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := all.take(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()

	got := make(chan func())
	go func() {
		done, err := all.take(t.Context(), "a")
		if err != nil {
			t.Error(err)
		}
		got <- done
	}()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.take(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a second holder while the first has the turn: error %v", err)
	}
	select {
	case <-got:
		t.Fatal("two have the turn at once")
	default:
	}
	first()
	(<-got)()
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.byKey) != 0 {
		t.Errorf("%d keys are remembered although nobody uses them", len(all.byKey))
	}
}
