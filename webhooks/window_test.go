package webhooks_test

import (
	"slices"
	"testing"
	"time"

	"entrega/internal/events"
	"entrega/jobs"
	"entrega/webhooks"
)

// publishMany stores events with one statement and hands them to fan-outs of a few each, which run at once.
func (b *bundle) publishMany(ids ...string) {
	b.t.Helper()
	for part := range slices.Chunk(ids, 100) {
		batch := make([]events.New, len(part))
		for i, id := range part {
			batch[i] = events.New{ID: id, Type: "order.created", Data: []byte(`{"id":"` + id + `"}`)}
		}
		if _, err := events.PublishBatch(b.ctx, b.pool, b.project, batch); err != nil {
			b.t.Fatal(err)
		}
		if _, err := b.relay.Sweep(b.ctx); err != nil {
			b.t.Fatal(err)
		}
	}
}

func TestWindow_IsNeverExceededAndALaneOneWideKeepsTheOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	b.noteWindow()
	b.startNode("node_a", 300)
	b.startNode("node_b", 300)
	const n = 800
	ids := names("order", n)
	b.publishMany(ids...)
	b.await("everything to be delivered", func() bool { return b.states(e)["completed"] == n })
	b.wantWindowKept()
	b.wantInOrder(r, n)
}

// noteWindow has each statement that changes tasks note how many the test's endpoint has in River's hands.
func (b *bundle) noteWindow() {
	b.t.Helper()
	b.exec(`create table test_window (n bigint)`)
	b.exec(`create function test_note_window() returns trigger language plpgsql as $$
		begin
			if pg_trigger_depth() > 1 then
				return null; -- A trigger is about to make room, unseen by anybody.
			end if;
			insert into test_window select count(*) from river_job where endpoint_id is not null and state in ('available', 'running');
			return null;
		end $$`)
	b.exec(`create trigger test_note_window after insert or update on river_job for each statement execute function test_note_window()`)
}

func (b *bundle) wantWindowKept() {
	b.t.Helper()
	if most := value[int](b, `select max(n) from test_window`); most > webhooks.LaneWindow {
		b.t.Errorf("%d deliveries in River's hands, %d are the most", most, webhooks.LaneWindow)
	}
}

// wantInOrder checks that n deliveries came one at a time, once each, in the order of their ids.
func (b *bundle) wantInOrder(r *receiver, n int) {
	b.t.Helper()
	got := r.ids()
	if len(got) != n {
		b.t.Errorf("%d requests for %d deliveries", len(got), n)
	}
	for i := range got {
		if i > 0 && got[i] < got[i-1] {
			b.t.Errorf("%s arrived after %s", got[i], got[i-1])
		}
	}
	if most := r.mostAtOnce(); most != 1 {
		b.t.Errorf("%d requests at once", most)
	}
}

func TestWindow_IsKeptWhenVeryManyRetriesFallDueAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	if _, err := b.endpoints.Pause(b.ctx, b.owner, e); err != nil {
		t.Fatal(err)
	}
	b.startNode("node_a", 300)
	const n = 700
	b.publishMany(names("order", n)...)
	b.await("all to wait in the table", func() bool { return b.states(e)["pending"] == n })
	b.exec(`update river_job set state = 'retryable', scheduled_at = now() + interval '1 hour', metadata = metadata || '{"outcome": "retry"}' where endpoint_id = $1`, e)
	b.exec(`update endpoints set paused_at = null where id = $1`, e)
	b.noteWindow()
	// As River's scheduler does, but the last ones first.
	b.exec(`update river_job set state = 'available', scheduled_at = now() from (select id from river_job where endpoint_id = $1 order by id desc) as due where river_job.id = due.id`, e)
	b.await("everything to be delivered", func() bool { return b.states(e)["completed"] == n })
	b.wantWindowKept()
	b.wantInOrder(r, n)
}

func TestWindow_ARetryOfBeforeTakesThePlaceOfTheLastInAFullWindow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.create(webhooks.Settings{URL: anywhere}).Endpoint.ID
	b.exec(`insert into river_job (kind, queue, max_attempts, args, state, metadata)
		select 'webhook.deliver', 'webhook', 10, '{}', case n when 1 then 'retryable' else 'available' end::river_job_state,
		       jsonb_build_object('project_id', $1::text, 'endpoint_id', $2::text, 'n', n) from generate_series(1, $3::int) n order by n`,
		b.project, e, webhooks.LaneWindow+1)
	b.exec(`update river_job set state = 'available' where endpoint_id = $1 and state = 'retryable'`, e)
	if s := b.states(e); s["available"] != webhooks.LaneWindow || s["pending"] != 1 {
		t.Errorf("states %v, want a full window and one that waits", s)
	}
	if n := value[int](b, `select (metadata ->> 'n')::int from river_job where endpoint_id = $1 and state = 'pending'`, e); n != webhooks.LaneWindow+1 {
		t.Errorf("number %d waits, want the last", n)
	}
}

func TestWindow_WhatLackedAWorkerIsPromotedThoughNobodyHoldsTheLane(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	release := r.hangs(200)
	e := b.create(webhooks.Settings{URL: r.url, TimeoutSeconds: 30}).Endpoint.ID
	n := b.startNodeWith("node_a", 20, 5)
	b.publish(names("order", 20)...)
	b.await("those without a worker to wait in the table", func() bool { return b.states(e)["pending"] >= 14 })
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.stop()
	}()
	release()
	<-stopped
	other := b.startNodeWith("node_b", 20, 100)
	other.deliverer.Sweep(b.ctx)
	b.await("everything to be delivered", func() bool { return b.states(e)["completed"] == 20 })
	b.wantInOrder(r, 20)
}

func TestWindow_WhatADeadHolderLeftIsPromotedAndTakenOver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	if _, err := b.endpoints.Pause(b.ctx, b.owner, e); err != nil {
		t.Fatal(err)
	}
	n := b.startNode("node_b", 20)
	b.publishMany(names("order", 40)...)
	b.await("all to wait in the table", func() bool { return b.states(e)["pending"] == 40 })
	b.exec(`update endpoint_lanes set holder = 'node_gone', busy_until = now() + interval '30 seconds' where endpoint_id = $1`, e)
	b.exec(`update river_job set state = 'available', queue = $1 where id in (select id from river_job where endpoint_id = $2 order by id limit 10)`,
		jobs.NodeQueue(jobs.QueueWebhook, "node_gone"), e)
	b.exec(`update endpoints set paused_at = null where id = $1`, e)
	n.deliverer.Sweep(b.ctx)
	b.await("everything to be delivered", func() bool { return b.states(e)["completed"] == 40 })
	if got := r.count(); got != 40 {
		t.Errorf("%d requests for 40 deliveries", got)
	}
}

func TestChange_HoldsForEveryRequestAfterItsAnswer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	created := b.create(webhooks.Settings{URL: r.url, MaxInFlight: 4, RatePerSecond: 150})
	e := created.Endpoint.ID
	b.startNode("node_a", 50)
	ids := names("order", 900)
	b.publishMany(ids...)
	b.await("deliveries to be under way", func() bool { return r.count() > 20 })
	secret, err := b.endpoints.RotateSecret(b.ctx, b.owner, e, webhooks.Rotation{OverlapHours: new(int)})
	if err != nil {
		t.Fatal(err)
	}
	rotated := time.Now()
	b.await("more deliveries", func() bool {
		all := r.got()
		return all[len(all)-1].At.After(rotated.Add(2 * sendTime))
	})
	if _, err := b.endpoints.Disable(b.ctx, b.owner, e, "test"); err != nil {
		t.Fatal(err)
	}
	disabled := time.Now()
	b.considered(ids[len(ids)-1])
	b.await("the rest to end", func() bool {
		s := b.states(e)
		return s["pending"]+s["available"]+s["running"]+s["scheduled"] == 0
	})
	checked := 0
	for _, req := range r.got() {
		switch {
		case req.At.After(disabled.Add(sendTime)):
			t.Errorf("%s arrived %s after the endpoint was disabled", req.id(), req.At.Sub(disabled))
		case req.At.After(rotated.Add(sendTime)):
			wantVerified(t, secret, req)
			checked++
		}
	}
	if checked == 0 || b.states(e)["discarded"] == 0 {
		t.Errorf("%d requests with the new secret, states %v", checked, b.states(e))
	}
}

// sendTime is how long a request that was begun before a change may take to arrive, on a machine that is busy with other tests.
const sendTime = 250 * time.Millisecond
