package tenant

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each step is a try after some time; want is the wait it is told, or 0 when it is let through.
func TestTry_WaitsGrowAndAreForgotten(t *testing.T) {
	t.Parallel()
	rule := throttleRule{free: 3, window: 15 * time.Minute, first: time.Minute, most: 5 * time.Minute}
	type step struct{ after, want time.Duration }
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"free tries, then waits that double up to the most", []step{
			{0, 0}, {0, 0}, {0, 0},
			{0, time.Minute}, {30 * time.Second, 30 * time.Second}, {30 * time.Second, 0},
			{0, 2 * time.Minute}, {2 * time.Minute, 0},
			{time.Second, 4*time.Minute - time.Second}, {4*time.Minute - time.Second, 0},
			{0, 5 * time.Minute}, {5 * time.Minute, 0},
			{0, 5 * time.Minute},
		}},
		{"tries that are far apart never wait", []step{
			{0, 0}, {14 * time.Minute, 0}, {time.Minute, 0}, {0, 0}, {0, 0}, {0, time.Minute},
		}},
		{"a quiet window after a wait forgets all", []step{
			{0, 0}, {0, 0}, {0, 0}, {0, time.Minute}, {16 * time.Minute, 0}, {0, 0}, {0, 0}, {0, time.Minute},
		}},
		{"just under a window after a wait forgets nothing", []step{
			{0, 0}, {0, 0}, {0, 0}, {16*time.Minute - time.Second, 0}, {0, 2 * time.Minute},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 11, 29, 18, 0, 0, 0, time.UTC)
			var row throttleRow
			var got []step
			for _, s := range tt.steps {
				now = now.Add(s.after)
				next, wait := rule.try(row, now)
				if wait > 0 && cmp.Diff(row, next) != "" {
					t.Errorf("a blocked try changes the row from %+v to %+v", row, next)
				}
				row = next
				got = append(got, step{s.after, wait})
			}
			if diff := cmp.Diff(tt.steps, got, cmp.AllowUnexported(step{})); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlock_NeverOverflows(t *testing.T) {
	t.Parallel()
	rule := addressKey("").rule
	if got := rule.block(1 << 20); got != rule.most {
		t.Errorf("block after a million failures is %s, want %s", got, rule.most)
	}
}

func TestThrottledError_SaysWholeMinutes(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]string{
		time.Nanosecond:              "Too many attempts. Try again in 1 minute.",
		time.Minute:                  "Too many attempts. Try again in 1 minute.",
		time.Minute + time.Second:    "Too many attempts. Try again in 2 minutes.",
		15 * time.Minute:             "Too many attempts. Try again in 15 minutes.",
		15*time.Minute - time.Second: "Too many attempts. Try again in 15 minutes.",
	} {
		if got := (&ThrottledError{RetryAfter: wait}).Error(); got != want {
			t.Errorf("%s: %q, want %q", wait, got, want)
		}
	}
}

func TestNetwork_IsWhatOneCustomerHas(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"192.0.2.7":                "192.0.2.7",
		"::ffff:192.0.2.7":         "192.0.2.7",
		"2001:db8:1:2:3:4:5:6":     "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1":     "2001:db8:1:2::/64",
		"2001:db8:1:3::1":          "2001:db8:1:3::/64",
		"fe80::1%eth0":             "fe80::/64",
		"":                         "unknown",
		"192.0.2.7:443":            "unknown",
		"not an address' or 1=1--": "unknown",
	} {
		if got := network(in); got != want {
			t.Errorf("network(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestAccountKey_KeepsNoAddress(t *testing.T) {
	t.Parallel()
	key := accountKey("ana@acme.example").key
	if want := "account:"; len(key) != len(want)+64 || key[:len(want)] != want {
		t.Errorf("key is %q, want %s and 64 hex digits", key, want)
	}
}
