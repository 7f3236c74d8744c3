package webhooks

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store/storetest"
	"entrega/jobs"
)

// TestFanout_AnotherEndpointsBacklogIsNotRead: the statistics were taken while nearly all tasks waited for one endpoint. The windows of the
// others must not be looked for among those.
func TestFanout_AnotherEndpointsBacklogIsNotRead(t *testing.T) {
	t.Parallel()
	const backlog = 20_000
	pool := storetest.New(t, jobs.MigrateDSN)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }() // The test has seen what it wants.
	for _, name := range []string{"busy", "calm"} {
		insertLane(t, tx, "project_"+name, "endpoint_"+name)
	}
	run(t, tx, `
		insert into river_job (kind, max_attempts, args, metadata, queue, state)
		select $1, 15, '{}', '{"project_id": "project_busy", "endpoint_id": "endpoint_busy"}', $2, 'pending' from generate_series(1, $3)`,
		Deliver.Name, jobs.QueueWebhook, backlog)
	run(t, tx, `analyze river_job`)
	looked := func() (rows int) {
		t.Helper()
		if err := tx.QueryRow(t.Context(), `select coalesce(seq_tup_read + idx_tup_fetch, 0) from pg_stat_xact_user_tables where relname = 'river_job'`).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	windows := func(project string) []fanoutEndpoint {
		t.Helper()
		var endpoints []fanoutEndpoint
		batch := &pgx.Batch{}
		readEndpoints(batch, project, "", nil, &endpoints)
		if err := tx.SendBatch(t.Context(), batch).Close(); err != nil {
			t.Fatal(err)
		}
		return endpoints
	}
	before := looked()
	if calm := windows("project_calm"); len(calm) != 1 || calm[0].Backlog || calm[0].Queued != 0 {
		t.Errorf("the calm endpoint: %+v", calm)
	}
	if n := looked() - before; n > 10 {
		t.Errorf("%d tasks are looked at for the windows of a project that has none", n)
	}
	if busy := windows("project_busy"); len(busy) != 1 || !busy[0].Backlog {
		t.Errorf("the busy endpoint: %+v", busy)
	}

	// The backlog is gone, and the statistics are what they were.
	run(t, tx, `update river_job set state = 'completed', finalized_at = now()`)
	before = looked()
	if busy := windows("project_busy"); len(busy) != 1 || busy[0].Backlog {
		t.Errorf("the endpoint that was busy: %+v", busy)
	}
	if n := looked() - before; n > 10 {
		t.Errorf("%d tasks are looked at for a backlog that is gone", n)
	}
}
