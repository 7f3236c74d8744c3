package jobs

import (
	"math"
	"testing"
	"time"
)

// forecastPolicy has three attempts, one and two minutes apart, without jitter.
func forecastPolicy() Policy {
	return Policy{Attempts: 3, Waits: []time.Duration{time.Minute, 2 * time.Minute}, Timeout: Timeout{Total: 30 * time.Second}}
}

func TestForecast_CountsEachRetryInItsMinute(t *testing.T) {
	t.Parallel()
	// One task a second, four minutes of outage: attempts at 0, 1 and 3 minutes after creation.
	f := forecastPolicy().Forecast(Load{PerSecond: 1, Outage: 4 * time.Minute})
	want := []float64{0, 60, 60, 120, 120, 60}
	if len(f.Retries) != len(want) {
		t.Fatalf("%d minutes: %v, want %d", len(f.Retries), f.Retries, len(want))
	}
	for m, n := range want {
		if math.Abs(f.Retries[m]-n) > 1e-6 || f.FirstTries[m] != 60 {
			t.Errorf("minute %d has %v retries and %v first tries, want %v and 60", m, f.Retries[m], f.FirstTries[m], n)
		}
	}
	// The tasks of the first minute have used up their attempts before the outage ends.
	if f.GivenUp != 60 || f.Waiting != 180 {
		t.Errorf("%v gave up and %v wait, want 60 and 180", f.GivenUp, f.Waiting)
	}
	if f.Peak != 180 || f.PeakAt != 3*time.Minute || f.WorkersNeeded != 90 || f.Drained != 2*time.Minute {
		t.Errorf("the peak is %v at %v for %d workers, drained after %v", f.Peak, f.PeakAt, f.WorkersNeeded, f.Drained)
	}
}

func TestForecast_EveryAttemptIsCountedOnce(t *testing.T) {
	t.Parallel()
	p := forecastPolicy()
	f := p.Forecast(Load{PerSecond: 2, Outage: 7 * time.Minute})
	var retries float64
	for _, n := range f.Retries {
		retries += n
	}
	// Tasks made in minutes 0 to 4 have both retries, later ones until the outage's end as many as fail.
	want := 2 * 60 * (7.0 + 6.0)
	if math.Abs(retries-want) > 1e-6 {
		t.Errorf("%v retries in all, want %v", retries, want)
	}
}

func TestForecast_FewWorkersDrainLaterOrNever(t *testing.T) {
	t.Parallel()
	p := forecastPolicy()
	load := Load{PerSecond: 1, Outage: 4 * time.Minute, Took: time.Second, Workers: 2}
	if f := p.Forecast(load); f.Drained != 3*time.Minute || f.Never {
		t.Errorf("two workers drain after %v, never: %v; want 3m", f.Drained, f.Never)
	}
	load.Workers = 1
	if f := p.Forecast(load); !f.Never {
		t.Errorf("one worker drains after %v, want never", f.Drained)
	}
}

func TestForecast_JitterTakesTheShortestWaitAndTheHorizonEnds(t *testing.T) {
	t.Parallel()
	p := Policy{Attempts: 6, Backoff: &Backoff{Base: 10 * time.Minute, Factor: 2}, Jitter: Jitter{Fraction: 0.1}, Horizon: 30 * time.Minute, Timeout: Timeout{Total: time.Second}}
	if got := p.offsets(); len(got) != 3 || math.Abs(got[1]-9) > 1e-9 || math.Abs(got[2]-27) > 1e-9 {
		t.Errorf("attempts start after %v minutes, want 0, 9 and 27", got)
	}
	p.Jitter = Jitter{Full: true}
	if got := p.offsets(); math.Abs(got[1]-5) > 1e-9 {
		t.Errorf("with full jitter the second starts after %v minutes, want 5", got[1])
	}
}

func TestParseRate(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]float64{"10/s": 10, "10": 10, "600/min": 10, "3600/h": 1, "0.5/s": 0.5} {
		if got, err := ParseRate(in); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "ten", "-1/s", "10/day", "NaN", "1e9"} {
		if _, err := ParseRate(in); err == nil {
			t.Errorf("%q is taken for a rate", in)
		}
	}
}
