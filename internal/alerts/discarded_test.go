package alerts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
)

func TestDiscarded_CountsByKindAndEndpointAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	north, lumen := b.newEndpoint("https://hooks.northwind.example/in?key=secret"), b.newEndpoint("https://api.lumen.example:8443/")
	first := b.now.Add(-time.Minute)
	b.insert(task{endpoint: north, at: first, reason: jobs.ReasonAttemptsExhausted})
	b.insert(task{endpoint: north, at: b.now, reason: jobs.ReasonRejected})
	b.insert(task{endpoint: lumen, at: b.now, reason: jobs.ReasonHorizon})
	b.insert(task{kind: "order.notification", queue: "notify", at: b.now, reason: jobs.ReasonAttemptsExhausted})
	other := b.newProject()
	b.insert(task{project: other, kind: "order.notification", queue: "notify", at: b.now, reason: jobs.ReasonAttemptsExhausted})
	b.look()

	type said struct {
		Project, Subject, Endpoint, Sentence string
		Count                                int64
		First, Last                          time.Time
	}
	var got []said
	for _, a := range b.all(TaskDiscarded) {
		if tasks, ok := a.Tasks(); !ok || tasks.State != jobs.StateDiscarded || tasks.EndpointID != a.EndpointID || !strings.HasPrefix(a.Subject, tasks.Kind) {
			t.Errorf("%s leads to the tasks %+v", a.Subject, tasks)
		}
		got = append(got, said{a.ProjectID, a.Subject, a.EndpointID, a.Sentence(), a.Count, a.FirstAt.UTC(), a.LastAt.UTC()})
	}
	want := []said{
		{b.project, "order.notification", "", "order.notification had 1 task discarded, because the attempts were used up. Look at it and retry it once the cause is mended.", 1, b.now, b.now},
		{b.project, "webhook.deliver/" + north, north, "hooks.northwind.example did not get 2 deliveries: discarded, the newest because the receiver rejected what was sent. " +
			"Look at them, and when the receiver works, retry or redeliver.", 2, first, b.now},
		{b.project, "webhook.deliver/" + lumen, lumen, "api.lumen.example:8443 did not get 1 delivery: discarded, because the time for trying was over. " +
			"Look at it, and when the receiver works, retry or redeliver.", 1, b.now, b.now},
		{other, "order.notification", "", "order.notification had 1 task discarded, because the attempts were used up. Look at it and retry it once the cause is mended.", 1, b.now, b.now},
	}
	byKey := func(all []said) map[string]said {
		m := map[string]said{}
		for _, s := range all {
			m[s.Project+" "+s.Subject] = s
		}
		return m
	}
	if diff := cmp.Diff(byKey(want), byKey(got)); diff != "" {
		t.Errorf("the alerts differ (-want +got):\n%s", diff)
	}
}

func TestDiscarded_EachTaskCountsOnceHoweverOftenItIsSeen(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	id := b.discard(e)
	for range 3 {
		b.look()
	}
	b.now = b.now.Add(2 * time.Minute) // a wide look back
	b.look()
	// Retried by a person and discarded once more: the same task.
	b.exec(`update river_job set finalized_at = $2 where id = $1`, id, b.now)
	b.look()
	a := b.one(TaskDiscarded)
	if a.Count != 1 || !a.LastAt.Equal(b.now) || a.State != StateOpen {
		t.Errorf("the alert is %s and counts %d until %v, want open with 1 until %v", a.State, a.Count, a.LastAt, b.now)
	}
	b.discard(e)
	b.look()
	if a := b.one(TaskDiscarded); a.Count != 2 {
		t.Errorf("with a second task the alert counts %d, want 2", a.Count)
	}
}

func TestDiscarded_FindsWhatTheRescuerDiscards(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	b.insert(task{endpoint: e, at: b.now, byRescuer: true})
	b.look()
	if a := b.one(TaskDiscarded); !strings.Contains(a.Text, "because no worker reported back") {
		t.Errorf("the alert says %q, want that no worker reported back", a.Text)
	}
}

func TestDiscarded_ATransactionThatCommitsLateIsCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	late, commit, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- store.InTx(b.ctx, b.pool, func(tx pgx.Tx) error {
			insertIn(b, tx, task{endpoint: e, at: b.now, reason: jobs.ReasonRejected})
			close(late)
			<-commit
			return nil
		})
	}()
	<-late
	b.now = b.now.Add(30 * time.Second)
	b.discard(e)
	b.look()
	if a := b.one(TaskDiscarded); a.Count != 1 {
		t.Fatalf("before the commit the alert counts %d, want 1", a.Count)
	}
	close(commit)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(5 * time.Second)
	b.look()
	if a := b.one(TaskDiscarded); a.Count != 2 || !a.FirstAt.Equal(b.now.Add(-35*time.Second)) {
		t.Errorf("after the commit the alert counts %d since %v, want 2 since the late one", a.Count, a.FirstAt)
	}
}

func TestDiscarded_ANodeWhoseClockIsAnHourOffIsSeenWithinAMinute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	b.look()
	b.insert(task{endpoint: e, at: b.now.Add(-time.Hour), reason: jobs.ReasonRejected})
	b.insert(task{endpoint: e, at: b.now.Add(time.Hour), reason: jobs.ReasonRejected})
	b.now = b.now.Add(time.Minute)
	b.look()
	if a := b.one(TaskDiscarded); a.Count != 2 {
		t.Errorf("the alert counts %d, want both", a.Count)
	}
	// A clock that is ahead must not carry the watermark past the others.
	b.now = b.now.Add(5 * time.Second)
	b.discard(e)
	b.look()
	if a := b.one(TaskDiscarded); a.Count != 3 {
		t.Errorf("the alert counts %d, want all three", a.Count)
	}
}

func TestDiscarded_AnotherScannerGoesOnWhereTheLastStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	b.discard(e)
	b.look()
	// Nobody scans for three hours: longer than a scan looks back.
	b.now = b.now.Add(time.Minute)
	b.discard(e)
	b.now = b.now.Add(3 * time.Hour)
	b.discard(e)
	b.scanner = b.newScanner()
	b.look()
	if a := b.one(TaskDiscarded); a.Count != 3 {
		t.Errorf("after the restart the alert counts %d, want 3", a.Count)
	}
}

func TestDiscarded_AStormIsCountedInBatches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	const storm = 2*discardBatch + 100
	b.exec(`insert into river_job (state, kind, queue, args, metadata, attempt, max_attempts, created_at, scheduled_at, finalized_at)
		select 'discarded', 'webhook.deliver', 'webhook', '{}', jsonb_build_object('project_id', $1::text, 'endpoint_id', $2::text, 'outcome', 'done', 'reason', 'endpoint_disabled'),
			1, 21, $3, $3, $3 from generate_series(1, $4)`, b.project, e, b.now, storm)
	b.look()
	if a := b.one(TaskDiscarded); a.Count != storm || !strings.Contains(a.Text, "4,100 deliveries") {
		t.Errorf("the alert counts %d and says %q, want %d", a.Count, a.Text, storm)
	}
	// They are ticked off in batches as well, over several scans, and the alert ends with the last.
	b.exec(`update river_job set state = 'completed' where endpoint_id = $1`, e)
	scans := 0
	for b.one(TaskDiscarded).State == StateOpen {
		if scans++; scans > storm {
			t.Fatal("the alert never ends")
		}
		b.look()
	}
	if scans < storm/undoneBatch {
		t.Errorf("%d tasks were ticked off in %d scans, want at most %d in each", storm, scans, undoneBatch)
	}
}

func TestDiscarded_ResolvesItselfWhenNoTaskIsLeft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	retried, removed, completed := b.discard(e), b.discard(e), b.discard(e)
	b.look()
	if _, err := b.client.Retry(b.ctx, b.owner, b.project, retried); err != nil {
		t.Fatal(err)
	}
	b.exec(`delete from river_job where id = $1`, removed)
	b.look()
	if a := b.one(TaskDiscarded); a.State != StateOpen {
		t.Fatalf("the alert is %s while a task is discarded: %s", a.State, a.ResolvedWhy)
	}
	b.exec(`update river_job set state = 'completed' where id = $1`, completed)
	b.look()
	b.resolvedItself(TaskDiscarded, "all of its tasks were retried, completed or removed")

	// The retried one fails again: that is a new alert.
	b.now = b.now.Add(time.Minute)
	b.exec(`update river_job set state = 'discarded', finalized_at = $2 where id = $1`, retried, b.now)
	b.look()
	if all := b.all(TaskDiscarded); len(all) != 2 || all[1].State != StateOpen || all[1].Count != 1 {
		t.Errorf("the alerts are %+v, want a second, open, with 1", all)
	}
}

func TestDiscarded_ResolvesItselfWhenNothingNewComesForSevenDays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.discard(b.newEndpoint("https://hooks.northwind.example/"))
	b.look()
	b.now = b.now.Add(7*24*time.Hour - time.Second)
	b.look()
	if a := b.one(TaskDiscarded); a.State != StateOpen {
		t.Fatalf("a second before seven days are over the alert is %s", a.State)
	}
	b.now = b.now.Add(time.Second)
	b.look()
	b.resolvedItself(TaskDiscarded, "nothing new came for 7 days; tasks that are still discarded can be retried as before")
}

func TestDiscarded_ResolvedByHandComesBackOnlyForNewTasks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	b.discard(e)
	b.look()
	b.resolveByHand(b.one(TaskDiscarded))
	for range 2 {
		b.now = b.now.Add(2 * time.Minute)
		b.look()
	}
	if a := b.one(TaskDiscarded); a.State != StateResolved || a.ResolvedBy != "ines@acme.example" {
		t.Fatalf("the alert is %s by %q, want it resolved by the owner", a.State, a.ResolvedBy)
	}
	b.discard(e)
	b.look()
	all := b.all(TaskDiscarded)
	if len(all) != 2 || all[1].State != StateOpen || all[1].Count != 1 {
		t.Fatalf("the alerts are %+v, want a second, open, with the new task alone", all)
	}
	if all[0].ResolvedBy != "ines@acme.example" || all[0].ResolvedWhy != "" {
		t.Errorf("the first is resolved by %q: %q, want it left as it was", all[0].ResolvedBy, all[0].ResolvedWhy)
	}
}

func TestDiscarded_LeavesOutWhatSomebodyChose(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tested, deleted := b.newEndpoint("https://hooks.northwind.example/"), b.newEndpoint("https://old.partner.example/")
	b.exec(`update endpoints set deleted_at = now() where id = $1`, deleted)
	b.insert(task{endpoint: tested, at: b.now, reason: "test_failed", label: map[string]string{"event_type": testEventType}})
	b.insert(task{endpoint: deleted, at: b.now, reason: jobs.ReasonEndpointDisabled})
	b.insert(task{project: "-", kind: "ledger.partitions", queue: jobs.QueueMaintenance, at: b.now, reason: jobs.ReasonAttemptsExhausted})
	b.look()
	b.none(TaskDiscarded)
	if n := scan[int](b, `select count(*) from alert_counted`); n != 2 {
		t.Errorf("%d tasks are noted as seen, want the test and the one of the deleted endpoint", n)
	}
}

func TestDiscarded_EndsWithItsEndpoint(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	b.discard(e)
	b.look()
	b.exec(`update endpoints set deleted_at = now() where id = $1`, e)
	b.look()
	b.resolvedItself(TaskDiscarded, "its endpoint was deleted")
}

func TestDiscarded_ByTheProductsWorker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kind := jobs.Kind[struct{}]{Name: "webhook.fanout", Queue: jobs.QueueWebhook}
	ledger := jobs.NewLedger(jobs.LedgerOptions{Pool: b.pool, Logger: quiet})
	defer ledger.Close()
	worker, err := jobs.NewWorker(jobs.WorkerOptions{Client: b.client, Pool: b.pool, Ledger: ledger, Logger: quiet, Testing: true,
		Queues: map[string]jobs.QueueConfig{jobs.QueueWebhook: {Workers: 2, Cooldown: 5 * time.Millisecond, Poll: 20 * time.Millisecond}}},
		jobs.On(kind, func(context.Context, *jobs.Job[struct{}]) error {
			return jobs.Discard(errors.New("no"), jobs.ReasonRejected)
		}))
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(b.ctx); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := worker.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	err = store.InTx(b.ctx, b.pool, func(tx pgx.Tx) error {
		_, err := jobs.InsertTx(b.ctx, b.client, tx, kind, struct{}{}, jobs.Insert{ProjectID: b.project})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.scanner = NewScanner(Options{Pool: b.pool, Policies: b.policies, Logger: quiet}) // by the database's clock
	deadline := time.Now().Add(30 * time.Second)
	for len(b.all(TaskDiscarded)) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("no alert came within 30 s")
		}
		b.look()
	}
	a := b.one(TaskDiscarded)
	if want := "webhook.fanout had 1 task discarded, because the receiver rejected what was sent."; !strings.HasPrefix(a.Sentence(), want) {
		t.Errorf("the alert says %q, want %q", a.Sentence(), want)
	}
}

func ExampleAlert_Sentence() {
	fmt.Println(Alert{About: "api.lumen.example", Text: "failed 20 times in a row."}.Sentence())
	// Output: api.lumen.example failed 20 times in a row.
}
