package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

func TestWorker_FailureIsRecordedThenRetriedThenCompleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	b.work(On(deliverKind, func(_ context.Context, job *Job[testArgs]) error {
		job.Evidence.Sent, job.Evidence.Status, job.Evidence.ResponseClass = true, 500, "server"
		if calls.Add(1) < 3 {
			return errors.New("answered 500")
		}
		job.Evidence.Status, job.Evidence.ResponseClass = 200, "success"
		return nil
	}))
	id := b.insert(Insert{EventID: "event_1"})

	first := b.settled(id)
	if first.State != StateRetryable || first.Attempt != 1 || first.Max != 18 {
		t.Fatalf("after the first failure: %+v", first)
	}
	b.makeDue(id)
	b.settled(id)
	b.makeDue(id)
	last := b.settled(id)
	if last.State != StateCompleted || last.Attempt != 3 || last.Last.Status != 200 {
		t.Fatalf("after the third attempt: %+v", last)
	}

	records := b.records(id)
	var decisions []Verdict
	for _, r := range records {
		decisions = append(decisions, r.Decision)
	}
	if diff := cmp.Diff([]Verdict{VerdictRetryScheduled, VerdictRetryScheduled, VerdictAccepted}, decisions); diff != "" {
		t.Fatal(diff)
	}
	if err := VerifyChain(records); err != nil {
		t.Fatal(err)
	}
	policy, _ := b.client.Policies().For("webhook.deliver", DefaultProfile)
	for _, r := range records[:2] {
		base, wait := policy.Wait(id, r.Attempt)
		if *r.BaseWaitMS != base.Milliseconds() || *r.WaitMS != wait.Milliseconds() {
			t.Errorf("attempt %d waits %d ms of %d, the policy says %s of %s", r.Attempt, *r.WaitMS, *r.BaseWaitMS, wait, base)
		}
	}
}

func TestWorker_LedgerRowCommitsBeforeRiverIsTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	// The row of the attempt must be there while River still calls the task running.
	b.exec(`create function seen_running() returns trigger language plpgsql as $$
		begin
			if not exists (select 1 from river_job where id = new.task_id and state = 'running') then
				raise exception 'river was told first';
			end if;
			return null;
		end $$`)
	b.exec(`create trigger seen_running after insert on attempts for each row execute function seen_running()`)
	b.work(On(deliverKind, always(nil)))
	id := b.insert(Insert{})
	if task := b.settled(id); task.State != StateCompleted {
		t.Fatalf("%+v", task)
	}
	if n := len(b.records(id)); n != 1 {
		t.Fatalf("%d records", n)
	}
}

func TestWorker_DiscardThroughMaxAttemptsKeepsTheRetryBudget(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.work(On(deliverKind, always(Discard(errors.New("410"), ReasonGone))))
	id := b.insert(Insert{})
	task := b.settled(id)
	if task.State != StateDiscarded || task.Reason != ReasonGone || task.Attempt != 1 || task.Max != 18 {
		t.Fatalf("%+v", task)
	}
	var state string
	var maxAttempts int
	if err := b.pool.QueryRow(t.Context(), `select state::text, max_attempts from river_job where id = $1`, id).Scan(&state, &maxAttempts); err != nil {
		t.Fatal(err)
	}
	if state != "discarded" || maxAttempts != 18+riverHeadroom {
		t.Fatalf("River has %s with max_attempts %d; a discard must keep the budget", state, maxAttempts)
	}
	if _, err := b.client.Retry(t.Context(), testActor, testProject, id); err != nil {
		t.Fatal(err)
	}
	if task := b.settled(id); task.Attempt != 2 {
		t.Fatalf("the retry made %+v", task)
	}
	if r := b.records(id)[1]; r.Trigger != TriggerManual {
		t.Fatalf("the second attempt's trigger is %s", r.Trigger)
	}
}

func TestWorker_SnoozeSpendsNoAttemptAndIsMarked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.work(On(deliverKind, func(_ context.Context, job *Job[testArgs]) error {
		job.Evidence.Sent, job.Evidence.Status = true, 429
		job.Evidence.RetryAfter = ParseRetryAfter("120", time.Now())
		return Snooze(job.Evidence.RetryAfter.Delay, ReasonRetryAfter)
	}))
	id := b.insert(Insert{})
	task := b.settled(id)
	if task.State != StateSnoozed || task.Reason != ReasonRetryAfter {
		t.Fatalf("%+v", task)
	}
	var attempt int
	var outcome string
	if err := b.pool.QueryRow(t.Context(), `select attempt, outcome from river_job where id = $1`, id).Scan(&attempt, &outcome); err != nil {
		t.Fatal(err)
	}
	if attempt != 0 || outcome != "snooze" {
		t.Fatalf("River counts %d attempts and the mark is %q", attempt, outcome)
	}
	r := b.records(id)[0]
	if r.Charged || r.Attempt != 1 || r.Decision != VerdictSnoozed || *r.WaitMS != 120_000 {
		t.Fatalf("%+v", r)
	}
}

func TestWorker_ShortWaitsReadRetryableAndSnoozedThoughRiverSaysAvailable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.work(On(deliverKind, func(_ context.Context, job *Job[testArgs]) error {
		job.Evidence.Sent = true
		if job.Args.N == 1 {
			return Snooze(4*time.Second, ReasonRetryAfter)
		}
		return errors.New("no")
	}))
	id := b.insert(Insert{})
	if task := b.settled(id); task.State != StateSnoozed {
		t.Fatalf("%+v", task)
	}
	var state string
	if err := b.pool.QueryRow(t.Context(), `select state::text from river_job where id = $1`, id).Scan(&state); err != nil {
		t.Fatal(err)
	}
	if state != "available" {
		t.Fatalf("River wrote %s: waits of 5 s or less used to go straight to available, look at the state mapping again", state)
	}
}

func TestWorker_SnoozeThatAskedNobodyLeavesNoRecord(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.work(On(deliverKind, func(context.Context, *Job[testArgs]) error { return Snooze(time.Minute, ReasonLaneBusy) }))
	id := b.insert(Insert{})
	if task := b.settled(id); task.State != StateSnoozed {
		t.Fatalf("%+v", task)
	}
	if records := b.records(id); len(records) != 0 {
		t.Fatalf("%+v", records)
	}
}

func TestWorker_PanicIsEvidenceAndRetried(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.work(On(deliverKind, func(context.Context, *Job[testArgs]) error { panic("boom") }))
	id := b.insert(Insert{})
	if task := b.settled(id); task.State != StateRetryable {
		t.Fatalf("%+v", task)
	}
	r := b.records(id)[0]
	if r.Reason != ReasonPanic || r.Error == nil {
		t.Fatalf("%+v", r)
	}
}

func TestWorker_UndecodableArgumentsAreDiscardedAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.work(On(deliverKind, always(nil)))
	id := b.insert(Insert{ScheduledAt: time.Now().Add(time.Hour)})
	b.exec(`update river_job set args = '{"n": "not a number"}', state = 'available', scheduled_at = now() where id = $1`, id)
	if task := b.settled(id); task.State != StateDiscarded || task.Reason != ReasonUndecodable {
		t.Fatalf("%+v", task)
	}
}

func TestWorker_LostAttemptIsRecordedAsUnknownBeforeTheNext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.insert(Insert{ScheduledAt: time.Now().Add(time.Hour)})
	// A node took the task, counted the attempt, and died.
	b.exec(`insert into nodes (id, host, version, seen_at) values ('node_dead', 'h', 'v', now() - interval '1 minute')`)
	b.exec(`update river_job set state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{node_dead}' where id = $1`, id)
	b.work(On(deliverKind, always(nil)))
	task := b.settled(id)
	if task.State != StateCompleted || task.Attempt != 2 {
		t.Fatalf("%+v", task)
	}
	records := b.records(id)
	if len(records) != 2 || records[0].Decision != VerdictUnknown || records[0].Reason != ReasonWorkerLost || records[1].Decision != VerdictAccepted {
		t.Fatalf("%+v", records)
	}
	if err := VerifyChain(records); err != nil {
		t.Fatal(err)
	}
}

func TestWorker_LostAttemptNamesWhatTheTaskIsAbout(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ref := []byte("0123456789abcdef0123456789abcdef")
	id := b.insert(Insert{ScheduledAt: time.Now().Add(time.Hour), IdempotencyKey: "notification_1", OrderID: "SO-1", RecipientRef: ref})
	b.exec(`insert into nodes (id, host, version, seen_at) values ('node_dead', 'h', 'v', now() - interval '1 minute')`)
	b.exec(`update river_job set state = 'running', attempt = 1, attempted_at = now(), attempted_by = '{node_dead}' where id = $1`, id)
	// A handler that fills nothing in: the rows name the order all the same.
	b.work(On(deliverKind, always(nil)))
	b.settled(id)
	var exported []Record
	err := EachRecord(t.Context(), b.pool, EvidenceFilter{OrderID: "SO-1"}, func(r Record) error {
		exported = append(exported, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(exported) != 2 || exported[0].Reason != ReasonWorkerLost || exported[1].Decision != VerdictAccepted {
		t.Fatalf("exported by order: %+v", exported)
	}
	for _, r := range exported {
		if *r.OrderID != "SO-1" || *r.IdempotencyKey != "notification_1" || !bytes.Equal(r.RecipientRef, ref) {
			t.Errorf("record %d is about %+v", r.Seq, r)
		}
	}
}

func TestWorker_LastAttemptLostIsTriedOnceMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.work(On(deliverKind, always(errors.New("no"))))
	id := b.insert(Insert{})
	b.settled(id)
	for range 16 {
		b.makeDue(id)
		b.settled(id)
	}
	// The 18th attempt is under way when its node dies.
	b.exec(`update river_job set state = 'running', attempt = 18, attempted_at = clock_timestamp() + interval '1 second', attempted_by = array_append(attempted_by, 'node_dead') where id = $1`, id)
	b.exec(`insert into nodes (id, host, version, seen_at) values ('node_dead', 'h', 'v', now() - interval '1 minute')`)
	task := b.settled(id)
	if task.State != StateDiscarded || task.Reason != ReasonAttemptsExhausted || task.Attempt != 19 {
		t.Fatalf("%+v", task)
	}
	records := b.records(id)
	if len(records) != 19 || records[17].Decision != VerdictUnknown {
		t.Fatalf("%d records, the 18th %+v", len(records), records[17])
	}
}

func TestWorker_CancelWinsOverDiscard(t *testing.T) {
	t.Parallel()
	b := setup(t)
	running, release := make(chan int64), make(chan struct{})
	b.work(On(deliverKind, func(ctx context.Context, job *Job[testArgs]) error {
		job.Evidence.Sent = true
		running <- job.TaskID
		<-ctx.Done()
		<-release
		return Discard(errors.New("410"), ReasonGone)
	}))
	id := b.insert(Insert{})
	<-running
	task, err := b.client.Cancel(t.Context(), testActor, testProject, id)
	if err != nil {
		t.Fatal(err)
	}
	if task.State != StateRunning || !task.Cancelling {
		t.Fatalf("%+v", task)
	}
	close(release)
	if task := b.settled(id); task.State != StateCancelled {
		t.Fatalf("%+v", task)
	}
	if r := b.records(id)[0]; r.Decision != VerdictCancelled || r.Reason != ReasonCancelled {
		t.Fatalf("%+v", r)
	}
}

func TestWorker_CompleteTxIsOneWithTheHandlersWork(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	b.work(On(fanoutKind, func(ctx context.Context, job *Job[testArgs]) error {
		return store.InTx(ctx, b.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `insert into projects (id, name) values ($1, 'made by the handler')`, fmt.Sprintf("project_%d", calls.Add(1))); err != nil {
				return err
			}
			if err := job.CompleteTx(ctx, tx); err != nil {
				return err
			}
			if calls.Load() == 1 {
				return errors.New("the commit did not happen")
			}
			return nil
		})
	}))
	id := insertOf(b, fanoutKind, Insert{})
	if task := b.settled(id); task.State != StateRetryable {
		t.Fatalf("%+v", task)
	}
	b.makeDue(id)
	if task := b.settled(id); task.State != StateCompleted {
		t.Fatalf("%+v", task)
	}
	var names []string
	rows, err := b.pool.Query(t.Context(), `select id from projects`)
	if err != nil {
		t.Fatal(err)
	}
	if names, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"project_2"}, names); diff != "" {
		t.Fatal(diff)
	}
	records := b.records(id)
	if len(records) != 2 || records[1].Decision != VerdictAccepted {
		t.Fatalf("%+v", records)
	}
}

func TestWorker_ExhaustedAfterEighteenThenManualRetryMakesOneMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	b.work(On(deliverKind, func(_ context.Context, job *Job[testArgs]) error {
		calls.Add(1)
		job.Evidence.Sent = true
		return errors.New("no")
	}))
	id := b.insert(Insert{})
	task := b.settled(id)
	for task.State == StateRetryable {
		b.makeDue(id)
		task = b.settled(id)
	}
	if calls.Load() != 18 || task.State != StateDiscarded || task.Reason != ReasonAttemptsExhausted {
		t.Fatalf("%d calls, %+v", calls.Load(), task)
	}
	if _, err := b.client.Retry(t.Context(), testActor, testProject, id); err != nil {
		t.Fatal(err)
	}
	task = b.settled(id)
	if calls.Load() != 19 || task.State != StateDiscarded || task.Attempt != 19 {
		t.Fatalf("%d calls, %+v", calls.Load(), task)
	}
}

func TestGeneratedColumnsFollowTheMetadata(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.insert(Insert{EndpointID: "endpoint_1", EventID: "event_1"})
	var project, endpoint, event string
	var outcome *string
	if err := b.pool.QueryRow(t.Context(), `select project_id, endpoint_id, event_id, outcome from river_job where id = $1`, id).
		Scan(&project, &endpoint, &event, &outcome); err != nil {
		t.Fatal(err)
	}
	if project != testProject || endpoint != "endpoint_1" || event != "event_1" || outcome != nil {
		t.Fatal(project, endpoint, event, outcome)
	}
	var meta map[string]any
	var raw []byte
	if err := b.pool.QueryRow(t.Context(), `select metadata from river_job where id = $1`, id).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &meta); err != nil || meta["max"] != 18.0 {
		t.Fatal(string(raw), err)
	}
}

// A node that dies after the ledger's commit and before River is told must not make the request again.
func TestWorker_WhatTheLedgerKnowsOfADeadNodesAttemptIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome error
		want    TaskState
		attempt int
	}{
		"accepted": {nil, StateCompleted, 1},
		"retry":    {errors.New("no"), StateRetryable, 1},
		"snooze":   {Snooze(time.Hour, ReasonRetryAfter), StateSnoozed, 0},
		"discard":  {Discard(errors.New("410"), ReasonGone), StateDiscarded, 1},
		"cancel":   {Cancel(errors.New("gone"), ReasonEndpointDisabled), StateCancelled, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.work(On(deliverKind, always(c.outcome)))
			id := b.insert(Insert{})
			b.settled(id)
			// Undo River's part of it.
			b.exec(`update river_job set state = 'running', attempt = 1, finalized_at = null, attempted_by = '{node_dead}',
				metadata = metadata - 'outcome' - 'reason' where id = $1`, id)
			b.exec(`insert into nodes (id, host, version, seen_at) values ('node_dead', 'h', 'v', now() - interval '1 minute')`)
			if _, err := buryDeadNodes(t.Context(), b.pool); err != nil {
				t.Fatal(err)
			}
			task := b.task(id)
			if task.State != c.want {
				t.Fatalf("%+v", task)
			}
			var attempt int
			if err := b.pool.QueryRow(t.Context(), `select attempt from river_job where id = $1`, id).Scan(&attempt); err != nil || attempt != c.attempt {
				t.Fatal(attempt, err)
			}
			if n := len(b.records(id)); n != 1 {
				t.Fatalf("%d records", n)
			}
		})
	}
}

func TestWorker_AdoptsAnEndThatRiverNeverHeardOf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	b.work(On(deliverKind, func(context.Context, *Job[testArgs]) error { calls.Add(1); return nil }))
	id := b.insert(Insert{})
	b.settled(id)
	// River's own rescuer knows nothing of the ledger and makes the task due again.
	b.exec(`update river_job set state = 'available', finalized_at = null, scheduled_at = now() where id = $1`, id)
	if task := b.settled(id); task.State != StateCompleted || calls.Load() != 1 {
		t.Fatalf("%d calls, %+v", calls.Load(), task)
	}
}
