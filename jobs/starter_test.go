package jobs

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"

	"entrega/internal/store"
)

// content is a Claimer that wants nothing.
type content struct{}

// Wanted is never readable.
func (content) Wanted() <-chan struct{} { return nil }

// Claims returns none.
func (content) Claims(int) []Claim { return nil }

// Claimed is never told of any.
func (content) Claimed([]Claimed) {}

// startHere stores tasks that are to start here, and says what state they are stored in. Unless it is nil, outcome is what the transaction
// is said to have ended with.
func (b *bundle) startHere(n int, outcome error) (ids []int64, states []string) {
	b.t.Helper()
	var started *Started
	err := store.InTx(b.t.Context(), b.pool, func(tx pgx.Tx) (err error) {
		items := make([]Item[testArgs], n)
		for i := range items {
			items[i] = Item[testArgs]{Args: testArgs{N: i}, Insert: Insert{ProjectID: testProject, EndpointID: "endpoint_1", Here: true}}
		}
		if started, err = InsertManyTx(b.t.Context(), b.client, tx, deliverKind, items); err != nil {
			return err
		}
		rows, err := tx.Query(b.t.Context(), `select id, state::text from river_job where xmin = pg_current_xact_id()::xid order by id`)
		if err != nil {
			return err
		}
		var id int64
		var state string
		_, err = pgx.ForEachRow(rows, []any{&id, &state}, func() error {
			ids, states = append(ids, id), append(states, state)
			return nil
		})
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	started.Settle(outcome)
	return ids, states
}

// until waits for a condition.
func (b *bundle) until(what string, holds func() bool) {
	b.t.Helper()
	tick, timeout := time.NewTicker(5*time.Millisecond), time.After(15*time.Second)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout:
			b.t.Fatalf("%s: it did not come to that", what)
		}
	}
}

// startable waits until River has said that workers are free.
func (b *bundle) startable() {
	b.t.Helper()
	b.until("workers are free", func() bool { return b.room() > 0 })
}

// room is how many workers are known to be free.
func (b *bundle) room() int {
	s := b.client.starter
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node == "" {
		return 0
	}
	return s.room[QueueWebhook]
}

func (b *bundle) state(id int64) (state string, attempt int) {
	b.t.Helper()
	if err := b.pool.QueryRow(b.t.Context(), `select state::text, attempt from river_job where id = $1`, id).Scan(&state, &attempt); err != nil {
		b.t.Fatal(err)
	}
	return state, attempt
}

func TestStarter_TasksBeginWithTheTransactionThatMakesThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(WorkerOptions{Claimer: content{}}, On(deliverKind, always(nil)))
	b.startable()
	ids, states := b.startHere(2, nil)
	if diff := cmp.Diff([]string{"running", "running"}, states); diff != "" {
		t.Errorf("states before the commit (-want +got):\n%s", diff)
	}
	b.until("both are completed", func() bool {
		return b.task(ids[0]).State == StateCompleted && b.task(ids[1]).State == StateCompleted
	})
	for _, id := range ids {
		task, records := b.task(id), b.records(id)
		if task.Attempt != 1 || len(records) != 1 || records[0].Attempt != 1 || VerifyChain(records) != nil {
			t.Errorf("task %d: attempt %d, records %+v", id, task.Attempt, records)
		}
	}
}

func TestStarter_WithoutAFreeWorkerTasksAreDue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, states := b.startHere(1, nil); states[0] != "available" {
		t.Errorf("a task is %s where nobody works", states[0])
	}
	b.exec(`delete from river_job`)
	release := make(chan struct{})
	b.start(WorkerOptions{Claimer: content{}, Queues: map[string]QueueConfig{QueueWebhook: {Workers: 1, Cooldown: 5 * time.Millisecond, Poll: 20 * time.Millisecond}}},
		On(deliverKind, func(context.Context, *Job[testArgs]) error { <-release; return nil }))
	b.startable()
	ids, states := b.startHere(2, nil)
	if diff := cmp.Diff([]string{"running", "available"}, states); diff != "" {
		t.Errorf("states with one worker (-want +got):\n%s", diff)
	}
	close(release)
	b.until("both are completed", func() bool {
		return b.task(ids[0]).State == StateCompleted && b.task(ids[1]).State == StateCompleted
	})
}

func TestStarter_WhatIsRolledBackNeverBegins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	b.start(WorkerOptions{Claimer: content{}}, On(deliverKind, func(context.Context, *Job[testArgs]) error { calls.Add(1); return nil }))
	b.startable()
	refused := errors.New("refused")
	var started *Started
	err := store.InTx(t.Context(), b.pool, func(tx pgx.Tx) (err error) {
		started, err = InsertManyTx(t.Context(), b.client, tx, deliverKind, []Item[testArgs]{{Insert: Insert{ProjectID: testProject, Here: true}}})
		return errors.Join(err, refused)
	})
	if !errors.Is(err, refused) || len(started.rows) != 1 {
		t.Fatalf("%v, started %+v", err, started)
	}
	started.Settle(err)
	b.startable()
	ids, _ := b.startHere(1, nil)
	b.until("the next one is completed", func() bool { return b.task(ids[0]).State == StateCompleted })
	if n := calls.Load(); n != 1 {
		t.Errorf("the handler was called %d times, want once: what was rolled back is not there", n)
	}
}

func TestStarter_ACommitWithoutAnAnswerIsFoundAndNothingThatBeganSince(t *testing.T) {
	t.Parallel()
	b := setup(t)
	release := make(chan struct{})
	b.start(WorkerOptions{Claimer: content{}}, On(deliverKind, func(context.Context, *Job[testArgs]) error { <-release; return nil }))
	b.startable()
	ids, _ := b.startHere(1, errors.New("the connection was lost"))
	begun := func() (state string, at time.Time) {
		if err := b.pool.QueryRow(t.Context(), `select state::text, coalesce(attempted_at, 'epoch') from river_job where id = $1`, ids[0]).Scan(&state, &at); err != nil {
			t.Fatal(err)
		}
		return state, at
	}
	_, first := begun()
	b.until("it began again", func() bool {
		state, at := begun()
		return state == "running" && !at.Equal(first)
	})
	b.client.starter.giveBackOf(b.worker.NodeID(), first, nil) // It is looked for more than once.
	if state, _ := b.state(ids[0]); state != "running" {
		t.Errorf("a task that runs is given back: it is %s", state)
	}
	close(release)
	b.until("it is completed", func() bool { return b.task(ids[0]).State == StateCompleted })
	if _, attempt := b.state(ids[0]); attempt != 1 {
		t.Errorf("it took River's attempt %d, want 1: the one that never began is given back", attempt)
	}
}

func TestStarter_WhatAPersonCancelsBeforeItBeginsIsNotDueAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.pausedWorker()
	ids, _ := b.startHere(1, nil)
	b.exec(`update river_job set metadata = metadata || '{"cancel_attempted_at": "2026-01-01T00:00:00Z"}' where id = $1`, ids[0])
	b.until("it is cancelled", func() bool { state, _ := b.state(ids[0]); return state == "cancelled" })
}

// pausedWorker is a worker whose queue was paused a moment ago, so that workers are taken for free.
func (b *bundle) pausedWorker(registrations ...Registration) (stop func()) {
	b.t.Helper()
	if len(registrations) == 0 {
		registrations = []Registration{On(deliverKind, always(nil))}
	}
	b.start(WorkerOptions{Claimer: content{}}, registrations...)
	b.startable()
	paused, cancel := b.worker.river.Subscribe(river.EventKindQueuePaused)
	defer cancel()
	if err := b.client.PauseQueue(b.t.Context(), adminActor, QueueWebhook); err != nil {
		b.t.Fatal(err)
	}
	b.until("River pauses the queue", func() bool {
		select {
		case <-paused:
			return true
		default:
			return false
		}
	})
	b.until("no fetch is under way", func() bool {
		b.client.starter.free(QueueWebhook, -1)
		select {
		case <-b.t.Context().Done():
		case <-time.After(100 * time.Millisecond):
		}
		return b.room() == -1
	})
	b.client.starter.free(QueueWebhook, 20)
	return func() {
		if err := b.worker.Stop(b.t.Context()); err != nil {
			b.t.Error(err)
		}
	}
}

func TestStarter_APausedQueueGivesBackWhatItDoesNotTake(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	b.pausedWorker(On(deliverKind, func(context.Context, *Job[testArgs]) error { calls.Add(1); return nil }))
	ids, states := b.startHere(1, nil)
	if states[0] != "running" {
		t.Fatalf("it is %s", states[0])
	}
	b.until("it is due", func() bool { state, attempt := b.state(ids[0]); return state == "available" && attempt == 0 })
	if _, states := b.startHere(1, nil); states[0] != "available" {
		t.Errorf("the next one is %s: nobody has asked for more since", states[0])
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("a paused queue worked %d tasks", n)
	}
}

func TestStarter_AStopGivesBackWhatNobodyTook(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stop := b.pausedWorker()
	ids, states := b.startHere(2, nil)
	if diff := cmp.Diff([]string{"running", "running"}, states); diff != "" {
		t.Fatal(diff)
	}
	stop()
	for _, id := range ids {
		if state, attempt := b.state(id); state != "available" || attempt != 0 {
			t.Errorf("task %d is %s, attempt %d", id, state, attempt)
		}
	}
	if _, states := b.startHere(1, nil); states[0] != "available" {
		t.Errorf("a task is %s after the stop", states[0])
	}
}

func TestFetch_WhatWasStartedAndWhatIsDueComeByTurns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := b.client.starter
	d := newDriver(WorkerOptions{Client: b.client, Pool: b.pool, Claimer: content{}}, "node_a")
	s.open("node_a", d.rouse)
	e := d.GetExecutor()
	fetch := func() []int64 {
		got, err := e.JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{ClientID: "node_a", MaxAttemptedBy: 100, MaxToLock: 2, Queue: QueueWebhook})
		if err != nil {
			t.Fatal(err)
		}
		return idsOf(got.Jobs)
	}
	fetch() // Now it is known how many are free.
	first, _ := b.startHere(2, nil)
	s.free(QueueWebhook, 4)
	second, _ := b.startHere(2, nil)
	due := b.insert(Insert{})
	d.shared.due.Store(true)
	for _, want := range [][]int64{first, {due}, second, nil} {
		if diff := cmp.Diff(want, fetch()); diff != "" {
			t.Errorf("a fetch (-want +got):\n%s", diff)
		}
	}
}
