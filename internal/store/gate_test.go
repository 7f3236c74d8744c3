package store

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// enters reports how long it took until bulk work could begin.
func enters(t *testing.T, g *Gate) (leave func(), waited time.Duration) {
	t.Helper()
	start := time.Now()
	leave = g.Enter(t.Context(), bulkRows)
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
			time.AfterFunc(time.Millisecond, leave)
		}
		start := time.Now()
		g.Enter(t.Context(), bulkRows-1)()
		if waited := time.Since(start); waited > 0 {
			t.Errorf("work on a few waited %s", waited)
		}
		if _, waited := enters(t, g); waited != time.Millisecond {
			t.Errorf("the fourth waited %s, want 1ms", waited)
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
		if waited != 120*time.Millisecond {
			t.Errorf("the next came in after %s of rest, want 120ms, three times what the one before took", waited)
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

func TestGate_NobodyWaitsForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for alone, most := range map[bool]time.Duration{false: 250 * time.Millisecond, true: time.Second} {
			g := NewGate(2)
			first, _ := enters(t, g)
			second, _ := enters(t, g)
			if alone {
				g.Alone()
			}
			// Those inside may wait for something in the database that does not come.
			third, waited := enters(t, g)
			if waited != most {
				t.Errorf("the third went in after %s, want %s", waited, most)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			start := time.Now()
			fourth := g.Enter(ctx, bulkRows)
			cancel()
			if waited := time.Since(start); waited != time.Millisecond {
				t.Errorf("waited %s for a context that ended after 1ms", waited)
			}
			for _, leave := range []func(){fourth, third, second, first} {
				leave()
			}
			time.Sleep(courtesyFor)
			for range 2 {
				if _, waited := enters(t, g); waited > 0 {
					t.Errorf("waited %s though all have left", waited)
				}
			}
		}
	})
}

func TestGate_NilLetsEverythingIn(t *testing.T) {
	t.Parallel()
	var g *Gate
	g.Alone()
	g.Enter(t.Context(), 1_000_000)()
	if g.Courteous() {
		t.Error("no gate is courteous")
	}
}
