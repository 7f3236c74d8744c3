package jobs

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river/rivertype"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

var adminActor = tenant.Actor{Kind: tenant.ActorUser, ID: "user_admin", Name: "admin", Admin: true}

func maintenance() WorkerOptions {
	return WorkerOptions{Queues: map[string]QueueConfig{QueueMaintenance: {Workers: 1, Cooldown: 5 * time.Millisecond, Poll: 20 * time.Millisecond}}}
}

func TestPeriodic_RunsOnStartAndOnDemandAndIsNotRetried(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var runs atomic.Int32
	p := Periodic{Name: "test.periodic", Every: time.Hour, RunOnStart: true, Do: func(context.Context) error {
		if runs.Add(1) == 1 {
			return errors.New("the first run fails")
		}
		return nil
	}}
	o := maintenance()
	o.Periodic = []Periodic{p}
	b.start(o)
	e := <-b.events
	if e.Job.Kind != p.Name || e.Job.State != "discarded" {
		t.Fatalf("%s %s", e.Job.Kind, e.Job.State)
	}
	last, ran, err := LastRun(t.Context(), b.pool, p)
	if err != nil || !ran || last.FailuresInARow != 1 || last.State != StateDiscarded || last.Error == "" || !last.SucceededNeverYet {
		t.Fatalf("%+v %v %v", last, ran, err)
	}
	if err := b.client.RunPeriodic(t.Context(), testActor, p); !errors.Is(err, tenant.ErrForbidden) {
		t.Fatal(err)
	}
	if err := b.client.RunPeriodic(t.Context(), adminActor, p); err != nil {
		t.Fatal(err)
	}
	<-b.events
	if last, _, err = LastRun(t.Context(), b.pool, p); err != nil || last.State != StateCompleted || last.FailuresInARow != 0 {
		t.Fatalf("%+v %v", last, err)
	}
}

func TestPeriodic_ACompletedRunDoesNotBarTheNext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var runs atomic.Int32
	p := Periodic{Name: "test.periodic", Every: time.Hour, Do: func(context.Context) error { runs.Add(1); return nil }}
	o := maintenance()
	o.Periodic = []Periodic{p}
	b.start(o)
	for i := range int32(3) {
		if err := b.client.RunPeriodic(t.Context(), adminActor, p); err != nil {
			t.Fatalf("run %d: %v", i+1, err)
		}
		if e := <-b.events; e.Job.State != rivertype.JobStateCompleted || runs.Load() != i+1 {
			t.Fatalf("run %d is %s, %d runs in all", i+1, e.Job.State, runs.Load())
		}
	}
}

func TestPeriodic_OneRunAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := Periodic{Name: "test.periodic", Every: time.Hour}
	if err := b.client.RunPeriodic(t.Context(), adminActor, p); err != nil {
		t.Fatal(err)
	}
	if err := b.client.RunPeriodic(t.Context(), adminActor, p); !IsConflict(err, CodeAlreadyQueued) {
		t.Errorf("error = %v, want that one is queued", err)
	}
}

func TestPeriodic_NextAtFollowsTheNodeThatLeads(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC)
	p := Periodic{Every: 6 * time.Hour}
	for _, c := range []struct{ now, want time.Duration }{{0, 6 * time.Hour}, {-time.Second, 6 * time.Hour}, {time.Minute, 6 * time.Hour}, {6 * time.Hour, 12 * time.Hour}, {25 * time.Hour, 30 * time.Hour}} {
		if got := p.NextAt(since, since.Add(c.now)); !got.Equal(since.Add(c.want)) {
			t.Errorf("%s after a node began to lead the next run is at %s, want %s after", c.now, got, c.want)
		}
	}
	if got := p.NextAt(time.Time{}, since); !got.IsZero() {
		t.Errorf("while no node leads the next run is at %s, want never", got)
	}
}

func TestLastRun_OfAJobThatNeverRan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, ran, err := LastRun(t.Context(), b.pool, Periodic{Name: "test.never"}); err != nil || ran {
		t.Fatal(ran, err)
	}
}

func TestLedgerPartitions_MakesTheComingDays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(`drop table attempts_` + time.Now().UTC().AddDate(0, 0, 3).Format("20060102"))
	if err := LedgerPartitions(b.pool).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := b.pool.QueryRow(t.Context(), `select count(*) from pg_inherits where inhparent = 'attempts'::regclass`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 10 { // yesterday to seven days ahead, and the default
		t.Fatalf("%d partitions", n)
	}
}

func TestQueues_PauseAndResumeAreAuditedAndOnlyForAdmins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.start(maintenance(), On(deliverKind, always(nil)))
	if err := b.client.PauseQueue(t.Context(), testActor, QueueMaintenance); !errors.Is(err, tenant.ErrForbidden) {
		t.Fatal(err)
	}
	if err := b.client.PauseQueue(t.Context(), adminActor, "no_such"); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	if err := b.client.PauseQueue(t.Context(), adminActor, QueueMaintenance); err != nil {
		t.Fatal(err)
	}
	queues, err := b.client.ListQueues(t.Context())
	if err != nil || len(queues) != 1 || queues[0].PausedAt.IsZero() {
		t.Fatalf("%+v %v", queues, err)
	}
	if err := b.client.ResumeQueue(t.Context(), adminActor, QueueMaintenance); err != nil {
		t.Fatal(err)
	}
	var audited int
	if err := b.pool.QueryRow(t.Context(), `select count(*) from audit_log where subject_kind = 'queue'`).Scan(&audited); err != nil || audited != 2 {
		t.Fatal(audited, err)
	}
	sizes, err := ListTableSizes(t.Context(), b.pool)
	if err != nil || len(sizes) < 10 {
		t.Fatal(sizes, err)
	}
	ours, river, err := SchemaVersions(t.Context(), b.pool)
	if err != nil || ours < 5 || river < 6 {
		t.Fatal(ours, river, err)
	}
}
