package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
)

func (b bundle) newRelay(t *testing.T, batch int) *Relay {
	t.Helper()
	policies, err := jobs.LoadPolicies("")
	if err != nil {
		t.Fatal(err)
	}
	client, err := jobs.NewClient(jobs.ClientOptions{Pool: b.pool, Policies: policies})
	if err != nil {
		t.Fatal(err)
	}
	return NewRelay(RelayOptions{Pool: b.pool, Client: client, Batch: batch})
}

func sweep(t *testing.T, b bundle, r *Relay) (failing bool) {
	t.Helper()
	failing, err := r.Sweep(b.ctx)
	if err != nil {
		t.Fatalf("sweep: %v", err)
	}
	return failing
}

// fannedOut lists the ids in all fan-out tasks, sorted.
func (b bundle) fannedOut(t *testing.T) []string {
	t.Helper()
	return scan[[]string](t, b, `
		select coalesce(array_agg(event order by event collate "C"), '{}')
		from river_job, jsonb_array_elements_text(args -> 'eventIds') e (event) where kind = 'webhook.fanout'`)
}

func TestRelay_OneTaskPerProjectAndBatch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b
	other.project = b.newProject(t)
	b.publish(t, "a1")
	other.publish(t, "b1")
	b.publish(t, "a2")
	r := b.newRelay(t, 0)
	sweep(t, b, r)

	rows, err := b.pool.Query(b.ctx, `
		select project_id, queue, args ->> 'projectId' || ': ' || (args ->> 'eventIds') from river_job order by args ->> 'eventIds'`)
	if err != nil {
		t.Fatal(err)
	}
	type task struct{ Project, Queue, Args string }
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[task])
	if err != nil {
		t.Fatal(err)
	}
	want := []task{
		{b.project, "webhook", b.project + `: ["a1", "a2"]`},
		{other.project, "webhook", other.project + `: ["b1"]`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fan-out tasks (-want +got):\n%s", diff)
	}
	event, err := EventByID(b.ctx, b.pool, b.project, "a1")
	if err != nil {
		t.Fatal(err)
	}
	if event.FannedOutAt.IsZero() {
		t.Errorf("a relayed event is not marked")
	}

	sweep(t, b, r)
	if diff := cmp.Diff([]string{"a1", "a2", "b1"}, b.fannedOut(t)); diff != "" {
		t.Errorf("events in tasks after a second sweep (-want +got):\n%s", diff)
	}
}

func TestRelay_LateCommitOfAnEarlierSequenceIsNotLost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.newRelay(t, 0)
	early, err := b.pool.Begin(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Rollback(context.WithoutCancel(b.ctx))
	if _, err := Publish(b.ctx, early, b.project, newOrder("early")); err != nil {
		t.Fatal(err)
	}
	b.publish(t, "late")
	sweep(t, b, r)
	if diff := cmp.Diff([]string{"late"}, b.fannedOut(t)); diff != "" {
		t.Fatalf("before the earlier commit (-want +got):\n%s", diff)
	}

	if err := early.Commit(b.ctx); err != nil {
		t.Fatal(err)
	}
	if !scan[bool](t, b, `select (select seq from events where id = 'early') < (select seq from events where id = 'late')`) {
		t.Fatal("the sequences do not interleave, so this test proves nothing")
	}
	sweep(t, b, r)
	if diff := cmp.Diff([]string{"early", "late"}, b.fannedOut(t)); diff != "" {
		t.Errorf("after the earlier commit (-want +got):\n%s", diff)
	}
}

func TestRelay_TwoAtOnceFanOutOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const n = 600
	var batch []New
	var want []string
	for i := range n {
		id := fmt.Sprintf("%03d", i)
		batch, want = append(batch, newOrder(id)), append(want, id)
	}
	if _, err := PublishBatch(b.ctx, b.pool, b.project, batch); err != nil {
		t.Fatal(err)
	}

	var wg sync.WaitGroup
	for range 2 {
		r := b.newRelay(t, 20)
		wg.Go(func() {
			// A relay gives up a batch that it finds short, as when the other holds the rest; the next sweep looks again.
			for range n {
				if _, err := r.Sweep(b.ctx); err != nil {
					t.Error(err)
					return
				}
				if outbox, err := OutboxStats(b.ctx, b.pool); err != nil || outbox.Waiting == 0 {
					return
				}
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(want, b.fannedOut(t)); diff != "" {
		t.Errorf("events in tasks (-want +got):\n%s", diff)
	}
}

func TestRelay_KilledInATransactionLeavesItsRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.onTask(t, `perform pg_advisory_xact_lock(4711); return new;`)
	b.publish(t, "x")

	holder, err := b.pool.Begin(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.WithoutCancel(b.ctx))
	if _, err := holder.Exec(b.ctx, `select pg_advisory_xact_lock(4711)`); err != nil {
		t.Fatal(err)
	}
	r := b.newRelay(t, 0)
	killed := make(chan error, 1)
	go func() {
		_, err := r.Sweep(b.ctx)
		killed <- err
	}()
	const waiting = `select pid from pg_locks where locktype = 'advisory' and not granted
		and database = (select oid from pg_database where datname = current_database())`
	b.waitFor(t, "the relay to be in the middle of its transaction", `select exists (`+waiting+`)`)
	if n := scan[int](t, b, `select count(*) from (select 1 from event_outbox where event_id = 'x' for update skip locked) e`); n != 0 {
		t.Fatal("the relay holds no lock on the event")
	}
	// To end its context is not enough: its commit is on the way already, and may be done all the same.
	if !scan[bool](t, b, `select pg_terminate_backend(pid) from (`+waiting+`) w`) {
		t.Fatal("the relay's session goes on")
	}
	if err := <-killed; err == nil {
		t.Fatal("a sweep whose session was ended is well")
	}
	if err := holder.Rollback(b.ctx); err != nil {
		t.Fatal(err)
	}

	b.waitFor(t, "the dead relay's lock to go",
		`select count(*) = 1 from (select 1 from event_outbox where event_id = 'x' for update skip locked) e`)
	if got := b.fannedOut(t); len(got) != 0 {
		t.Fatalf("a killed relay left the tasks %v", got)
	}
	sweep(t, b, b.newRelay(t, 0))
	if diff := cmp.Diff([]string{"x"}, b.fannedOut(t)); diff != "" {
		t.Errorf("events in tasks (-want +got):\n%s", diff)
	}
	if e := b.event(t, "x"); e.RelayFailures != 0 {
		t.Errorf("the kill is charged to the event: %+v", e)
	}
}

func TestRelay_PoisonHoldsBackNobodyAndIsGivenUpAfterFive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.onTask(t, `if new.args::text like '%bad%' then raise exception 'no room for bad'; end if; return new;`)
	for _, id := range []string{"a", "bad", "c"} {
		b.publish(t, id)
	}
	r := b.newRelay(t, 0)

	for failures := 1; failures < poisonAfter; failures++ {
		if !sweep(t, b, r) {
			t.Errorf("after failure %d the sweep does not tell that an event waits", failures)
		}
		if diff := cmp.Diff([]string{"a", "c"}, b.fannedOut(t)); diff != "" {
			t.Fatalf("events in tasks (-want +got):\n%s", diff)
		}
		e := b.event(t, "bad")
		if e.RelayFailures != failures || !strings.Contains(e.RelayError, "no room for bad") || !e.PoisonedAt.IsZero() {
			t.Fatalf("after failure %d: %+v", failures, e)
		}
		wait := scan[time.Duration](t, b, `select relay_after - now() from event_outbox where event_id = 'bad'`)
		if most := failureWaits[failures-1]; wait > most || wait < most-4*time.Second {
			t.Errorf("after failure %d it waits %v, want about %v", failures, wait, most)
		}
		sweep(t, b, r)
		if e := b.event(t, "bad"); e.RelayFailures != failures {
			t.Errorf("it got a turn before it was due: %+v", e)
		}
		b.exec(t, `update event_outbox set relay_after = now() where event_id = 'bad'`)
	}
	if sweep(t, b, r) {
		t.Errorf("a poisoned event is still waited for")
	}
	if e := b.event(t, "bad"); e.RelayFailures != poisonAfter || e.PoisonedAt.IsZero() || !e.RelayAfter.IsZero() {
		t.Fatalf("after the last failure: %+v, want it poisoned", e)
	}

	b.publish(t, "d")
	sweep(t, b, r)
	if diff := cmp.Diff([]string{"a", "c", "d"}, b.fannedOut(t)); diff != "" {
		t.Errorf("events in tasks (-want +got):\n%s", diff)
	}
}

func TestRelay_TroubleOfTheDatabaseIsChargedToNoEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.onTask(t, `raise exception 'disk full' using errcode = 'disk_full';`)
	b.publish(t, "x")
	r := b.newRelay(t, 0)
	if _, err := r.Sweep(b.ctx); err == nil {
		t.Error("sweep: no error, want the trouble told")
	}
	if e := b.event(t, "x"); e.RelayFailures != 0 || !e.RelayAfter.IsZero() {
		t.Errorf("the event was charged: %+v", e)
	}
	b.exec(t, `drop trigger on_task on river_job`)
	sweep(t, b, r)
	if diff := cmp.Diff([]string{"x"}, b.fannedOut(t)); diff != "" {
		t.Errorf("events in tasks (-want +got):\n%s", diff)
	}
}

func TestRelay_SchemaThatCannotBeReadIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "x")
	r := b.newRelay(t, 0)
	b.exec(t, `alter table event_outbox rename column relay_after to something_else`)
	if _, _, _, err := r.relayFresh(b.ctx); err == nil {
		t.Error("relayFresh: no error, want the missing column told")
	}
}

func TestRelay_FailureOfTwoRelaysAtOnceCountsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "x")
	r := b.newRelay(t, 0)
	row := outboxRow{Seq: b.event(t, "x").Seq, ProjectID: b.project, ID: "x"}
	for i, failures := range []int{0, 0, 1, 0} { // As the relay that charges has read them.
		row.RelayFailures = failures
		if waits, err := r.charge(b.ctx, row, fmt.Errorf("error %d", i)); err != nil || !waits {
			t.Fatalf("charge: %v, %v", waits, err)
		}
	}
	if e := b.event(t, "x"); e.RelayFailures != 2 || e.RelayError != "error 2" {
		t.Errorf("%d failures are noted, the last with %q; want 2 and error 2", e.RelayFailures, e.RelayError)
	}
}

func TestRelay_NotifyWakesWithinASecond(t *testing.T) {
	t.Parallel()
	b := setup(t)
	relayed := b.run(t, b.newRelay(t, 0))
	b.publish(t, "first")
	<-relayed

	// From here on only a notification can wake it in time: the next sweep is a minute away.
	doors := map[string]func(id string) error{
		"Publish": func(id string) error {
			_, err := Publish(b.ctx, b.pool, b.project, newOrder(id))
			return err
		},
		"entrega.publish": func(id string) error {
			_, err := b.sqlPublish(newOrder(id))
			return err
		},
	}
	for name, publish := range doors {
		if err := publish(name[:3]); err != nil {
			t.Fatal(err)
		}
		select {
		case <-relayed:
		case <-time.After(time.Second):
			t.Fatalf("an event of %s is not relayed within a second", name)
		}
	}
}

func TestRelay_SweepsWhileItIsDeafAndListensAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.newRelay(t, 0)
	r.sweepSoon = 20 * time.Millisecond
	relayed := b.run(t, r)
	listens := `select exists (select 1 from pg_stat_activity
		where datname = current_database() and query = 'listen "entrega_event"')`
	b.waitFor(t, "the relay to listen", listens)

	b.exec(t, `alter table events disable trigger events_published`)
	b.exec(t, `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and query = 'listen "entrega_event"'`)
	b.publish(t, "unheard")
	b.exec(t, `insert into event_outbox (seq, project_id, event_id, published_at) select seq, project_id, id, created_at from events where id = 'unheard'`)
	<-relayed
	b.waitFor(t, "the relay to listen again", listens)
	b.exec(t, `alter table events enable trigger events_published`)
	b.publish(t, "heard")
	<-relayed
	if diff := cmp.Diff([]string{"heard", "unheard"}, b.fannedOut(t)); diff != "" {
		t.Errorf("events in tasks (-want +got):\n%s", diff)
	}
}

func TestRelay_FailedEventsGetTheirTurnWhileOthersKeepFailing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.onTask(t, `if new.args::text like '%other%' or (select relay_failures < 3 from event_outbox where event_id = 'first')
		then raise exception 'not yet'; end if; return new;`)
	r := b.newRelay(t, 0)
	r.sweepSoon = 300 * time.Millisecond
	b.run(t, r)
	b.publish(t, "first")
	// The relay's first sweep may see one or two failures; the others need sweeps that wakes could push away.
	deadline := time.Now().Add(30 * time.Second)
	for i := 0; !slices.Contains(b.fannedOut(t), "first"); i++ {
		if time.Now().After(deadline) {
			t.Fatal("wakes that fail keep the sweep away")
		}
		other := fmt.Sprint("other-", i)
		b.publish(t, other)
		b.waitFor(t, "the relay to try it", `select relay_failures > 0 from event_outbox where event_id = $1`, other)
		b.exec(t, `update event_outbox set relay_after = now() where event_id = 'first' and relay_after > now()`)
	}
	if e := b.event(t, "first"); e.RelayError != "" || !e.RelayAfter.IsZero() || e.FannedOutAt.IsZero() {
		t.Errorf("a relayed event still tells of its failure: %+v", e)
	}
}

// run starts the relay for the rest of the test. The channel tells of each transaction that put tasks into the queue.
func (b bundle) run(t *testing.T, r *Relay) <-chan struct{} {
	t.Helper()
	b.onTask(t, `perform pg_notify('test_relayed', ''); return new;`)
	ctx, stop := context.WithCancel(b.ctx)
	relayed := make(chan struct{}, 10_000)
	listening := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		begun := false
		_ = store.Listen(ctx, b.pool, "test_relayed", func(string) {
			if !begun {
				begun = true
				close(listening)
				return
			}
			relayed <- struct{}{}
		})
	})
	<-listening
	wg.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		stop()
		wg.Wait()
	})
	return relayed
}

// onTask runs a trigger body for each task that is inserted, once more with each call.
func (b bundle) onTask(t *testing.T, body string) {
	t.Helper()
	name := "on_task"
	if scan[bool](t, b, `select exists (select 1 from pg_trigger where tgname = 'on_task')`) {
		name = "on_task_too"
	}
	b.exec(t, `create function `+name+`() returns trigger language plpgsql as $$ begin `+body+` end $$`)
	b.exec(t, `create trigger `+name+` before insert on river_job for each row execute function `+name+`()`)
}

func (b bundle) event(t *testing.T, id string) Event {
	t.Helper()
	e, err := EventByID(b.ctx, b.pool, b.project, id)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
