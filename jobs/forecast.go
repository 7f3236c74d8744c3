package jobs

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Load is what a forecast assumes: tasks come at a steady rate, and for the length of the outage every attempt fails.
type Load struct {
	// PerSecond is how many tasks are made, before, during and after the outage.
	PerSecond float64
	Outage    time.Duration
	// Took is how long an attempt lasts once the outage is over; zero means 1 s. During it, an attempt lasts as long as the policy lets it.
	Took time.Duration
	// Workers is how many attempts run at once; zero means as many as are needed.
	Workers int
}

// maxForecast bounds the minutes of a forecast.
const maxForecast = 7 * 24 * 60

// Forecast is what a policy makes of a load, in the worst case.
type Forecast struct {
	// FirstTries and Retries count attempts per minute, from the outage's start until its last task has had its turn.
	FirstTries, Retries []float64
	// Peak is the most attempts in one minute, and PeakAt when that begins.
	Peak   float64
	PeakAt time.Duration
	// WorkersNeeded is how many attempts run at once at the peak, when each lasts as long as the policy lets it.
	WorkersNeeded int
	// Waiting are the tasks that wait for their next attempt when the outage ends, and GivenUp those that ended in it.
	Waiting, GivenUp float64
	// Drained is how long after the outage the last of them has had its turn; Never says that there are too few workers for that.
	Drained time.Duration
	Never   bool
}

// Forecast computes what an outage leads to, from the policy alone. It is pure. Waits are the shortest that the jitter allows, the
// case in which retries are the most; full jitter, which has no shortest wait, counts as half.
func (p Policy) Forecast(l Load) Forecast {
	offsets := p.offsets()
	outage, rate := l.Outage.Minutes(), l.PerSecond*60
	var f Forecast
	scheduled := 0.0
	for k := 1; k < len(offsets); k++ {
		if offsets[k-1] < outage {
			scheduled = max(scheduled, offsets[k]-offsets[k-1])
		}
	}
	minutes := min(int(math.Ceil(outage+scheduled)), maxForecast)
	for m := range minutes {
		from, retries := float64(m), 0.0
		for k := 1; k < len(offsets); k++ {
			// A task made at c has its attempt k when all before it failed, the last of them at c + offsets[k-1].
			retries += rate * overlap(from-offsets[k], from+1-offsets[k], 0, outage-offsets[k-1])
		}
		f.FirstTries, f.Retries = append(f.FirstTries, rate), append(f.Retries, retries)
		if total := rate + retries; total > f.Peak+1e-6 {
			f.Peak, f.PeakAt = total, time.Duration(m)*time.Minute
		}
	}
	f.WorkersNeeded = int(math.Ceil(f.Peak/60*p.Timeout.Total.Seconds() - 1e-6))
	f.GivenUp = rate * max(0, outage-offsets[len(offsets)-1])
	f.Waiting = max(0, rate*outage-f.GivenUp)
	f.Drained = time.Duration(scheduled * float64(time.Minute)).Round(time.Second)
	f.drain(l)
	return f
}

// drain takes into account that workers are few: what waits goes out beside what comes new.
func (f *Forecast) drain(l Load) {
	if l.Workers == 0 {
		return
	}
	took := l.Took
	if took <= 0 {
		took = time.Second
	}
	spare := float64(l.Workers)/took.Seconds() - l.PerSecond
	if spare <= 0 {
		f.Never = f.Waiting > 0 || l.PerSecond > 0
		return
	}
	seconds := f.Waiting / spare
	if seconds > float64(math.MaxInt64/int64(time.Second)) {
		f.Never = true
		return
	}
	f.Drained = max(f.Drained, time.Duration(seconds*float64(time.Second)).Round(time.Second))
}

// offsets are when each attempt of a task starts, in minutes after its creation, as far as the policy's horizon lets it.
func (p Policy) offsets() []float64 {
	offsets := []float64{0}
	at := 0.0
	for attempt := 1; attempt < p.Attempts; attempt++ {
		wait := p.BaseWait(attempt).Minutes() * (1 - p.Jitter.Fraction)
		if p.Jitter.Full {
			wait = p.BaseWait(attempt).Minutes() / 2
		}
		at += wait
		if p.Horizon > 0 && at > p.Horizon.Minutes() {
			break
		}
		offsets = append(offsets, at)
	}
	return offsets
}

// overlap is the length of what two stretches have in common.
func overlap(a, b, c, d float64) float64 { return max(0, min(b, d)-max(a, c)) }

// ParseRate reads "10/s", "600/min", "5/h"; a plain number is per second.
func ParseRate(s string) (perSecond float64, err error) {
	number, unit, _ := strings.Cut(strings.TrimSpace(s), "/")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || n < 0 || n > 1e6 || math.IsNaN(n) {
		return 0, fmt.Errorf("%q is no rate; write 10/s, 600/min or 5/h", s)
	}
	switch strings.TrimSpace(unit) {
	case "", "s":
		return n, nil
	case "min", "m":
		return n / 60, nil
	case "h":
		return n / 3600, nil
	default:
		return 0, fmt.Errorf("%q is no rate; write 10/s, 600/min or 5/h", s)
	}
}

// MaxOutage is the longest outage that is forecast.
const MaxOutage = 72 * time.Hour

// ParseOutage reads the length of an outage.
func ParseOutage(s string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil || d <= 0 || d > MaxOutage {
		return 0, errors.New("the outage must be a duration from 1s to 72h, such as 30m")
	}
	return d, nil
}
