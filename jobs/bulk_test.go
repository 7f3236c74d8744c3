package jobs

import (
	"context"
	"errors"
	"testing"
	"time"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

func TestBulk_RetriesAllThatMatchAndNothingElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 450 {
		b.insert(Insert{ScheduledAt: time.Now().Add(time.Hour)})
	}
	b.exec(`update river_job set state = 'discarded', finalized_at = now()`)
	pending := b.insert(Insert{ScheduledAt: time.Now().Add(time.Hour)})
	foreign := b.insert(Insert{ProjectID: "project_other"})
	b.exec(`update river_job set state = 'discarded', finalized_at = now() where id = $1`, foreign)

	f := TaskFilter{Kind: "webhook.deliver"}
	n, err := b.client.CountBulk(t.Context(), b.pool, testProject, BulkRetry, f)
	if err != nil || n != 450 {
		t.Fatal(n, err)
	}
	bulk, err := b.client.StartBulk(t.Context(), testActor, testProject, BulkRetry, f)
	if err != nil {
		t.Fatal(err)
	}
	b.start(WorkerOptions{Queues: map[string]QueueConfig{QueueIndex: {Workers: 1, Cooldown: 5 * time.Millisecond, Poll: 20 * time.Millisecond}}},
		On(BulkTasks, b.client.WorkBulk), On(deliverKind, always(nil)))
	for bulk.State != BulkCompleted {
		<-b.events
		if bulk, err = BulkByID(t.Context(), b.pool, testProject, bulk.ID); err != nil {
			t.Fatal(err)
		}
	}
	if bulk.Done != 450 || bulk.Skipped != 0 || bulk.FinishedAt == nil {
		t.Fatalf("%+v", bulk)
	}
	counts, err := b.client.CountTasks(t.Context(), b.pool, testProject, TaskFilter{Kind: "webhook.deliver"})
	if err != nil {
		t.Fatal(err)
	}
	if counts[StatePending] != 451 || counts[StateDiscarded] != 0 || b.task(pending).State != StatePending {
		t.Fatal(counts)
	}
	other, err := b.client.TaskByID(t.Context(), b.pool, "project_other", foreign)
	if err != nil || other.State != StateDiscarded {
		t.Fatal(other, err)
	}
}

func TestBulk_TwoClicksMakeOneAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	task := b.insert(Insert{})
	b.exec(`update river_job set state = 'discarded', finalized_at = now(), attempted_at = now() where id = $1`, task)
	var bulks [2]Bulk
	for i := range bulks {
		var err error
		if bulks[i], err = b.client.StartBulk(t.Context(), testActor, testProject, BulkRetry, TaskFilter{State: StateDiscarded}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []Bulk{{Done: 1}, {Skipped: 1}} {
		if _, err := b.client.workChunk(t.Context(), BulkArgs{ProjectID: testProject, BulkID: bulks[i].ID}); err != nil {
			t.Fatal(err)
		}
		got, err := BulkByID(t.Context(), b.pool, testProject, bulks[i].ID)
		if err != nil || got.Done != want.Done || got.Skipped != want.Skipped {
			t.Errorf("bulk %d: done %d, left alone %d, want %d and %d (%v)", i, got.Done, got.Skipped, want.Done, want.Skipped, err)
		}
		// The attempt of the first one fails before the second one comes to its turn.
		b.exec(`update river_job set state = 'discarded', finalized_at = now(), attempted_at = now() where id = $1`, task)
	}
}

func TestBulk_CancelStopsBetweenChunks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range bulkChunk + 1 {
		b.insert(Insert{ScheduledAt: time.Now().Add(time.Hour)})
	}
	bulk, err := b.client.StartBulk(t.Context(), testActor, testProject, BulkCancel, TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	args := BulkArgs{ProjectID: testProject, BulkID: bulk.ID}
	if more, err := b.client.workChunk(t.Context(), args); err != nil || !more {
		t.Fatal(more, err)
	}
	if _, err := b.client.CancelBulk(t.Context(), testActor, testProject, bulk.ID); err != nil {
		t.Fatal(err)
	}
	if more, err := b.client.workChunk(t.Context(), args); err != nil || more {
		t.Fatal(more, err)
	}
	if bulk, err = BulkByID(t.Context(), b.pool, testProject, bulk.ID); err != nil || bulk.Done != bulkChunk || bulk.State != BulkCancelled {
		t.Fatalf("%+v, %v", bulk, err)
	}
	if _, err := b.client.CancelBulk(t.Context(), testActor, testProject, bulk.ID); !IsConflict(err, CodeFinished) {
		t.Fatal(err)
	}
}

func TestBulk_RefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var invalid *store.InvalidError
	if _, err := b.client.StartBulk(t.Context(), testActor, testProject, BulkRetry, TaskFilter{State: StateCompleted}); !errors.As(err, &invalid) {
		t.Error(err)
	}
	viewer := testActor
	viewer.Role = tenant.RoleViewer
	if _, err := b.client.StartBulk(t.Context(), viewer, testProject, BulkRetry, TaskFilter{}); !errors.Is(err, tenant.ErrForbidden) {
		t.Error(err)
	}
	if _, err := b.client.StartBulk(context.WithoutCancel(t.Context()), testActor, "project_other", BulkRetry, TaskFilter{}); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}
