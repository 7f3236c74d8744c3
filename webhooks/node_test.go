package webhooks_test

import (
	"fmt"
	"testing"
	"time"

	"entrega/jobs"
	"entrega/webhooks"
)

func TestNodes_OneWorksALaneAndTheOtherTakesItOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	first := b.startNode("node_a", 20)
	b.startNode("node_b", 20)
	b.publish(names("order", 60)...)
	b.await("all to be delivered", func() bool {
		b.allDue() // Those that the wrong node fetched come back later.
		return b.states(e)["completed"] == 60
	})
	if n := r.mostAtOnce(); n != 1 {
		t.Errorf("%d requests at once from two nodes in a lane 1 wide", n)
	}
	if n := r.count(); n != 60 {
		t.Errorf("%d requests for 60 deliveries", n)
	}
	first.stop()
	b.publish("after")
	b.await("the other node to go on", func() bool {
		b.allDue()
		return b.states(e)["completed"] == 61
	})
}

func TestNodes_ADeadHoldersLeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	b.exec(`update endpoint_lanes set holder = 'node_gone', busy_until = now() + interval '30 seconds' where endpoint_id = $1`, e)
	b.start()
	b.publish("order-1")
	b.reach(b.delivery("order-1", e).ID, jobs.StateCompleted, 1)
}

func TestNodes_ALiveHoldersLeaseIsRespected(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	if _, err := b.endpoints.Pause(b.ctx, b.owner, e); err != nil {
		t.Fatal(err)
	}
	n := b.start()
	b.publish("order-1")
	id := b.delivery("order-1", e).ID
	b.exec(`insert into nodes (id, host, version, seen_at) values ('node_live', 'h', '1', now() + interval '1 hour')`)
	b.exec(`update endpoint_lanes set holder = 'node_live', busy_until = now() + interval '1 hour' where endpoint_id = $1`, e)
	b.exec(`update endpoints set paused_at = null where id = $1`, e)
	n.deliverer.Sweep(b.ctx)
	if state := b.states(e)["pending"]; state != 1 {
		t.Errorf("a node promoted for a lane that another holds: %v", b.states(e))
	}
	b.exec(`update river_job set state = 'available', queue = $2 where id = $1`, id, jobs.NodeQueue(jobs.QueueWebhook, "node_a"))
	b.await("the delivery to be put off", func() bool { return b.task(id).Reason == "lane_elsewhere" })
	const queue = `select queue from river_job where id = $1`
	if got, want := value[string](b, queue, id), jobs.NodeQueue(jobs.QueueWebhook, "node_live"); got != want {
		t.Errorf("the delivery is in the queue %s, want %s", got, want)
	}
	b.publish("order-2")
	second := b.delivery("order-2", e).ID
	if got := value[string](b, queue, second); got != jobs.NodeQueue(jobs.QueueWebhook, "node_live") {
		t.Errorf("a new delivery is in the queue %s, want the holder's at once", got)
	}
	if n, attempts := r.count(), len(b.records(id)); n != 0 || attempts != 0 {
		t.Errorf("%d requests and %d ledger rows", n, attempts)
	}
	b.exec(`delete from nodes where id = 'node_live'`)
	n.deliverer.Sweep(b.ctx)
	b.await("the deliveries to be made", func() bool { b.allDue(); return b.states(e)["completed"] == 2 })
	if task := b.task(id); task.Attempt != 1 {
		t.Errorf("the wait for another node's lane spent attempts: %d", task.Attempt)
	}
	if got := r.ids(); len(got) != 2 {
		t.Errorf("arrived %v", got)
	}
}

func TestStop_LetsWhatIsUnderWayFinishAndFreesTheLanes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	release := r.hangs(200)
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	n := b.start()
	b.publish("order-1", "order-2")
	b.await("an attempt to be under way", func() bool { return r.count() == 1 && b.states(e)["running"] == 2 })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.stop()
	}()
	release()
	<-stopped
	holder := value[string](b, `select coalesce(holder, 'nobody') from endpoint_lanes where endpoint_id = $1`, e)
	if holder != "nobody" {
		t.Errorf("%s still holds the lane", holder)
	}
	if got := len(r.got()); got != b.states(e)["completed"] {
		t.Errorf("%d requests and states %v", got, b.states(e))
	}
	b.start()
	b.await("the rest to be delivered", func() bool { b.allDue(); return b.states(e)["completed"] == 2 })
	if got := r.count(); got != 2 {
		t.Errorf("%d requests for two deliveries", got)
	}
}

func TestPause_ByAPersonHoldsDeliveriesBackWithoutSpendingAttempts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(inTurn(500))
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	b.start()
	b.publish("order-1")
	id := b.delivery("order-1", e).ID
	b.reach(id, jobs.StateRetryable, 1)
	paused, err := b.endpoints.Pause(b.ctx, b.owner, e)
	if err != nil || paused.State() != webhooks.StatePaused {
		t.Fatalf("%s, %v", paused.State(), err)
	}
	b.due(id)
	b.await("the delivery to be put off", func() bool { return b.task(id).Reason == "endpoint_paused_by_person" })
	b.publish("order-2")
	b.considered("order-2")
	b.settled()
	if n := r.count(); n != 1 {
		t.Errorf("%d requests while paused, want the one before", n)
	}
	if _, err := b.endpoints.Unpause(b.ctx, b.owner, e); err != nil {
		t.Fatal(err)
	}
	b.reach(id, jobs.StateCompleted, 2)
	b.await("what was published meanwhile", func() bool { return b.states(e)["completed"] == 2 })
}

func TestCancel_UnderWayEndsTheTaskAndTheLaneGoesOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.hangs(200)
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	b.start()
	b.publish("order-1")
	id := b.delivery("order-1", e).ID
	b.await("the attempt to be under way", func() bool { return r.count() == 1 })
	if _, err := b.client.Cancel(b.ctx, b.owner, b.project, id); err != nil {
		t.Fatal(err)
	}
	b.await("the task to be cancelled", func() bool { return b.task(id).State == jobs.StateCancelled })
	rec := b.records(id)[0]
	if rec.Decision != jobs.VerdictCancelled || rec.Reason != jobs.ReasonCancelled {
		t.Errorf("decision %s, reason %s", rec.Decision, rec.Reason)
	}
	if got := b.endpoint(e); got.State() != webhooks.StateHealthy {
		t.Errorf("a person's cancel left the endpoint %s", got.State())
	}
	r.answers(nil)
	b.publish("order-2")
	b.reach(b.delivery("order-2", e).ID, jobs.StateCompleted, 1)
}

func TestDelete_EndsWhatWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	release := r.hangs(200)
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	b.start()
	const n = 3 * webhooks.LaneWindow
	b.publish(names("order", n)...)
	b.await("the first attempt to be under way", func() bool { return r.count() == 1 })
	b.considered(fmt.Sprintf("order-%04d", n))
	if err := b.endpoints.DeleteEndpoint(b.ctx, b.owner, e); err != nil {
		t.Fatal(err)
	}
	release()
	b.await("all to end", func() bool { return b.states(e)["discarded"] == n-1 && b.states(e)["completed"] == 1 })
	if got := r.count(); got != 1 {
		t.Errorf("%d requests, want the one that was under way", got)
	}
}

func TestDeliver_SettingsOfTheMomentCount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old, fresh := b.receiver(), b.receiver()
	old.answers(status(500))
	e := b.create(webhooks.Settings{URL: old.url}).Endpoint.ID
	b.start()
	b.publish("order-1")
	id := b.delivery("order-1", e).ID
	b.reach(id, jobs.StateRetryable, 1)
	if _, err := b.endpoints.UpdateEndpoint(b.ctx, b.owner, e, webhooks.Change{URL: &fresh.url}); err != nil {
		t.Fatal(err)
	}
	b.due(id)
	b.reach(id, jobs.StateCompleted, 2)
	if old.count() != 1 || fresh.count() != 1 {
		t.Errorf("%d requests to the former URL and %d to the present one", old.count(), fresh.count())
	}
}

func TestStats_TellHowAnEndpointIsDoing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(inTurn(200, 200, 503))
	e := b.create(webhooks.Settings{URL: r.url, Profile: "compact"}).Endpoint
	b.start()
	for _, id := range []string{"order-1", "order-2"} {
		b.publish(id)
		b.reach(b.delivery(id, e.ID).ID, jobs.StateCompleted, 1)
	}
	b.publish("order-3")
	b.reach(b.delivery("order-3", e.ID).ID, jobs.StateRetryable, 1)
	stats, err := b.endpoints.StatsOf(b.ctx, b.pool, b.endpoint(e.ID), "standard")
	if err != nil {
		t.Fatal(err)
	}
	var strip []int
	for _, a := range stats.Strip {
		strip = append(strip, a.Status)
	}
	if len(strip) != 3 || strip[0] != 200 || strip[2] != 503 {
		t.Errorf("strip %v, want 200 200 503", strip)
	}
	if stats.Answered != 3 || stats.P50 <= 0 || stats.P95 < stats.P50 {
		t.Errorf("%d answered, p50 %s, p95 %s", stats.Answered, stats.P50, stats.P95)
	}
	if stats.Lane.Backlog() != 1 || stats.Lane.Later != 1 || time.Since(stats.Lane.OldestAt) > time.Minute || stats.FailuresLeft != 19 || !stats.DisableAt.IsZero() {
		t.Errorf("%+v", stats)
	}
}
