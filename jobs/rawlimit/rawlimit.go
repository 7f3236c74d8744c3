// Package rawlimit measures what River does on a machine when its jobs store nothing of their own: the ceiling for any design
// that rests on it. It serves cmd/bench and knows nothing of tasks, policies or the ledger.
package rawlimit

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	workers    = 1000
	cooldown   = 5 * time.Millisecond
	insertSize = 2000
	stopWithin = 30 * time.Second
)

// Migrate brings an empty database to River's own schema, with River's own indexes.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	m, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("make River's migrator: %w", err)
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrate to River's schema: %w", err)
	}
	return nil
}

// Work inserts n jobs, then starts River and returns how long it took until the last of them was worked. The first error of do ends it.
func Work(ctx context.Context, pool *pgxpool.Pool, n int, do func(ctx context.Context, job int64) error) (time.Duration, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	w := &worker{do: do, fail: fail, done: make(chan struct{})}
	w.left.Store(int64(n))
	all := river.NewWorkers()
	river.AddWorker(all, w)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: all, TestOnly: true,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers, FetchCooldown: cooldown}},
	})
	if err != nil {
		return 0, fmt.Errorf("make River's client: %w", err)
	}
	if err := insert(ctx, client, n); err != nil {
		return 0, err
	}

	start := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, fmt.Errorf("start River: %w", err)
	}
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	took := time.Since(start)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := client.Stop(stop); err != nil {
		return 0, fmt.Errorf("stop River: %w", err)
	}
	return took, context.Cause(ctx)
}

func insert(ctx context.Context, client *river.Client[pgx.Tx], n int) error {
	for at := 0; at < n; at += insertSize {
		batch := make([]river.InsertManyParams, min(insertSize, n-at))
		for i := range batch {
			batch[i].Args = args{Number: at + i}
		}
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return fmt.Errorf("insert jobs: %w", err)
		}
	}
	return nil
}

// args are about as large as those of a delivery.
type args struct {
	Number int `json:"number"`
}

// Kind is River's name for the job.
func (args) Kind() string { return "rawlimit" }

type worker struct {
	river.WorkerDefaults[args]
	do   func(ctx context.Context, job int64) error
	fail context.CancelCauseFunc
	left atomic.Int64
	done chan struct{}
}

// Work does one job.
func (w *worker) Work(ctx context.Context, job *river.Job[args]) error {
	if err := w.do(ctx, job.ID); err != nil {
		w.fail(err)
		return err
	}
	if w.left.Add(-1) == 0 {
		close(w.done)
	}
	return nil
}
