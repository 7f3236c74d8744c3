package jobs

import (
	"bytes"
	"math"
	"testing"
	"time"
)

// The vectors were computed apart from this program, with Python's hashlib and floats, from the recipe in Policy.Wait.
func TestJitter_PublishedVectors(t *testing.T) {
	t.Parallel()
	var zero, counting [32]byte
	for i := range counting {
		counting[i] = byte(i)
	}
	ones := [32]byte(bytes.Repeat([]byte{0xff}, 32))

	for _, test := range []struct {
		task     int64
		attempt  int
		hash     [32]byte
		baseMS   int64
		jitter   Jitter
		u        float64
		chosenMS int64
	}{
		{1, 1, zero, 5000, Jitter{Fraction: 0.1}, 0.5185705747268459, 5019},
		{1, 2, zero, 300000, Jitter{Fraction: 0.1}, 0.0790102133942975, 274741},
		{2, 1, zero, 5000, Jitter{Fraction: 0.1}, 0.1336546802674297, 4634},
		{1, 1, counting, 5000, Jitter{Fraction: 0.1}, 0.3658194621676648, 4866},
		{math.MaxInt64, 18, ones, 36000000, Jitter{Fraction: 0.1}, 0.9745287840563441, 39416607},
		{42, 3, counting, 1800000, Jitter{Fraction: 0.1}, 0.7955091632862786, 1906383},
		{42, 3, counting, 600000, Jitter{Fraction: 0.2}, 0.7955091632862786, 670922},
		{7, 1, ones, 30000, Jitter{Fraction: 0.2}, 0.25806766062364034, 27097},
		{7, 8, ones, 86400000, Jitter{Fraction: 0.2}, 0.39586488977167306, 82801091},
		{1000001, 1, counting, 5000, Jitter{Full: true}, 0.6176879176475644, 3088},
		{1000001, 6, counting, 160000, Jitter{Full: true}, 0.4196709167957392, 67147},
		{12, 1, zero, 1, Jitter{Full: true}, 0.42159473904683265, 0},
		{12, 1, zero, 0, Jitter{Fraction: 0.1}, 0.42159473904683265, 0},
		{3, 4, counting, 1000, Jitter{Fraction: 1}, 0.702317690024512, 1405},
		{99, 2, zero, 2000, Jitter{}, 0.33678397891844875, 2000},
	} {
		p := Policy{Waits: []time.Duration{fromMS(test.baseMS)}, Jitter: test.jitter, Hash: test.hash}
		if u := jitterUnit(test.task, test.attempt, test.hash); u != test.u {
			t.Errorf("task %d attempt %d: u = %v, want %v", test.task, test.attempt, u, test.u)
		}
		base, chosen := p.Wait(test.task, test.attempt)
		if base != fromMS(test.baseMS) || chosen != fromMS(test.chosenMS) {
			t.Errorf("task %d attempt %d: waits %s and %s, want %d and %d ms", test.task, test.attempt, base, chosen, test.baseMS, test.chosenMS)
		}
	}
}

func TestJitter_RoundsHalfUpAndSaturates(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		ms   float64
		want time.Duration
	}{
		{0, 0},
		{0.49, 0},
		{0.5, time.Millisecond},
		{1.5, 2 * time.Millisecond},
		{2.5, 3 * time.Millisecond},
		{-0.5, 0},
		{-7, 0},
		{math.NaN(), 0},
		{math.Inf(-1), 0},
		{math.Inf(1), math.MaxInt64 / time.Millisecond * time.Millisecond},
		{1e300, math.MaxInt64 / time.Millisecond * time.Millisecond},
	} {
		if got := milliseconds(test.ms); got != test.want {
			t.Errorf("milliseconds(%v) = %s, want %s", test.ms, got, test.want)
		}
	}
}

// Tasks that failed together must not come back together: over many tasks the waits fill the whole range evenly.
func TestJitter_SpreadsTasksEvenly(t *testing.T) {
	t.Parallel()
	p := Policy{Waits: []time.Duration{time.Hour}, Jitter: Jitter{Fraction: 0.1}}
	const tasks, parts = 10_000, 10
	least, most := p.WaitBounds(1)
	var count [parts]int
	for task := range int64(tasks) {
		_, chosen := p.Wait(task, 1)
		part := int(float64(chosen-least) / float64(most-least) * parts)
		count[min(part, parts-1)]++
	}
	for part, n := range count {
		if n < tasks/parts*8/10 || n > tasks/parts*12/10 {
			t.Errorf("part %d of the range has %d of %d waits", part, n, tasks)
		}
	}
}

func TestPolicyWait_StaysWithinTheBoundsOfEveryShippedPolicy(t *testing.T) {
	t.Parallel()
	for _, p := range shipped(t).All() {
		for attempt := 1; attempt < p.Attempts+2; attempt++ {
			least, most := p.WaitBounds(attempt)
			for task := range int64(500) {
				base, chosen := p.Wait(task, attempt)
				if base != p.BaseWait(attempt) {
					t.Fatalf("%s/%s attempt %d: base %s, want %s", p.Kind, p.Profile, attempt, base, p.BaseWait(attempt))
				}
				if chosen < least || chosen > most || chosen < 0 {
					t.Fatalf("%s/%s attempt %d task %d: %s is not within %s and %s", p.Kind, p.Profile, attempt, task, chosen, least, most)
				}
			}
		}
	}
}
