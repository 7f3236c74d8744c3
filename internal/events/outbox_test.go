package events

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestOutboxStats_CountsWhatWaitsAndHowLong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	empty, err := OutboxStats(b.ctx, b.pool)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Outbox{}, empty); diff != "" {
		t.Errorf("an empty outbox (-want +got):\n%s", diff)
	}

	for _, id := range []string{"done", "old", "new", "failed", "poisoned"} {
		b.publish(t, id)
	}
	at := time.Now().UTC().Add(-10 * time.Minute).Truncate(time.Microsecond)
	b.exec(t, `update event_outbox set fanned_out_at = now() where event_id = 'done'`)
	b.exec(t, `update event_outbox set published_at = $1 where event_id = 'old'`, at)
	b.exec(t, `update event_outbox set relay_failures = 1, relay_after = now() where event_id = 'failed'`)
	b.exec(t, `update event_outbox set relay_failures = 5, poisoned_at = now() where event_id = 'poisoned'`)
	got, err := OutboxStats(b.ctx, b.pool)
	if err != nil {
		t.Fatal(err)
	}
	want := Outbox{Waiting: 3, Failing: 1, OldestAt: at, Age: 10 * time.Minute, Poisoned: 1}
	near := cmpopts.EquateApproxTime(0)
	if diff := cmp.Diff(want, got, near, cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < time.Minute })); diff != "" {
		t.Errorf("outbox (-want +got):\n%s", diff)
	}
}

func TestOutboxStats_BoundsItsCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `insert into events (project_id, id, type, data)
		select $1, 'event_' || n, 'order.created', '1' from generate_series(1, $2) n`, b.project, OutboxLimit+100)
	got, err := OutboxStats(b.ctx, b.pool)
	if err != nil {
		t.Fatal(err)
	}
	if got.Waiting != OutboxLimit {
		t.Errorf("waiting %d, want the bound %d", got.Waiting, OutboxLimit)
	}
}
