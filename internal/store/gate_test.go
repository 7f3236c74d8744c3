package store

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// enters reports how long it took until bulk work could begin.
func enters(t *testing.T, g *Gate) (leave func(), waited time.Duration) {
	t.Helper()
	start := time.Now()
	leave, err := g.Enter(t.Context(), bulkRows)
	if err != nil {
		t.Fatal(err)
	}
	return leave, time.Since(start)
}

func TestGate_LetsAsManyInAsThereAreProcessors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(3)
		for range 3 {
			leave, waited := enters(t, g)
			if waited > 0 {
				t.Fatalf("waited %s while there was room", waited)
			}
			time.AfterFunc(time.Second, leave)
		}
		if leave, err := g.Enter(t.Context(), bulkRows-1); err != nil {
			t.Fatal(err)
		} else {
			leave()
		}
		if _, waited := enters(t, g); waited != time.Second {
			t.Errorf("the fourth waited %s, want 1s", waited)
		}
	})
}

func TestGate_BulkMakesRoomForWhatCameAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(2)
		g.Alone()
		leave, _ := enters(t, g)
		time.Sleep(40 * time.Millisecond)
		leave()
		leave, waited := enters(t, g)
		if waited != 20*time.Millisecond {
			t.Errorf("the next came in after %s of rest, want 20ms: half of what the one before took", waited)
		}
		time.Sleep(400 * time.Millisecond)
		leave()
		leave, waited = enters(t, g)
		if waited != longestRest {
			t.Errorf("rested for %s, want %s at most", waited, longestRest)
		}
		leave()

		time.Sleep(courtesyFor)
		if g.Courteous() {
			t.Error("it is courteous long after something came alone")
		}
		enters(t, g)
		if _, waited := enters(t, g); waited > 0 {
			t.Errorf("the second waited %s, though nothing comes alone any more", waited)
		}
	})
}

func TestGate_WhoGivesUpTakesNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(2)
		first, _ := enters(t, g)
		second, _ := enters(t, g)
		g.Alone()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := g.Enter(ctx, bulkRows); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a wait that was given up brought %v", err)
		}
		first()
		second()
		if _, waited := enters(t, g); waited > 0 {
			t.Errorf("waited %s behind one that gave up", waited)
		}
	})
}

func TestGate_NilLetsEverythingIn(t *testing.T) {
	t.Parallel()
	var g *Gate
	g.Alone()
	leave, err := g.Enter(t.Context(), 1_000_000)
	if err != nil || g.Courteous() {
		t.Errorf("no gate: %v, courteous %t", err, g.Courteous())
	}
	leave()
}
