package webhooks_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/jobs"
	"entrega/webhooks"

	"github.com/jackc/pgx/v5"
)

// event reads an event once its fan-out is done.
func (b *bundle) considered(id string) events.Event {
	b.t.Helper()
	var ev events.Event
	b.await("the fan-out of "+id, func() bool {
		var err error
		if ev, err = events.EventByID(b.ctx, b.pool, b.project, id); err != nil {
			b.t.Fatal(err)
		}
		return !ev.ConsideredAt.IsZero()
	})
	return ev
}

func TestFanout_GoesByTypeAndSubscriberAndSaysWhyNot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	all := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	paid := b.create(webhooks.Settings{URL: r.url, EventTypes: []string{"order.paid", "order.sent"}}).Endpoint.ID
	acme := b.create(webhooks.Settings{URL: r.url, Subscriber: "acme"}).Endpoint.ID
	globex := b.create(webhooks.Settings{URL: r.url, Subscriber: "globex", EventTypes: []string{"order.paid"}}).Endpoint.ID
	off := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	offOther := b.create(webhooks.Settings{URL: r.url, EventTypes: []string{"other.type"}}).Endpoint.ID
	gone := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	for _, id := range []string{off, offOther} {
		if _, err := b.endpoints.Disable(b.ctx, b.owner, id, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.endpoints.DeleteEndpoint(b.ctx, b.owner, gone); err != nil {
		t.Fatal(err)
	}
	b.start()

	const typ, other, disabled = "type_not_subscribed", "other_subscriber", "endpoint_disabled"
	for _, tt := range []struct {
		event   events.New
		to      []string
		skipped map[string]string
	}{
		{events.New{ID: "general", Type: "order.paid", Data: []byte("1")}, []string{all, paid},
			map[string]string{acme: other, globex: other, off: disabled, offOther: typ}},
		{events.New{ID: "for-acme", Type: "order.created", Subscriber: "acme", Data: []byte("1")}, []string{all, acme},
			map[string]string{paid: typ, globex: typ, off: disabled, offOther: typ}},
		{events.New{ID: "for-globex", Type: "order.paid", Subscriber: "globex", Data: []byte("1")}, []string{all, paid, globex},
			map[string]string{acme: other, off: disabled, offOther: typ}},
	} {
		b.publishEvent(tt.event)
		ev := b.considered(tt.event.ID)
		var to []string
		rows, err := b.pool.Query(b.ctx, `select endpoint_id from river_job where kind = 'webhook.deliver' and event_id = $1 order by id`, tt.event.ID)
		if err == nil {
			to, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.to, to); diff != "" || ev.Deliveries != len(tt.to) {
			t.Errorf("%s has %d deliveries, to (-want +got):\n%s", tt.event.ID, ev.Deliveries, diff)
		}
		skipped := map[string]string{}
		for _, s := range ev.Skipped.Endpoints {
			skipped[s.ID] = s.Reason
		}
		if diff := cmp.Diff(tt.skipped, skipped); diff != "" {
			t.Errorf("%s skips (-want +got):\n%s", tt.event.ID, diff)
		}
		if ev.Skipped.Endpoints[0].ID != off {
			t.Errorf("%s: the endpoint that missed it is not the first in the list", tt.event.ID)
		}
	}
	if got := value[int](b, `select count(*) from missed_events where endpoint_id = $1`, off); got != 3 {
		t.Errorf("%d missed events, want 3", got)
	}
	if got := value[int](b, `select count(*) from missed_events where endpoint_id <> $1`, off); got != 0 {
		t.Errorf("%d events were missed by endpoints that would not have got them", got)
	}
}

func TestFanout_TwiceDeliversOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	e := b.create(webhooks.Settings{URL: r.url})
	b.start()
	b.publish("order-1", "order-2")
	b.considered("order-1")
	err := store.InTx(b.ctx, b.pool, func(tx pgx.Tx) error {
		_, err := jobs.InsertTx(b.ctx, b.client, tx, events.Fanout, events.FanoutArgs{ProjectID: b.project, EventIDs: []string{"order-1", "order-2"}},
			jobs.Insert{ProjectID: b.project})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.await("both fan-outs", func() bool {
		return value[int](b, `select count(*) from river_job where kind = 'webhook.fanout' and state = 'completed'`) == 2
	})
	b.settled()
	if diff := cmp.Diff([]string{"order-1", "order-2"}, r.ids(), cmpopts.SortSlices(func(x, y string) bool { return x < y })); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	if n := b.states(e.Endpoint.ID)["completed"]; n != 2 {
		t.Errorf("%d deliveries, want 2", n)
	}
}

func TestFanout_TakesAllThatIsHandedOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(webhooks.Settings{URL: b.receiver().url})
	b.publish("order-1", "order-2", "order-3")
	b.exec(`update river_job set args = jsonb_set(args, '{eventIds}', '["order-2"]') where kind = 'webhook.fanout'`)
	b.start()
	for _, id := range []string{"order-1", "order-2", "order-3"} {
		b.considered(id)
	}
}

func TestFanout_EndsWithItsOwnThoughMoreCame(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(webhooks.Settings{URL: b.receiver().url})
	b.publish(names("order", 250)...)
	b.exec(`delete from river_job where kind = 'webhook.fanout' and id <> (select min(id) from river_job where kind = 'webhook.fanout')`)
	b.start()
	b.await("the first fan-out", func() bool {
		return value[int](b, `select count(*) from river_job where kind = 'webhook.fanout' and state = 'completed'`) == 1
	})
	if n := value[int](b, `select count(*) from event_outcomes`); n != 200 {
		t.Errorf("%d events are considered, want 200: its own 100 and as many as fit behind them", n)
	}
}

func TestFanout_ManyEventsPassTheGateAndOneAsksForRoom(t *testing.T) {
	t.Parallel()
	const many = 16
	b := setup(t)
	b.create(webhooks.Settings{URL: b.receiver().url})
	full := []func(){b.gate.Enter(b.ctx, many), b.gate.Enter(b.ctx, many)}
	b.publish(names("order", many)...)
	start := time.Now()
	b.start()
	b.considered(fmt.Sprintf("order-%04d", many))
	if took := time.Since(start); took < 250*time.Millisecond {
		t.Errorf("%d events were considered in %s, past a full gate", many, took)
	}
	for _, leave := range full {
		leave()
	}
	if b.gate.Courteous() {
		t.Error("many events ask for room as if one had come alone")
	}
	n := 0
	b.await("an event that came alone to ask for room", func() bool { // A busy machine may look only when that is over.
		n++
		id := fmt.Sprintf("alone-%d", n)
		b.publish(id)
		b.considered(id)
		return b.gate.Courteous()
	})
}

func TestFanout_ExpiredEventGetsNoDelivery(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create(webhooks.Settings{URL: anywhere})
	b.publishEvent(events.New{ID: "order-1", Type: "order.created", Data: []byte("1"), ExpiresAt: time.Now().Add(time.Hour)})
	b.exec(`update events set expires_at = now() - interval '1 second'`)
	b.start()
	ev := b.considered("order-1")
	if ev.Deliveries != 0 || ev.Skipped.Counts["event_expired"] != 1 {
		t.Errorf("%d deliveries, skipped %v", ev.Deliveries, ev.Skipped.Counts)
	}
}

func TestFanout_ListOfSkippedIsCutAndTheCountsAreWhole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`
		with made as (
			insert into endpoints (id, project_id, url, event_types)
			select 'endpoint_' || i, $1, 'https://example.com/', '{other.type}' from generate_series(1, 205) i returning id, project_id
		)
		insert into endpoint_lanes (endpoint_id, project_id) select id, project_id from made`, b.project)
	b.start()
	b.publish("order-1")
	ev := b.considered("order-1")
	if len(ev.Skipped.Endpoints) != 200 || ev.Skipped.Counts["type_not_subscribed"] != 205 {
		t.Errorf("%d listed, counts %v", len(ev.Skipped.Endpoints), ev.Skipped.Counts)
	}
}

func TestFanout_BacklogWaitsInTheTableAndIsDeliveredInFull(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	release := r.hangs(200)
	e := b.create(webhooks.Settings{URL: r.url})
	b.start()
	const n = 3 * webhooks.LaneWindow
	b.publish(names("order", n)...)
	b.considered(fmt.Sprintf("order-%04d", n))
	states := b.states(e.Endpoint.ID)
	// On a busy machine some of the window may have been sent back to the table by now, since the receiver hangs.
	hands := states["available"] + states["running"] + states["scheduled"]
	if hands == 0 || hands > webhooks.LaneWindow || hands+states["pending"] != n {
		t.Errorf("states %v, want at most %d in River's hands and the rest pending", states, webhooks.LaneWindow)
	}
	release()
	b.await("everything to be delivered", func() bool { return b.states(e.Endpoint.ID)["completed"] == n })
	// What the sweep promotes goes to the queue of all nodes.
	if claimed := value[int](b, `select count(*) from river_job where endpoint_id = $1 and queue = $2`, e.Endpoint.ID,
		jobs.NodeQueue(jobs.QueueWebhook, "node_a")); claimed < webhooks.LaneWindow {
		t.Errorf("%d were claimed by the node: the lane did not ask for more as it drained", claimed)
	}
	if got := r.count(); got != n {
		t.Errorf("%d requests, want %d", got, n)
	}
}
