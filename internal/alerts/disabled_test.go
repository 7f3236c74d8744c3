package alerts

import (
	"testing"
	"time"
)

func (b *bundle) disable(endpoint, reason string) {
	b.t.Helper()
	b.exec(`update endpoints set disabled_at = $2, disabled_reason = $3 where id = $1`, endpoint, b.now, reason)
}

func TestDisabled_ByARuleOrItsReceiver(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"gone":              "old.partner.example answered 410 Gone and was disabled. Reactivate it when it works again, and redeliver what it missed.",
		"failures_in_a_row": "old.partner.example failed 20 times in a row since 26 Nov 09:14 UTC and was disabled. Reactivate it when it works again, and redeliver what it missed.",
		"failing":           "old.partner.example failed for 5 days since 26 Nov 09:14 UTC and was disabled. Reactivate it when it works again, and redeliver what it missed.",
		"manual":            "",
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e := b.newEndpoint("https://old.partner.example/hooks")
			b.fail(e, time.Date(2025, 11, 26, 9, 14, 0, 0, time.UTC), 20)
			b.disable(e, reason)
			b.look()
			if want == "" {
				b.none(EndpointDisabled)
				return
			}
			if a := b.one(EndpointDisabled); a.Sentence() != want || a.Count != 1 || !a.LastAt.Equal(b.now) || a.EndpointID != e {
				t.Errorf("the alert says %q, counts %d until %v, want %q", a.Sentence(), a.Count, a.LastAt, want)
			}
		})
	}
}

func TestDisabled_ResolvesItself(t *testing.T) {
	t.Parallel()
	for why, sql := range map[string]string{
		"it was reactivated":                                `update endpoints set disabled_at = null, disabled_reason = null where id = $1`,
		"its endpoint was deleted":                          `update endpoints set deleted_at = now() where id = $1`,
		"it was reactivated, and then disabled by a person": `update endpoints set disabled_reason = 'manual' where id = $1`,
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e := b.newEndpoint("https://old.partner.example/hooks")
			b.disable(e, "gone")
			b.look()
			b.look()
			b.exec(sql, e)
			b.look()
			b.resolvedItself(EndpointDisabled, why)
		})
	}
}

func TestDisabled_AgainIsAnotherHappening(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://old.partner.example/hooks")
	b.disable(e, "gone")
	b.look()
	// Reactivated and disabled again before the next scan.
	b.now = b.now.Add(time.Second)
	b.disable(e, "gone")
	b.look()
	if a := b.one(EndpointDisabled); a.Count != 2 || a.State != StateOpen {
		t.Errorf("the alert is %s and counts %d, want open with 2", a.State, a.Count)
	}
	b.resolveByHand(b.one(EndpointDisabled))
	b.look()
	if a := b.one(EndpointDisabled); a.State != StateResolved {
		t.Errorf("the alert is %s, want it to stay resolved", a.State)
	}
	b.now = b.now.Add(time.Second)
	b.disable(e, "gone")
	b.look()
	if all := b.all(EndpointDisabled); len(all) != 2 || all[1].State != StateOpen || all[1].Count != 1 {
		t.Errorf("the alerts are %+v, want a second, open, with 1", all)
	}
}
