package webhooks_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/events"
	"entrega/jobs"
	"entrega/webhooks"
)

// settled waits until no delivery is under way or due.
func (b *bundle) settled() {
	b.t.Helper()
	b.await("all deliveries to rest", func() bool {
		return value[int](b, `select count(*) from river_job
			where kind in ('webhook.deliver', 'webhook.fanout') and (state = 'running' or state = 'available' and scheduled_at <= now())`) == 0
	})
}

// states counts the deliveries of an endpoint by River's state.
func (b *bundle) states(endpointID string) map[string]int {
	b.t.Helper()
	rows, err := b.pool.Query(b.ctx, `select state::text, count(*) from river_job where endpoint_id = $1 group by 1`, endpointID)
	if err != nil {
		b.t.Fatal(err)
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var state string
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			b.t.Fatal(err)
		}
		counts[state] = n
	}
	return counts
}

func names(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s-%04d", prefix, i+1)
	}
	return all
}

func TestHealth_FailuresInARowDisableAndRedeliverBringsAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(status(500))
	e := b.create(webhooks.Settings{URL: r.url, Profile: "compact"})
	n := b.start()
	queued := names("queued", 25)
	b.publish(queued...)
	b.settled()
	for b.endpoint(e.Endpoint.ID).DisabledAt == nil {
		if r.count() > 20 {
			t.Fatalf("%d failures and the endpoint is not disabled", r.count())
		}
		b.allDue()
		b.settled()
	}
	got := b.endpoint(e.Endpoint.ID)
	if r.count() != 20 || got.FailuresInARow != 20 || got.DisabledReason != webhooks.DisabledFailuresInARow {
		t.Errorf("disabled after %d requests for %s with %d failures in a row: %s", r.count(), got.DisabledReason, got.FailuresInARow, got.DisabledDetail)
	}

	missed := names("missed", 2)
	b.publish(missed...)
	b.settled()
	ev, err := events.EventByID(b.ctx, b.pool, b.project, missed[0])
	if err != nil {
		t.Fatal(err)
	}
	wantSkipped := events.Skipped{Counts: map[string]int{"endpoint_disabled": 1}, Endpoints: []events.SkippedEndpoint{{ID: e.Endpoint.ID, Reason: "endpoint_disabled"}}}
	if diff := cmp.Diff(wantSkipped, ev.Skipped); diff != "" || ev.Deliveries != 0 {
		t.Errorf("%d deliveries; skipped (-want +got):\n%s", ev.Deliveries, diff)
	}

	b.await("every queued delivery to be cancelled in its turn", func() bool {
		b.allDue()
		n.deliverer.Sweep(b.ctx)
		return b.states(e.Endpoint.ID)["cancelled"] == len(queued)
	})
	if r.count() != 20 {
		t.Errorf("%d requests; the disabled endpoint was called", r.count())
	}
	last := b.delivery(queued[24], e.Endpoint.ID)
	if last.Reason != jobs.ReasonEndpointDisabled {
		t.Errorf("a cancelled delivery reads %q", last.Reason)
	}
	_, err = b.client.Retry(b.ctx, b.owner, b.project, last.ID)
	wantConflict(t, err, webhooks.CodeEndpointDisabled)
	_, err = b.endpoints.Redeliver(b.ctx, b.owner, e.Endpoint.ID, webhooks.RedeliverRequest{})
	wantConflict(t, err, webhooks.CodeEndpointDisabled)

	r.answers(status(200))
	reactivated, err := b.endpoints.Reactivate(b.ctx, b.owner, e.Endpoint.ID, "mended")
	if err != nil {
		t.Fatal(err)
	}
	if reactivated.State() != webhooks.StateHealthy || reactivated.FailuresInARow != 0 {
		t.Errorf("after reactivation: %s, %d failures in a row", reactivated.State(), reactivated.FailuresInARow)
	}
	count, err := b.endpoints.Redeliver(b.ctx, b.owner, e.Endpoint.ID, webhooks.RedeliverRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if count.Deliveries != 25 || count.Missed != 2 || count.BulkID == "" {
		t.Errorf("redeliver counts %+v", count)
	}
	b.await("all events to be delivered", func() bool { return b.states(e.Endpoint.ID)["completed"] == 27 })
	seen := map[string]int{}
	for _, id := range r.ids()[20:] {
		seen[id]++
	}
	for _, id := range append(queued, missed...) {
		if seen[id] != 1 {
			t.Errorf("%s was sent %d times after the redelivery", id, seen[id])
		}
	}
	b.await("the bulk action to be completed", func() bool {
		bulk, err := jobs.BulkByID(b.ctx, b.pool, b.project, count.BulkID)
		return err == nil && bulk.State == jobs.BulkCompleted && bulk.Done == 27
	})
}

func TestHealth_SuccessSetsTheCountToZero(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(inTurn(500, 500, 500))
	e := b.create(webhooks.Settings{URL: r.url, Profile: "compact"})
	b.start()
	b.publish("order-1")
	id := b.delivery("order-1", e.Endpoint.ID).ID
	for n := 1; n <= 3; n++ {
		b.reach(id, jobs.StateRetryable, n)
		got := b.endpoint(e.Endpoint.ID)
		first := b.records(id)[0].StartedAt
		if got.FailuresInARow != n || got.FailingSince == nil || !got.FailingSince.Equal(first) {
			t.Errorf("after failure %d: %d in a row since %v, want since %s", n, got.FailuresInARow, got.FailingSince, first)
		}
		b.due(id)
	}
	b.reach(id, jobs.StateCompleted, 4)
	got := b.endpoint(e.Endpoint.ID)
	if got.FailuresInARow != 0 || got.FailingSince != nil || got.State() != webhooks.StateHealthy {
		t.Errorf("after a success: %d in a row since %v", got.FailuresInARow, got.FailingSince)
	}
}

func TestHealth_FiveDaysOfFailureDisable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(status(503))
	e := b.create(webhooks.Settings{URL: r.url})
	b.start()
	b.publish("order-1")
	id := b.delivery("order-1", e.Endpoint.ID).ID
	b.reach(id, jobs.StateRetryable, 1)
	b.exec(`update endpoint_lanes set failing_since = now() - interval '119 hours' where endpoint_id = $1`, e.Endpoint.ID)
	b.due(id)
	b.reach(id, jobs.StateRetryable, 2)
	if got := b.endpoint(e.Endpoint.ID); got.DisabledAt != nil {
		t.Fatalf("disabled an hour too early: %s", got.DisabledDetail)
	}
	b.exec(`update endpoint_lanes set failing_since = now() - interval '120 hours' where endpoint_id = $1`, e.Endpoint.ID)
	b.due(id)
	b.reach(id, jobs.StateRetryable, 3)
	if got := b.endpoint(e.Endpoint.ID); got.DisabledReason != webhooks.DisabledFailing {
		t.Errorf("the endpoint is %s %s", got.State(), got.DisabledReason)
	}
	b.due(id)
	b.await("the delivery to be discarded", func() bool { return b.task(id).State == jobs.StateDiscarded })
	task := b.task(id)
	records := b.records(id)
	if last := records[len(records)-1]; task.Reason != jobs.ReasonEndpointDisabled || last.Charged || r.count() != 3 {
		t.Errorf("reason %q, charged %t, %d requests", task.Reason, last.Charged, r.count())
	}
}

func TestHealth_NewDeliveriesCoolDownWhileFailingAndGoOnAfterTheFirstSuccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(status(500))
	e := b.create(webhooks.Settings{URL: r.url})
	b.start()
	b.publish("order-1")
	first := b.delivery("order-1", e.Endpoint.ID).ID
	b.reach(first, jobs.StateRetryable, 1)

	later := names("later", webhooks.LaneWindow+4)
	b.publish(later...)
	b.settled()
	const cooling = `select count(*) from river_job where endpoint_id = $1 and state = 'scheduled'
		and scheduled_at between now() + interval '4 minutes' and now() + interval '5 minutes'`
	if n := value[int](b, cooling, e.Endpoint.ID); n != webhooks.LaneWindow-1 {
		t.Errorf("%d deliveries cool down, want the window's %d but for the one that failed; %v", n, webhooks.LaneWindow, b.states(e.Endpoint.ID))
	}
	if n := r.count(); n != 1 {
		t.Errorf("%d requests while the endpoint cools down, want 1", n)
	}

	r.answers(nil)
	b.due(first)
	b.await("everything to be delivered", func() bool { return b.states(e.Endpoint.ID)["completed"] == len(later)+1 })
	if diff := cmp.Diff(append(later, "order-1", "order-1"), slices.Sorted(slices.Values(r.ids()))); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
}

func TestHealth_OneProbeAtATimeWhileFailing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	release := r.hangs(500)
	e := b.create(webhooks.Settings{URL: r.url, MaxInFlight: 8})
	b.exec(`update endpoint_lanes set failing_since = now(), failures_in_a_row = 1, last_failure_at = now() where endpoint_id = $1`, e.Endpoint.ID)
	b.start()
	b.publish(names("order", 6)...)
	b.settled()
	b.allDue()
	b.await("all to be waiting in the lane", func() bool { return b.states(e.Endpoint.ID)["running"] == 6 && r.count() > 0 })
	if n := r.count(); n != 1 {
		t.Errorf("%d requests to a failing endpoint, want 1", n)
	}
	release()
	b.settled()
	if n := r.mostAtOnce(); n != 1 {
		t.Errorf("%d requests at once to a failing endpoint, want 1", n)
	}
}

func TestDisable_EndsWhatWaitsForAFailingEndpointToRecover(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	b.startNode("node_a", 20)
	b.exec(`update endpoint_lanes set failing_since = now(), failures_in_a_row = 1, last_failure_at = now() where endpoint_id = $1`, e)
	b.publish(names("order", 3)...)
	b.await("the deliveries to wait for the endpoint to recover", func() bool { return b.states(e)["scheduled"] == 3 })
	if _, err := b.endpoints.Disable(b.ctx, b.owner, e, "test"); err != nil {
		t.Fatal(err)
	}
	b.await("them to end", func() bool { return b.states(e)["discarded"] == 3 })
	if n := r.count(); n != 0 {
		t.Errorf("%d requests to a disabled endpoint", n)
	}
}
