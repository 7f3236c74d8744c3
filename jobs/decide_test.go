package jobs

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// shipped is the set of policies without overrides.
func shipped(t testing.TB) *PolicySet {
	t.Helper()
	set, err := LoadPolicies("")
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func policyOf(t testing.TB, kind, profile string) Policy {
	t.Helper()
	p, ok := shipped(t).For(kind, profile)
	if !ok {
		t.Fatalf("no policy %s/%s", kind, profile)
	}
	return p
}

// plainPolicy has no jitter, so that waits can be written down: 3 attempts, 10 s and then 1 m, a day's horizon, an hour's cap.
func plainPolicy() Policy {
	return Policy{Kind: "test", Profile: DefaultProfile, Attempts: 3, Waits: []time.Duration{10 * time.Second, time.Minute},
		Horizon: 24 * time.Hour, RetryAfterCap: time.Hour}
}

var created = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func retryAt(reason string, now time.Time, base, wait time.Duration) Decision {
	return Decision{Verdict: VerdictRetryScheduled, Reason: reason, BaseWait: base, Wait: wait, NextAttemptAt: now.Add(wait), Charged: true}
}

func snoozeAt(reason string, now time.Time, base, wait time.Duration) Decision {
	return Decision{Verdict: VerdictSnoozed, Reason: reason, BaseWait: base, Wait: wait, NextAttemptAt: now.Add(wait)}
}

func ended(verdict Verdict, reason string, charged bool) Decision {
	return Decision{Verdict: verdict, Reason: reason, Charged: charged}
}

func (d Decision) capped(by string) Decision {
	d.Cap = by
	return d
}

func (d Decision) read(how string) Decision {
	d.RetryAfterRead = how
	return d
}

func TestDecide(t *testing.T) {
	t.Parallel()
	soon := created.Add(time.Minute)
	late := created.Add(25 * time.Hour)
	asked := func(d time.Duration) *RetryAfter { return &RetryAfter{Raw: "x", Delay: d, Read: RetryAfterUsed} }
	nonsense := &RetryAfter{Raw: "soon", Read: RetryAfterIgnored}

	for _, test := range []struct {
		name   string
		h      History
		class  Class
		reason string
		delay  time.Duration
		ra     *RetryAfter
		now    time.Time
		want   Decision
	}{
		{"a success is accepted", History{Attempt: 1}, ClassSuccess, "", 0, nil, soon, ended(VerdictAccepted, ReasonAccepted, true)},
		{"a success counts even after cancel, horizon and budget", History{Attempt: 9, Cancelled: true}, ClassSuccess, "", 0, nil, late,
			ended(VerdictAccepted, ReasonAccepted, true)},

		{"a failure waits as the policy says", History{Attempt: 1}, ClassRetry, "", 0, nil, soon, retryAt(ReasonFailed, soon, 10*time.Second, 10*time.Second)},
		{"the next failure waits longer", History{Attempt: 2}, ClassRetry, "", 0, nil, soon, retryAt(ReasonFailed, soon, time.Minute, time.Minute)},
		{"a handler's word is kept", History{Attempt: 1}, ClassRetry, ReasonPanic, 0, nil, soon, retryAt(ReasonPanic, soon, 10*time.Second, 10*time.Second)},
		{"an unknown class is a failure", History{Attempt: 1}, Class("?"), "", 0, nil, soon, retryAt(ReasonFailed, soon, 10*time.Second, 10*time.Second)},
		{"the last attempt ends it", History{Attempt: 3}, ClassRetry, "", 0, nil, soon, ended(VerdictPermanentFailure, ReasonAttemptsExhausted, true)},

		{"cancelled comes before horizon, budget and class", History{Attempt: 3, Cancelled: true}, ClassDiscard, ReasonGone, 0, nil, late,
			ended(VerdictCancelled, ReasonCancelled, true)},
		{"cancelled wins over a discard", History{Attempt: 1, Cancelled: true}, ClassDiscard, ReasonRejected, 0, nil, soon,
			ended(VerdictCancelled, ReasonCancelled, true)},
		{"horizon comes before budget and class", History{Attempt: 3}, ClassDiscard, ReasonGone, 0, nil, late,
			ended(VerdictPermanentFailure, ReasonHorizon, true)},
		{"budget comes before class", History{Attempt: 3}, ClassDiscard, ReasonGone, 0, nil, soon,
			ended(VerdictPermanentFailure, ReasonAttemptsExhausted, true)},
		{"a timeout of the last attempt at the deadline reads horizon", History{Attempt: 3}, ClassRetry, "", 0, nil, created.Add(24 * time.Hour),
			ended(VerdictPermanentFailure, ReasonHorizon, true)},
		{"an instant before the deadline it reads exhausted", History{Attempt: 3}, ClassRetry, "", 0, nil, created.Add(24*time.Hour - 1),
			ended(VerdictPermanentFailure, ReasonAttemptsExhausted, true)},

		{"a discard ends it with the handler's word", History{Attempt: 1}, ClassDiscard, ReasonGone, 0, nil, soon,
			ended(VerdictPermanentFailure, ReasonGone, true)},
		{"a discard without a word", History{Attempt: 1}, ClassDiscard, "", 0, nil, soon, ended(VerdictPermanentFailure, ReasonDiscarded, true)},
		{"a disabled endpoint charges nothing", History{Attempt: 1}, ClassDiscard, ReasonEndpointDisabled, 0, nil, soon,
			ended(VerdictPermanentFailure, ReasonEndpointDisabled, false)},
		{"so it is no exhaustion before the last attempt was made", History{Attempt: 3}, ClassDiscard, ReasonEndpointDisabled, 0, nil, soon,
			ended(VerdictPermanentFailure, ReasonEndpointDisabled, false)},
		{"a cancel says where there is nowhere to deliver", History{Attempt: 3}, ClassCancel, ReasonEndpointDisabled, 0, nil, soon,
			ended(VerdictCancelled, ReasonEndpointDisabled, false)},
		{"a cancel without a word", History{Attempt: 1}, ClassCancel, "", 0, nil, soon, ended(VerdictCancelled, ReasonCancelled, false)},

		{"a retry that would start after the horizon is not scheduled", History{Attempt: 2}, ClassRetry, "", 0, nil, created.Add(24*time.Hour - time.Second),
			ended(VerdictPermanentFailure, ReasonHorizon, true).capped(CapHorizon)},
		{"a retry that starts at the horizon is", History{Attempt: 2}, ClassRetry, "", 0, nil, created.Add(24*time.Hour - time.Minute),
			retryAt(ReasonFailed, created.Add(24*time.Hour-time.Minute), time.Minute, time.Minute)},
		{"the caller's deadline may be earlier", History{Attempt: 1, Deadline: created.Add(65 * time.Second)}, ClassRetry, "", 0, nil, soon,
			ended(VerdictPermanentFailure, ReasonHorizon, true).capped(CapHorizon)},
		{"but not later", History{Attempt: 1, Deadline: created.Add(99 * time.Hour)}, ClassRetry, "", 0, nil, late,
			ended(VerdictPermanentFailure, ReasonHorizon, true)},

		{"a retry waits as long as was asked, if longer", History{Attempt: 1}, ClassRetry, "", 0, asked(30 * time.Second), soon,
			retryAt(ReasonFailed, soon, 10*time.Second, 30*time.Second).read(RetryAfterUsed)},
		{"but never less than the policy", History{Attempt: 1}, ClassRetry, "", 0, asked(time.Second), soon,
			retryAt(ReasonFailed, soon, 10*time.Second, 10*time.Second).read(RetryAfterUsed)},
		{"and at most the cap", History{Attempt: 1}, ClassRetry, "", 0, asked(longest), soon,
			retryAt(ReasonFailed, soon, 10*time.Second, time.Hour).capped(CapRetryAfter).read(RetryAfterCapped)},
		{"nonsense changes nothing and is recorded", History{Attempt: 1}, ClassRetry, "", 0, nonsense, soon,
			retryAt(ReasonFailed, soon, 10*time.Second, 10*time.Second).read(RetryAfterIgnored)},
		{"an exhausted task still says how the header was read", History{Attempt: 3}, ClassRetry, "", 0, asked(2 * time.Hour), soon,
			ended(VerdictPermanentFailure, ReasonAttemptsExhausted, true).read(RetryAfterCapped)},

		{"a snooze waits as asked", History{Attempt: 1}, ClassSnooze, "", 2 * time.Minute, nil, soon,
			snoozeAt(ReasonRetryAfter, soon, 2*time.Minute, 2*time.Minute)},
		{"a snooze keeps the handler's word", History{Attempt: 1}, ClassSnooze, ReasonLaneBusy, 5 * time.Second, nil, soon,
			snoozeAt(ReasonLaneBusy, soon, 5*time.Second, 5*time.Second)},
		{"a snooze is never earlier than the receiver asked", History{Attempt: 1}, ClassSnooze, "", 0, asked(2 * time.Minute), soon,
			snoozeAt(ReasonRetryAfter, soon, 2*time.Minute, 2*time.Minute).read(RetryAfterUsed)},
		{"parts of a millisecond round up", History{Attempt: 1}, ClassSnooze, "", 2*time.Second + 1, nil, soon,
			snoozeAt(ReasonRetryAfter, soon, 2*time.Second+time.Millisecond, 2*time.Second+time.Millisecond)},
		{"a snooze is at most the cap", History{Attempt: 1}, ClassSnooze, "", longest, asked(longest), soon,
			snoozeAt(ReasonRetryAfter, soon, longest, time.Hour).capped(CapRetryAfter).read(RetryAfterCapped)},
		{"a first snooze is at least a second", History{Attempt: 1}, ClassSnooze, "", 0, asked(0), soon,
			snoozeAt(ReasonRetryAfter, soon, 0, time.Second).capped(CapFloor).read(RetryAfterUsed)},
		{"a negative snooze too", History{Attempt: 1}, ClassSnooze, "", -time.Hour, nil, soon,
			snoozeAt(ReasonRetryAfter, soon, 0, time.Second).capped(CapFloor)},
		{"the third in a row four", History{Attempt: 1, SnoozesInARow: 2}, ClassSnooze, "", time.Second, nil, soon,
			snoozeAt(ReasonRetryAfter, soon, time.Second, 4*time.Second).capped(CapFloor)},
		{"and never more than a minute", History{Attempt: 1, SnoozesInARow: math.MaxInt}, ClassSnooze, "", 0, nil, soon,
			snoozeAt(ReasonRetryAfter, soon, 0, time.Minute).capped(CapFloor)},
		{"a snooze spends no attempt, not even the last", History{Attempt: 3}, ClassSnooze, "", time.Minute, nil, soon,
			snoozeAt(ReasonRetryAfter, soon, time.Minute, time.Minute)},
		{"a snooze beyond the last attempt is exhausted", History{Attempt: 4}, ClassSnooze, "", time.Minute, nil, soon,
			ended(VerdictPermanentFailure, ReasonAttemptsExhausted, false)},
		{"the horizon bounds snoozes", History{Attempt: 1}, ClassSnooze, "", time.Minute, nil, late,
			ended(VerdictPermanentFailure, ReasonHorizon, false)},
		{"and the last one before it", History{Attempt: 1}, ClassSnooze, "", time.Hour, nil, created.Add(24*time.Hour - time.Minute),
			ended(VerdictPermanentFailure, ReasonHorizon, false).capped(CapHorizon)},

		{"a manual retry after exhaustion is one attempt", History{Attempt: 4, ManualRetry: true}, ClassRetry, "", 0, nil, soon,
			ended(VerdictPermanentFailure, ReasonAttemptsExhausted, true)},
		{"a manual retry within the budget goes on by schedule", History{Attempt: 2, ManualRetry: true}, ClassRetry, "", 0, nil, soon,
			retryAt(ReasonFailed, soon, time.Minute, time.Minute)},
		{"a manual retry that waits for its turn is not exhausted", History{Attempt: 4, ManualRetry: true}, ClassSnooze, ReasonLaneBusy, time.Minute, nil, soon,
			snoozeAt(ReasonLaneBusy, soon, time.Minute, time.Minute)},
		{"nor past its horizon", History{Attempt: 4, ManualRetry: true}, ClassSnooze, ReasonLaneBusy, time.Minute, nil, late,
			snoozeAt(ReasonLaneBusy, late, time.Minute, time.Minute)},
		{"a manual retry that the receiver puts off keeps its attempt", History{Attempt: 4, ManualRetry: true}, ClassSnooze, "", 0, asked(time.Minute), soon,
			snoozeAt(ReasonRetryAfter, soon, time.Minute, time.Minute).read(RetryAfterUsed)},
		{"until the horizon", History{Attempt: 4, ManualRetry: true}, ClassSnooze, "", 0, asked(time.Minute), late,
			ended(VerdictPermanentFailure, ReasonHorizon, false).read(RetryAfterUsed)},
		{"a manual retry past the horizon is made and then ends", History{Attempt: 2, ManualRetry: true}, ClassRetry, "", 0, nil, late,
			ended(VerdictPermanentFailure, ReasonHorizon, true)},
		{"a manual retry of a disabled endpoint says so", History{Attempt: 4, ManualRetry: true}, ClassDiscard, ReasonEndpointDisabled, 0, nil, late,
			ended(VerdictPermanentFailure, ReasonEndpointDisabled, false)},
		{"a manual retry can be cancelled", History{Attempt: 4, ManualRetry: true, Cancelled: true}, ClassSnooze, ReasonLaneBusy, time.Minute, nil, soon,
			ended(VerdictCancelled, ReasonCancelled, false)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.h.TaskID, test.h.CreatedAt = 7, created
			got := Decide(plainPolicy(), test.h, test.class, test.reason, test.delay, test.ra, test.now)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestDecide_WithoutHorizonOnlyTheCallersDeadlineCounts(t *testing.T) {
	t.Parallel()
	p := plainPolicy()
	p.Horizon = 0
	years := created.AddDate(10, 0, 0)
	if d := Decide(p, History{CreatedAt: created, Attempt: 1}, ClassRetry, "", 0, nil, years); d.Verdict != VerdictRetryScheduled {
		t.Errorf("without a deadline: %s, %s", d.Verdict, d.Reason)
	}
	h := History{CreatedAt: created, Attempt: 1, Deadline: created.Add(time.Hour)}
	if d := Decide(p, h, ClassRetry, "", 0, nil, years); d.Reason != ReasonHorizon {
		t.Errorf("after the caller's deadline: %s, %s", d.Verdict, d.Reason)
	}
}

// Decide is handed a pointer, which it must leave as it was: the caller's evidence is not its to change.
func TestDecide_LeavesRetryAfterAlone(t *testing.T) {
	t.Parallel()
	ra := ParseRetryAfter("99999999", created)
	want := *ra
	d := Decide(plainPolicy(), History{CreatedAt: created, Attempt: 1}, ClassSnooze, "", ra.Delay, ra, created)
	if diff := cmp.Diff(&want, ra); diff != "" || d.RetryAfterRead != RetryAfterCapped {
		t.Errorf("read %s, changed: %s", d.RetryAfterRead, diff)
	}
}

// The waits of 3-retry's table, attempt by attempt, as far as jitter may carry them.
func TestDecide_WebhookProfilesWaitAsPublished(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	standard := []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * h, 5 * h}
	for len(standard) < 17 {
		standard = append(standard, 10*h)
	}
	compact := []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, 2 * h, 6 * h, 12 * h, 24 * h}

	for _, test := range []struct {
		profile string
		percent time.Duration
		waits   []time.Duration
	}{{"standard", 10, standard}, {"compact", 20, compact}} {
		p := policyOf(t, "webhook.deliver", test.profile)
		for task := range int64(200) {
			now := created
			for i, wait := range test.waits {
				d := Decide(p, History{TaskID: task, CreatedAt: created, Attempt: i + 1}, ClassRetry, "", 0, nil, now)
				if d.Verdict != VerdictRetryScheduled || d.BaseWait != wait {
					t.Fatalf("%s attempt %d: %s after %s, want a retry after %s", test.profile, i+1, d.Verdict, d.BaseWait, wait)
				}
				if off := (d.Wait - wait).Abs(); off > wait*test.percent/100 {
					t.Errorf("%s attempt %d: %s strays too far from %s", test.profile, i+1, d.Wait, wait)
				}
				now = d.NextAttemptAt
			}
			last := Decide(p, History{TaskID: task, CreatedAt: created, Attempt: len(test.waits) + 1}, ClassRetry, "", 0, nil, now)
			if last.Reason != ReasonAttemptsExhausted {
				t.Fatalf("%s: after all attempts the reason is %s at %s", test.profile, last.Reason, now.Sub(created))
			}
		}
	}
}

func FuzzDecide(f *testing.F) {
	policies := shipped(f).All()
	f.Add(uint8(0), int64(1), 1, 0, uint8(0), "", int64(0), "", int64(0), int64(0))
	f.Add(uint8(9), int64(7), 18, 3, uint8(3), "lane_busy", int64(time.Hour), "120", int64(8*24*time.Hour), int64(time.Hour))
	f.Add(uint8(10), int64(-1), 0, -5, uint8(6), "gone", int64(-1), "99999999999999999999", int64(-time.Hour), int64(-1))
	classes := []Class{ClassSuccess, ClassRetry, ClassSnooze, ClassDiscard, ClassCancel}

	f.Fuzz(func(t *testing.T, which uint8, task int64, attempt, snoozes int, flags uint8, reason string, delay int64, header string, age, deadline int64) {
		p := policies[int(which)%len(policies)]
		class := classes[int(which)/len(policies)%len(classes)]
		now := created.Add(time.Duration(age))
		h := History{TaskID: task, CreatedAt: created, Attempt: attempt, SnoozesInARow: snoozes, Cancelled: flags&1 != 0, ManualRetry: flags&2 != 0}
		if deadline != 0 {
			h.Deadline = created.Add(time.Duration(deadline))
		}
		ra := ParseRetryAfter(header, now)
		d := Decide(p, h, class, reason, time.Duration(delay), ra, now)

		if diff := cmp.Diff(d, Decide(p, h, class, reason, time.Duration(delay), ra, now)); diff != "" {
			t.Fatalf("decided twice, it differs: %s", diff)
		}
		if d.Wait < 0 || d.BaseWait < 0 {
			t.Errorf("negative wait: %+v", d)
		}
		goesOn := d.Verdict == VerdictRetryScheduled || d.Verdict == VerdictSnoozed
		if goesOn == d.NextAttemptAt.IsZero() || !goesOn && (d.Wait != 0 || d.BaseWait != 0) {
			t.Errorf("a next attempt without a wait or the reverse: %+v", d)
		}
		if d.Reason == "" {
			t.Errorf("no reason: %+v", d)
		}
		if (class == ClassSuccess) != (d.Verdict == VerdictAccepted) {
			t.Errorf("%s is %s", class, d.Verdict)
		}
		if (d.RetryAfterRead == "") != (ra == nil) {
			t.Errorf("header %q is read as %q", header, d.RetryAfterRead)
		}
		if !goesOn {
			return
		}
		if !d.NextAttemptAt.Equal(now.Add(d.Wait)) || d.NextAttemptAt.Before(now) {
			t.Errorf("next attempt at %s is not %s after %s", d.NextAttemptAt, d.Wait, now)
		}
		if d.Wait%time.Millisecond != 0 {
			t.Errorf("%s is no whole number of milliseconds", d.Wait)
		}
		waitsForItsTurn := h.ManualRetry && class == ClassSnooze && ra == nil
		if end := h.deadline(p); !waitsForItsTurn && !end.IsZero() && d.NextAttemptAt.After(end) {
			t.Errorf("next attempt at %s is after the deadline %s", d.NextAttemptAt, end)
		}
		if class == ClassSnooze && (d.Wait < time.Second || d.Wait > p.RetryAfterCap) {
			t.Errorf("a snooze of %s", d.Wait)
		}
		if _, most := p.WaitBounds(attempt); d.Verdict == VerdictRetryScheduled && d.Wait > max(most, p.RetryAfterCap) {
			t.Errorf("a retry after %s", d.Wait)
		}
	})
}
