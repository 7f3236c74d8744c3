package webhooks

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

func TestTurns_OneAfterTheOtherForEachKey(t *testing.T) {
	t.Parallel()
	var all turns
	first, waited, err := all.take(t.Context(), "a")
	if err != nil || waited {
		t.Fatal(err, waited)
	}
	other, waited, err := all.take(t.Context(), "b")
	if err != nil || waited {
		t.Fatal(err, waited)
	}
	other()

	got := make(chan func())
	go func() {
		done, waited, err := all.take(t.Context(), "a")
		if err != nil || !waited {
			t.Error(err, waited)
		}
		got <- done
	}()
	for users := 0; users < 2; runtime.Gosched() {
		all.mu.Lock()
		users = all.byKey["a"].users
		all.mu.Unlock()
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := all.take(ended, "a"); !errors.Is(err, context.Canceled) {
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
