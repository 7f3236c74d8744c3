package store

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLoader_ReadsThatComeDuringAStatementShareTheNext(t *testing.T) {
	t.Parallel()
	entered, gate := make(chan struct{}), make(chan struct{})
	var statements [][]int
	l := NewLoader(func(_ context.Context, keys []int) (map[int]int, error) {
		statements = append(statements, keys)
		if len(statements) == 1 {
			close(entered)
			<-gate
		}
		found := map[int]int{}
		for _, k := range keys {
			if k != 7 {
				found[k] = k * k
			}
		}
		return found, nil
	})
	first := l.join(1)
	<-entered
	second := l.join(6)
	for range 3 {
		for _, k := range []int{6, 7, 8} {
			if l.join(k) != second {
				t.Errorf("the read of %d does not share the second statement", k)
			}
		}
	}
	close(gate)
	<-first.done
	<-second.done
	if diff := cmp.Diff([][]int{{1}, {6, 7, 8}}, statements); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int]int{6: 36, 8: 64}, second.found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestLoader_AFullGroupGoesByItself(t *testing.T) {
	t.Parallel()
	entered, gate := make(chan struct{}), make(chan struct{})
	l := NewLoader(func(_ context.Context, keys []int) (map[int]int, error) {
		if len(keys) == 1 {
			close(entered)
			<-gate
		}
		return nil, nil
	})
	first := l.join(-1)
	<-entered
	var full *group[int, int]
	for k := range loaderGroup {
		full = l.join(k)
	}
	<-full.done // The first is still under way.
	close(gate)
	<-first.done
}

func TestLoader_AnErrorIsForItsGroupOnly(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	calls := 0
	l := NewLoader(func(_ context.Context, keys []string) (map[string]string, error) {
		calls++
		if calls == 1 {
			return nil, boom
		}
		return map[string]string{keys[0]: "found"}, nil
	})
	if _, _, err := l.Get(t.Context(), "a"); !errors.Is(err, boom) {
		t.Errorf("error %v, want %v", err, boom)
	}
	v, found, err := l.Get(t.Context(), "a")
	if diff := cmp.Diff("found", v); diff != "" || !found || err != nil {
		t.Errorf("found %t, error %v, value (-want +got):\n%s", found, err, diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := l.Get(ctx, "b"); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("error %v for a context that has ended", err)
	}
}
