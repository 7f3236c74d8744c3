package webhooks_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
	"entrega/webhooks"
)

// reject answers 400 to some events and 200 to the others.
func (r *receiver) reject(ids ...string) {
	r.answers(func(w http.ResponseWriter, req *http.Request) {
		if slices.Contains(ids, req.Header.Get("webhook-id")) {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
}

func (b *bundle) bulkDone(id string) jobs.Bulk {
	b.t.Helper()
	var bulk jobs.Bulk
	b.await("the bulk action to end", func() bool {
		var err error
		if bulk, err = jobs.BulkByID(b.ctx, b.pool, b.project, id); err != nil {
			b.t.Fatal(err)
		}
		return bulk.State == jobs.BulkCompleted || bulk.State == jobs.BulkCancelled
	})
	return bulk
}

func TestRedeliver_ScopesPeriodAndDryRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.reject("bad-1", "bad-2")
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	b.start()
	b.publish("bad-1", "bad-2", "good-1")
	for id, state := range map[string]jobs.TaskState{"bad-1": jobs.StateDiscarded, "bad-2": jobs.StateDiscarded, "good-1": jobs.StateCompleted} {
		b.reach(b.delivery(id, e).ID, state, 1)
	}
	if _, err := b.endpoints.Disable(b.ctx, b.owner, e, ""); err != nil {
		t.Fatal(err)
	}
	b.publish("missed-1")
	b.considered("missed-1")
	if _, err := b.endpoints.Reactivate(b.ctx, b.owner, e, ""); err != nil {
		t.Fatal(err)
	}
	b.exec(`update river_job set created_at = now() - interval '1 day' where event_id = 'bad-1'`)

	ask := func(req webhooks.RedeliverRequest) webhooks.RedeliverCount {
		t.Helper()
		got, err := b.endpoints.Redeliver(b.ctx, b.owner, e, req)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	hourAgo := time.Now().Add(-time.Hour)
	for name, tt := range map[string]struct {
		req  webhooks.RedeliverRequest
		want webhooks.RedeliverCount
	}{
		"all":        {webhooks.RedeliverRequest{DryRun: true}, webhooks.RedeliverCount{Deliveries: 2, Missed: 1}},
		"discarded":  {webhooks.RedeliverRequest{DryRun: true, Scope: webhooks.ScopeDiscarded}, webhooks.RedeliverCount{Deliveries: 2}},
		"missed":     {webhooks.RedeliverRequest{DryRun: true, Scope: webhooks.ScopeMissed}, webhooks.RedeliverCount{Missed: 1}},
		"since":      {webhooks.RedeliverRequest{DryRun: true, Since: hourAgo}, webhooks.RedeliverCount{Deliveries: 1, Missed: 1}},
		"until":      {webhooks.RedeliverRequest{DryRun: true, Until: hourAgo}, webhooks.RedeliverCount{Deliveries: 1}},
		"not at all": {webhooks.RedeliverRequest{Until: hourAgo.Add(-48 * time.Hour)}, webhooks.RedeliverCount{}},
	} {
		if diff := cmp.Diff(tt.want, ask(tt.req)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for field, req := range map[string]webhooks.RedeliverRequest{
		"scope": {Scope: "everything"}, "until": {Since: time.Now(), Until: hourAgo},
	} {
		if _, err := b.endpoints.Redeliver(b.ctx, b.owner, e, req); sentence(err, field) == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	if n := r.count(); n != 3 {
		t.Fatalf("a dry run sent something: %d requests", n)
	}

	r.reject("bad-2")
	bulk := b.bulkDone(ask(webhooks.RedeliverRequest{Scope: webhooks.ScopeDiscarded}).BulkID)
	if bulk.Done != 2 || bulk.State != jobs.BulkCompleted {
		t.Errorf("bulk: %+v", bulk)
	}
	first := b.delivery("bad-1", e).ID
	b.reach(first, jobs.StateCompleted, 2)
	b.reach(b.delivery("bad-2", e).ID, jobs.StateDiscarded, 2)
	if got := b.records(first)[1].Trigger; got != jobs.TriggerRedeliver {
		t.Errorf("the trigger is %s", got)
	}
	b.bulkDone(ask(webhooks.RedeliverRequest{Scope: webhooks.ScopeMissed}).BulkID)
	missed := b.delivery("missed-1", e).ID
	b.await("the missed event to be delivered", func() bool {
		b.allDue() // bad-2 may have left the endpoint failing, which cools new deliveries down.
		return b.task(missed).State == jobs.StateCompleted
	})
	if got := ask(webhooks.RedeliverRequest{DryRun: true}); got.Deliveries != 1 || got.Missed != 0 {
		t.Errorf("left over: %+v", got)
	}
}

func TestRedeliver_TwoClicksMakeOneAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(status(400))
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	n := b.start()
	b.publish("bad-1")
	task := b.delivery("bad-1", e).ID
	b.reach(task, jobs.StateDiscarded, 1)
	n.stop()
	var clicks [2]webhooks.RedeliverCount
	for i := range clicks {
		var err error
		if clicks[i], err = b.endpoints.Redeliver(b.ctx, b.owner, e, webhooks.RedeliverRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	// The second one comes to its turn when what the first one brought has failed again.
	const second = `update river_job set state = $1, scheduled_at = $2 where kind = 'webhook.redeliver' and args ->> 'bulkId' = $3`
	b.exec(second, "scheduled", time.Now().Add(time.Hour), clicks[1].BulkID)
	b.start()
	b.bulkDone(clicks[0].BulkID)
	b.reach(task, jobs.StateDiscarded, 2)
	b.exec(second, "available", time.Now(), clicks[1].BulkID)
	if bulk := b.bulkDone(clicks[1].BulkID); bulk.Done != 0 {
		t.Errorf("the second click tried %d again, want none", bulk.Done)
	}
	if got := r.count(); got != 2 {
		t.Errorf("%d requests, want 2", got)
	}
}

func TestRedeliver_ManyGoThroughTheWindowInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	release := r.hangs(410)
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	b.start()
	const many = 450 // More than two chunks.
	b.publish(names("order", many)...)
	b.considered(fmt.Sprintf("order-%04d", many)) // Before the endpoint is disabled.
	release()
	b.await("all to be discarded", func() bool { return b.states(e)["discarded"] == many })
	if n := r.count(); n != 1 {
		t.Errorf("%d requests to an endpoint that is gone, want 1", n)
	}
	r.answers(nil)
	if _, err := b.endpoints.Reactivate(b.ctx, b.owner, e, ""); err != nil {
		t.Fatal(err)
	}
	_, err := b.endpoints.Reactivate(b.ctx, b.owner, e, "")
	wantConflict(t, err, webhooks.CodeNotDisabled)
	count, err := b.endpoints.Redeliver(b.ctx, b.owner, e, webhooks.RedeliverRequest{})
	if err != nil {
		t.Fatal(err)
	}
	b.await("all to be delivered", func() bool { return b.states(e)["completed"] == many })
	if bulk := b.bulkDone(count.BulkID); bulk.Done != many || bulk.Total != many {
		t.Errorf("bulk: %+v", bulk)
	}
	if got := r.count(); got != many+1 {
		t.Errorf("%d requests, want %d", got, many+1)
	}
}

func TestRedeliver_GoesOnBehindTheCursorAndStopsForADisabledEndpoint(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(status(400))
	e := b.create(webhooks.Settings{URL: r.url}).Endpoint.ID
	n := b.start()
	b.publish(names("order", 6)...)
	b.await("all to be discarded", func() bool { b.allDue(); return b.states(e)["discarded"] == 6 })
	n.stop()

	r.answers(nil)
	count, err := b.endpoints.Redeliver(b.ctx, b.owner, e, webhooks.RedeliverRequest{})
	if err != nil {
		t.Fatal(err)
	}
	// As a crash leaves it: three were done, and the cursor stands behind them.
	third := b.delivery("order-0003", e).ID
	b.exec(`update bulk_actions set done = 3, cursor_id = $2, state = 'running' where id = $1`, count.BulkID, third)
	b.start()
	if bulk := b.bulkDone(count.BulkID); bulk.Done != 6 {
		t.Errorf("done %d, want 6", bulk.Done)
	}
	b.await("the rest to be delivered", func() bool { b.allDue(); return b.states(e)["completed"] == 3 })
	if diff := cmp.Diff(map[string]int{"completed": 3, "discarded": 3}, b.states(e)); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}

	again, err := b.endpoints.Redeliver(b.ctx, b.owner, e, webhooks.RedeliverRequest{DryRun: true})
	if err != nil || again.Deliveries != 3 {
		t.Fatalf("left: %+v, %v", again, err)
	}
	if _, err := b.endpoints.Disable(b.ctx, b.owner, e, ""); err != nil {
		t.Fatal(err)
	}
	b.exec(`update bulk_actions set state = 'queued', cursor_id = 0, finished_at = null where id = $1`, count.BulkID)
	err = store.InTx(b.ctx, b.pool, func(tx pgx.Tx) error {
		_, err := jobs.InsertTx(b.ctx, b.client, tx, webhooks.Redelivery, jobs.BulkArgs{ProjectID: b.project, BulkID: count.BulkID}, jobs.Insert{ProjectID: b.project})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if bulk := b.bulkDone(count.BulkID); bulk.State != jobs.BulkCancelled {
		t.Errorf("the bulk action of a disabled endpoint is %s", bulk.State)
	}
}
