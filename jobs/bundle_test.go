package jobs

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"entrega/internal/store"
	"entrega/internal/store/storetest"
	"entrega/internal/tenant"
)

const testProject = "project_test"

type testArgs struct {
	N int `json:"n"`
}

var (
	deliverKind = Kind[testArgs]{Name: "webhook.deliver", Queue: QueueWebhook}
	fanoutKind  = Kind[testArgs]{Name: "webhook.fanout", Queue: QueueWebhook}
	testActor   = tenant.Actor{Kind: tenant.ActorUser, ID: "user_test", Name: "on-call", ProjectID: testProject, Role: tenant.RoleOnCall}
)

// bundle is one test's own installation: database, client, ledger and, when started, worker.
type bundle struct {
	t      *testing.T
	pool   *pgxpool.Pool
	client *Client
	ledger *Ledger
	worker *Worker
	events <-chan *river.Event
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{t: t, pool: storetest.New(t, MigrateDSN)}
	policies, err := LoadPolicies("")
	if err != nil {
		t.Fatal(err)
	}
	if err := policies.StoreVersions(t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	if b.client, err = NewClient(ClientOptions{Pool: b.pool, Policies: policies, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	b.ledger = NewLedger(LedgerOptions{Pool: b.pool, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(b.ledger.Close)
	return b
}

// work starts a worker with the given handlers; it is stopped at the end of the test.
func (b *bundle) work(registrations ...Registration) {
	b.t.Helper()
	b.start(WorkerOptions{}, registrations...)
}

func (b *bundle) start(o WorkerOptions, registrations ...Registration) {
	b.t.Helper()
	o.Client, o.Pool, o.Ledger, o.Logger, o.Testing = b.client, b.pool, b.ledger, slog.New(slog.DiscardHandler), true
	if o.Queues == nil {
		o.Queues = map[string]QueueConfig{QueueWebhook: {Workers: 20, Cooldown: 5 * time.Millisecond, Poll: 20 * time.Millisecond}}
	}
	w, err := NewWorker(o, registrations...)
	if err != nil {
		b.t.Fatal(err)
	}
	events, unsubscribe := w.river.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobSnoozed, river.EventKindJobCancelled)
	b.worker, b.events = w, events
	if err := w.Start(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		unsubscribe()
		ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
		defer cancel()
		if err := w.Stop(ctx); err != nil {
			b.t.Error(err)
		}
	})
}

func (b *bundle) insert(in Insert) int64 {
	b.t.Helper()
	return insertOf(b, deliverKind, in)
}

func insertOf(b *bundle, k Kind[testArgs], in Insert) int64 {
	b.t.Helper()
	if in.ProjectID == "" {
		in.ProjectID = testProject
	}
	var id int64
	err := store.InTx(b.t.Context(), b.pool, func(tx pgx.Tx) (err error) {
		id, err = InsertTx(b.t.Context(), b.client, tx, k, testArgs{N: 1}, in)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// settled waits for River's word that an attempt of the task has ended, and gives the task.
func (b *bundle) settled(id int64) Task {
	b.t.Helper()
	timeout := time.After(15 * time.Second)
	for {
		select {
		case e := <-b.events:
			if e.Job.ID == id {
				return b.task(id)
			}
		case <-timeout:
			b.t.Fatalf("task %d did not settle: %+v", id, b.task(id))
		}
	}
}

func (b *bundle) task(id int64) Task {
	b.t.Helper()
	task, err := b.client.TaskByID(b.t.Context(), b.pool, testProject, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return task
}

func (b *bundle) records(id int64) []Record {
	b.t.Helper()
	records, err := AttemptsOfTask(b.t.Context(), b.pool, testProject, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return records
}

// makeDue moves time for a waiting task: its next attempt is due now.
func (b *bundle) makeDue(id int64) {
	b.t.Helper()
	b.exec(`update river_job set state = 'available', scheduled_at = now() where id = $1 and state in ('retryable', 'scheduled', 'available')`, id)
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.pool.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatal(err)
	}
}

func always(err error) Handler[testArgs] {
	return func(_ context.Context, job *Job[testArgs]) error {
		job.Evidence.Sent = true
		return err
	}
}
