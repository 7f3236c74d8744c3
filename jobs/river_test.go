package jobs

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertest"
	"github.com/riverqueue/river/rivertype"
)

// River's own test worker runs the adapter inside a transaction; what it reports must be what the adapter decided. This and the
// tests of discard, snooze and generated columns are the canaries of a River upgrade.
func TestRiver_TestWorkerAgreesWithTheAdapter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome error
		kind    river.EventKind
		state   rivertype.JobState
		attempt int
	}{
		"success": {nil, river.EventKindJobCompleted, rivertype.JobStateCompleted, 1},
		"failure": {errors.New("no"), river.EventKindJobFailed, rivertype.JobStateAvailable, 1}, // 5 s or less: straight to available
		"snooze":  {Snooze(time.Hour, ReasonRetryAfter), river.EventKindJobSnoozed, rivertype.JobStateScheduled, 0},
		"discard": {Discard(errors.New("410"), ReasonGone), river.EventKindJobFailed, rivertype.JobStateDiscarded, 1},
		"cancel":  {Cancel(errors.New("gone"), ReasonEndpointDisabled), river.EventKindJobCancelled, rivertype.JobStateCancelled, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			o := WorkerOptions{Client: b.client, Pool: b.pool, Ledger: b.ledger, Logger: slog.New(slog.DiscardHandler), Testing: true, Now: time.Now}
			kind := Kind[testArgs]{Name: "webhook.fanout", Queue: QueueWebhook} // its first wait is 1 s, jitter included
			w, err := NewWorker(o, On(kind, always(c.outcome)))
			if err != nil {
				t.Fatal(err)
			}
			tx, err := b.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(context.WithoutCancel(t.Context()))
			workers := river.NewWorkers()
			river.AddWorkerArgs(workers, rawArgs{kind: kind.Name}, &riverWorker{timeout: time.Second})
			config := w.riverConfig(o, workers)
			config.Queues = nil
			tester := rivertest.NewWorker(t, riverpgxv5.New(b.pool), config, &riverWorker{timeout: time.Second})
			result, err := tester.Work(t.Context(), t, tx, rawArgs{kind: kind.Name, json: []byte(`{"n": 1}`)},
				&river.InsertOpts{Queue: QueueWebhook, Metadata: []byte(`{"project_id": "project_test"}`)})
			if (err != nil) != (c.kind == river.EventKindJobFailed) { // the test worker hands a failure's error back
				t.Fatal(err)
			}
			if result.EventKind != c.kind || result.Job.State != c.state || result.Job.Attempt != c.attempt {
				t.Fatalf("%s, %s, attempt %d", result.EventKind, result.Job.State, result.Job.Attempt)
			}
			if n := len(b.records(result.Job.ID)); n != 1 {
				t.Fatalf("%d records", n)
			}
		})
	}
}
