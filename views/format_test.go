package views

import (
	"strings"
	"testing"
	"time"
)

// plain makes the spaces that do not break visible to a table of wants.
func plain(s string) string { return strings.ReplaceAll(s, nbsp, " ") }

func TestDuration_KeepsThePrecisionAPersonUses(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                                     "0 s",
		400 * time.Microsecond:                "0.4 ms",
		38 * time.Millisecond:                 "38 ms",
		999*time.Millisecond + 999999:         "999 ms",
		5180 * time.Millisecond:               "5.2 s",
		10 * time.Second:                      "10 s",
		59*time.Second + 970*time.Millisecond: "1 min",
		29*time.Minute + 36*time.Second:       "29 min 36 s",
		30 * time.Minute:                      "30 min",
		2*time.Hour + 5*time.Minute:           "2 h 5 min",
		5*24*time.Hour + 7*time.Hour:          "5 d 7 h",
		-2 * time.Second:                      "−2 s",
	} {
		if got := plain(duration(d)); got != want {
			t.Errorf("duration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestRelative_LooksFromNow(t *testing.T) {
	t.Parallel()
	now := sampleNow()
	for off, want := range map[time.Duration]string{
		0:                               "just now",
		-4 * time.Second:                "just now",
		-12 * time.Second:               "12 s ago",
		-119 * time.Second:              "1 min ago",
		-3 * time.Hour:                  "3 h ago",
		-3 * 24 * time.Hour:             "3 d ago",
		-40 * 24 * time.Hour:            "20 Oct 2026",
		500 * time.Millisecond:          "now",
		108 * time.Second:               "in 1 min 48 s",
		28*time.Minute + 40*time.Second: "in 28 min",
		2*time.Hour + 5*time.Minute:     "in 2 h 5 min",
		4 * 24 * time.Hour:              "in 4 d",
	} {
		if got := plain(relative(now, now.Add(off))); got != want {
			t.Errorf("relative(%v) = %q, want %q", off, got, want)
		}
	}
}

func TestCount_Separates(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 184203: "184,203", 1234567: "1,234,567", -4200: "−4,200"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
	if got := countUpTo(10000, true); got != "10,000+" {
		t.Errorf("a capped count reads %q", got)
	}
}

func TestPercent_NeverRoundsUpToAll(t *testing.T) {
	t.Parallel()
	for ratio, want := range map[float64]string{1: "100 %", 0.99999: "99.99 %", 0.9986: "99.86 %", 0.5: "50 %", 0: "0 %"} {
		if got := plain(percent(ratio)); got != want {
			t.Errorf("percent(%v) = %q, want %q", ratio, got, want)
		}
	}
}

func TestSize_UsesBinaryUnits(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 16384: "16 KiB", 1536: "1.5 KiB", 6_120_000_000: "5.7 GiB"} {
		if got := plain(size(n)); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestJitter_SaysTheDifference(t *testing.T) {
	t.Parallel()
	if got := plain(jitter(30*time.Minute, 29*time.Minute+36*time.Second)); got != "jitter −1.3 %" {
		t.Errorf("got %q", got)
	}
	if got := plain(jitter(5*time.Second, 5180*time.Millisecond)); got != "jitter +3.6 %" {
		t.Errorf("got %q", got)
	}
}
