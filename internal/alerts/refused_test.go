package alerts

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRefused_CountsAnswersOfTheReceiver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e, calm := b.newEndpoint("https://api.lumen.example/"), b.newEndpoint("https://hooks.northwind.example/")
	first := b.now.Add(-time.Minute)
	b.refuse(e, 403, first)
	b.refuse(e, 401, b.now)
	b.record(attempt{endpoint: calm, at: b.now, status: 500, class: "server", decision: "retry_scheduled", reason: "failed"})
	b.look()
	a := b.one(ReceiverRefuses)
	const want = "api.lumen.example answered 401 Unauthorized: the receiver refuses our signature or credentials. " +
		"Compare the secret and the endpoint's own headers with the receiver's, then send a test."
	if diff := cmp.Diff(want, a.Sentence()); diff != "" {
		t.Errorf("the sentence differs (-want +got):\n%s", diff)
	}
	if a.Count != 2 || !a.FirstAt.Equal(first) || !a.LastAt.Equal(b.now) || a.EndpointID != e {
		t.Errorf("the alert counts %d from %v to %v, want 2 from %v to %v", a.Count, a.FirstAt, a.LastAt, first, b.now)
	}
	// What is seen again is not counted again; what is written late, with an earlier time, is.
	for range 3 {
		b.now = b.now.Add(ledgerSettled)
		b.look()
	}
	b.refuse(e, 403, first.Add(-time.Hour))
	b.look()
	if a := b.one(ReceiverRefuses); a.Count != 3 || !a.FirstAt.Equal(first.Add(-time.Hour)) {
		t.Errorf("the alert counts %d since %v, want 3 since the one that was written late", a.Count, a.FirstAt)
	}
}

func TestRefused_ResolvesItself(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		why    string
		change func(b *bundle, e string)
	}{
		"a later success in the ledger": {"it accepted a later attempt", func(b *bundle, e string) {
			b.record(attempt{endpoint: e, at: b.now, status: 200, class: "success", decision: "accepted", reason: "accepted"})
		}},
		"a later success of the lane": {"it accepted a later attempt", func(b *bundle, e string) { b.succeed(e) }},
		"deleted":                     {"its endpoint was deleted", func(b *bundle, e string) { b.exec(`update endpoints set deleted_at = now() where id = $1`, e) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e := b.newEndpoint("https://api.lumen.example/")
			b.record(attempt{endpoint: e, at: b.now.Add(-time.Hour), status: 200, class: "success", decision: "accepted", reason: "accepted"})
			b.refuse(e, 401, b.now)
			b.look()
			if a := b.one(ReceiverRefuses); a.State != StateOpen {
				t.Fatalf("with an earlier success alone the alert is %s", a.State)
			}
			b.now = b.now.Add(time.Minute)
			tc.change(b, e)
			b.look()
			b.resolvedItself(ReceiverRefuses, tc.why)
		})
	}
}

func TestRefused_NotWhenAcceptedBeforeTheScan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://api.lumen.example/")
	b.refuse(e, 401, b.now.Add(-time.Minute))
	b.record(attempt{endpoint: e, at: b.now, status: 204, class: "success", decision: "accepted", reason: "accepted"})
	b.look()
	b.none(ReceiverRefuses)
}

func TestRefused_ResolvedByHandComesBackWithTheNextAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://api.lumen.example/")
	b.refuse(e, 401, b.now)
	b.look()
	b.resolveByHand(b.one(ReceiverRefuses))
	b.look()
	b.one(ReceiverRefuses)
	b.refuse(e, 401, b.now.Add(time.Second))
	b.look()
	if all := b.all(ReceiverRefuses); len(all) != 2 || all[1].State != StateOpen || all[1].Count != 1 {
		t.Errorf("the alerts are %+v, want a second, open, with 1", all)
	}
}
