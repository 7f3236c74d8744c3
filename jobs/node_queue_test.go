package jobs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// queues are the queues of the tasks that are due, in the order of ids.
func (b *bundle) queues(t *testing.T) []string {
	t.Helper()
	rows, err := b.pool.Query(t.Context(), `select queue from river_job where state = 'available' order by id`)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestAdoptOrphans_TakesOverFromNodesThatAreNoMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.pool.Exec(t.Context(), `insert into nodes (id, host, version, seen_at) values ('node_live', 'h', '1', now()), ('node_silent', 'h', '1', now() - interval '6 seconds')`); err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"", NodeQueue(QueueWebhook, "node_live"), NodeQueue(QueueWebhook, "node_silent"), NodeQueue(QueueWebhook, "node_unknown")} {
		b.insert(Insert{Queue: queue})
	}
	own := b.queues(t)[0]
	n, err := AdoptOrphans(t.Context(), b.pool)
	if err != nil || n != 2 {
		t.Fatalf("adopted %d, %v", n, err)
	}
	want := []string{own, NodeQueue(QueueWebhook, "node_live"), QueueWebhook, QueueWebhook}
	if diff := cmp.Diff(want, b.queues(t)); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}

func TestForget_LeavesWhatIsDueInTheNodesQueueToAll(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.insert(Insert{Queue: NodeQueue(QueueWebhook, "node_a")})
	b.insert(Insert{Queue: NodeQueue(QueueWebhook, "node_b")})
	err := store.InTx(t.Context(), b.pool, func(tx pgx.Tx) error { return Node{ID: "node_a"}.forget(t.Context(), tx) })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{QueueWebhook, NodeQueue(QueueWebhook, "node_b")}
	if diff := cmp.Diff(want, b.queues(t)); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}
