package events

import (
	"fmt"
	"testing"

	"entrega/internal/store"
)

// flood stores n events of a project with few statements.
func (b *bundle) flood(t *testing.T, project string, n int) {
	t.Helper()
	for at := 0; at < n; at += MaxBatch {
		batch := make([]New, min(MaxBatch, n-at))
		for i := range batch {
			batch[i] = New{ID: fmt.Sprintf("%s-%d", project, at+i), Type: "a.b", Data: []byte(`{}`)}
		}
		if _, err := PublishBatch(b.ctx, b.pool, project, batch); err != nil {
			t.Fatal(err)
		}
	}
}

// handedOver is how many events of a project have, or had, their fan-out in the queue.
func (b *bundle) handedOver(t *testing.T, project string) (n int) {
	t.Helper()
	err := b.pool.QueryRow(b.ctx, `select count(*) from events e left join event_outbox w on w.seq = e.seq where e.project_id = $1 and (w.seq is null or w.fanned_out_at is not null)`, project).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRelay_AProjectWithVeryManyEventsDelaysNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	calm := store.NewID("project")
	b.exec(t, `insert into projects (id, name) values ($1, 'Calm')`, calm)
	b.flood(t, b.project, projectWindow+500)
	b.flood(t, calm, 1)
	r := b.newRelay(t, 100)
	if _, _, err := r.relayTurn(b.ctx); err != nil {
		t.Fatal(err)
	}
	if b.handedOver(t, calm) != 1 {
		t.Errorf("the calm project's event waits behind %d of another", b.handedOver(t, b.project))
	}
	sweep(t, b, r)
	if n := b.handedOver(t, b.project); n != projectWindow {
		t.Errorf("%d events of one project are handed over, want its window of %d", n, projectWindow)
	}
	b.exec(t, `delete from event_outbox where project_id = $1 and fanned_out_at is not null`, b.project)
	sweep(t, b, r)
	if n := b.handedOver(t, b.project); n != projectWindow+500 {
		t.Errorf("%d events are handed over once there is room again, want all", n)
	}
}
