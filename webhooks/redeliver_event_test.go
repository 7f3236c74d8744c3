package webhooks_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/jobs"
	"entrega/webhooks"
)

func TestRedeliverEvent_ToAllOrToNamed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good, bad := b.receiver(), b.receiver()
	bad.answers(status(400))
	worked := b.create(webhooks.Settings{URL: good.url}).Endpoint.ID
	refused := b.create(webhooks.Settings{URL: bad.url}).Endpoint.ID
	other := b.create(webhooks.Settings{URL: good.url, EventTypes: []string{"other.type"}}).Endpoint.ID
	off := b.create(webhooks.Settings{URL: good.url}).Endpoint.ID
	if _, err := b.endpoints.Disable(b.ctx, b.owner, off, ""); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.publish("order-1")
	first := b.reach(b.delivery("order-1", worked).ID, jobs.StateCompleted, 1)
	second := b.reach(b.delivery("order-1", refused).ID, jobs.StateDiscarded, 1)

	bad.answers(nil)
	got, err := b.endpoints.RedeliverEvent(b.ctx, b.owner, "order-1")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.TaskIDs) != 2 || got.TaskIDs[0] == first.ID || got.TaskIDs[1] != second.ID {
		t.Errorf("tasks %v: want a new one for %d and %d again", got.TaskIDs, first.ID, second.ID)
	}
	if diff := cmp.Diff([]events.SkippedEndpoint{{ID: off, Reason: "endpoint_disabled"}}, got.Skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	b.reach(got.TaskIDs[0], jobs.StateCompleted, 1)
	b.reach(second.ID, jobs.StateCompleted, 2)

	named, err := b.endpoints.RedeliverEvent(b.ctx, b.owner, "order-1", other)
	if err != nil || len(named.TaskIDs) != 1 {
		t.Fatalf("to a named endpoint of other types: %+v, %v", named, err)
	}
	b.reach(named.TaskIDs[0], jobs.StateCompleted, 1)
	_, err = b.endpoints.RedeliverEvent(b.ctx, b.owner, "order-1", off)
	wantConflict(t, err, webhooks.CodeEndpointDisabled)
	for _, args := range [][]string{{"order-1", "endpoint_unknown"}, {"order-9"}} {
		if _, err := b.endpoints.RedeliverEvent(b.ctx, b.owner, args[0], args[1:]...); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%v: %v, want not found", args, err)
		}
	}
}

func TestSendTest_IsARealEventForOneEndpointTriedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r, bystander := b.receiver(), b.receiver()
	e := b.create(webhooks.Settings{URL: r.url, EventTypes: []string{"order.created"}})
	b.create(webhooks.Settings{URL: bystander.url})
	b.start()
	if _, err := b.endpoints.Pause(b.ctx, b.owner, e.Endpoint.ID); err != nil {
		t.Fatal(err)
	}
	test, err := b.endpoints.SendTest(b.ctx, b.owner, e.Endpoint.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.reach(test.TaskID, jobs.StateCompleted, 1)
	req := r.got()[0]
	wantVerified(t, e.Secret, req)
	if !strings.Contains(req.Body, `{"type":"entrega.test",`) || req.id() != test.EventID {
		t.Errorf("received %s: %s", req.id(), req.Body)
	}
	if rec := b.records(test.TaskID)[0]; rec.Trigger != jobs.TriggerTest {
		t.Errorf("the trigger is %s", rec.Trigger)
	}

	r.answers(status(500))
	failed, err := b.endpoints.SendTest(b.ctx, b.owner, e.Endpoint.ID)
	if err != nil {
		t.Fatal(err)
	}
	if task := b.reach(failed.TaskID, jobs.StateDiscarded, 1); task.Reason != webhooks.ReasonTestFailed {
		t.Errorf("a failed test reads %q", task.Reason)
	}
	count, err := b.endpoints.Redeliver(b.ctx, b.owner, e.Endpoint.ID, webhooks.RedeliverRequest{DryRun: true})
	if err != nil || count.Total() != 0 {
		t.Errorf("a redelivery would send tests again: %+v, %v", count, err)
	}
	if _, err := b.endpoints.Disable(b.ctx, b.owner, e.Endpoint.ID, ""); err != nil {
		t.Fatal(err)
	}
	_, err = b.endpoints.SendTest(b.ctx, b.owner, e.Endpoint.ID)
	wantConflict(t, err, webhooks.CodeEndpointDisabled)
	if _, err := b.relay.Sweep(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.settled()
	if n := bystander.count(); n != 0 {
		t.Errorf("another endpoint got the test %d times", n)
	}
}

func TestRedeliverEvent_LeavesADeliveryThatRunsAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	release := r.hangs(200)
	id := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	b.start()
	b.publish("order-1")
	b.await("the request", func() bool { return r.count() == 1 })
	got, err := b.endpoints.RedeliverEvent(b.ctx, b.owner, "order-1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]events.SkippedEndpoint{{ID: id, Reason: "already_queued"}}, got.Skipped); diff != "" || len(got.TaskIDs) > 0 {
		t.Errorf("tasks %v; skipped (-want +got):\n%s", got.TaskIDs, diff)
	}
	release()
	b.reach(b.delivery("order-1", id).ID, jobs.StateCompleted, 1)
}
