package alerts

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/store/storetest"
)

// big are the tables that no scan may read or sort as a whole. Some rule looks into each of the first.
var (
	looked = []string{"river_job", "attempts", "event_outbox", "alert_counted"}
	big    = append([]string{"events", "event_outcomes"}, looked...)
)

// TestPlans_NoScanReadsOrSortsABigTable runs every rule on a large installation, records each statement with its arguments,
// and looks at its plan.
func TestPlans_NoScanReadsOrSortsABigTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.seed(100_000)
	statements := b.recordScans(3)
	if len(statements) < 15 {
		t.Fatalf("%d statements were recorded, want those of every rule", len(statements))
	}
	rows := b.tableRows()
	touched := map[string]bool{}
	for _, s := range statements {
		for _, n := range slices.Concat(b.explain(s), b.explainForAnyArguments(s)) {
			relation := bigTable(n.Relation)
			touched[relation] = true
			if relation != "" && n.Type == "Seq Scan" && rows[n.Relation] > 1000 {
				t.Errorf("%s is read as a whole by:\n%s", n.Relation, s.sql)
			}
			if n.Type == "Sort" && n.Rows > 20_000 {
				t.Errorf("%.0f rows are sorted by:\n%s", n.Rows, s.sql)
			}
		}
	}
	for _, table := range looked {
		if !touched[table] {
			t.Errorf("no plan reads %s, so this test proves nothing about it", table)
		}
	}
}

// seed makes a large installation that is busy and well, with a little of every trouble in it.
func (b *bundle) seed(tasks int) {
	b.t.Helper()
	b.exec(`insert into projects (id, name) select 'project_' || n, 'Shop' from generate_series(1, 50) n`)
	b.exec(`insert into endpoints (id, project_id, url, updated_at) select 'endpoint_' || n, 'project_' || (n % 50 + 1), 'https://' || n || '.example/', now() - interval '1 day'
		from generate_series(1, 5000) n`)
	b.exec(`insert into endpoint_lanes (endpoint_id, project_id, failing_since, failures_in_a_row)
		select id, project_id, case when random() < 0.01 then now() - interval '4 days' end, 12 from endpoints`)
	b.exec(`update endpoints set disabled_at = now(), disabled_reason = 'gone' where right(id, 2) = '77'`)
	b.exec(`insert into river_job (state, kind, queue, args, metadata, attempt, max_attempts, created_at, scheduled_at, finalized_at)
		select s.state, 'webhook.deliver', 'webhook', '{}',
			jsonb_build_object('project_id', 'project_' || (n % 50 + 1), 'endpoint_id', 'endpoint_' || (n % 5000 + 1), 'outcome', 'done', 'reason', 'rejected'),
			1, 21, s.at, s.at, case when s.state in ('completed', 'discarded') then s.at end
		from generate_series(1, $1::int) n
		cross join lateral (select case when n % 10 = 0 then 'discarded' when n % 50 = 1 then 'pending' else 'completed' end::river_job_state as state,
			now() - n * interval '10 seconds' as at) s`, tasks)
	b.exec(`insert into events (project_id, id, type, data, created_at)
		select 'project_' || (n % 50 + 1), 'event_' || n, 'order.created', '{}', now() - n * interval '10 seconds' from generate_series(1, $1::int) n`, tasks)
	b.exec(`update event_outbox set fanned_out_at = case when seq > 1500 then now() end, poisoned_at = case when seq % 1000 = 0 then now() end`)
	b.exec(`insert into attempts (project_id, task_id, seq, attempt, charged, kind, trigger, endpoint_id, policy_profile, policy_version, policy_hash,
			started_at, finished_at, class, status, decision, reason, node_id, prev_hash, hash)
		select 'project_' || (n % 50 + 1), n, 1, 1, true, 'webhook.deliver', 'schedule', 'endpoint_' || (n % 5000 + 1), 'standard', 1, h, s.at, s.at,
			case when n % 500 = 0 then 'client' else 'success' end, case when n % 500 = 0 then 401 else 200 end,
			case when n % 900 = 1 then 'unknown' else 'accepted' end, 'accepted', 'node_1', h, h
		from generate_series(1, $1::int) n
		cross join lateral (select now() - n * interval '5 seconds' as at, decode(repeat('00', 32), 'hex') as h) s`, tasks)
	b.exec(`analyze`)
}

// statement is what was sent to the database.
type statement struct {
	sql  string
	args []any
}

// recorder notes every statement that a rule sends. A batch comes as its statements.
type recorder struct {
	mu         sync.Mutex
	statements map[string]statement
}

func (r *recorder) note(sql string, args []any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	verb := strings.ToLower(strings.TrimSpace(sql))
	for _, v := range []string{"select", "insert", "update", "delete", "with"} {
		if strings.HasPrefix(verb, v) {
			r.statements[sql] = statement{sql, args}
		}
	}
}

func (r *recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	r.note(d.SQL, d.Args)
	return ctx
}

func (r *recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		r.note(q.SQL, q.Arguments)
	}
	return ctx
}

func (r *recorder) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (r *recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// recordScans scans a few times and returns the statements, each once with its last arguments. The table of what is counted
// is analysed in between, as autovacuum does.
func (b *bundle) recordScans(times int) []statement {
	b.t.Helper()
	r := &recorder{statements: map[string]statement{}}
	traced, err := store.Open(b.ctx, storetest.DSN(b.pool), store.Options{MaxConns: 2, Tracer: r})
	if err != nil {
		b.t.Fatal(err)
	}
	defer traced.Close()
	scanner := NewScanner(Options{Pool: traced, Policies: b.policies, Periodic: b.periodic, Now: func() time.Time { return b.now }})
	for range times {
		if err := scanner.Scan(b.ctx); err != nil {
			b.t.Fatal(err)
		}
		b.exec(`analyze alert_counted, alerts`)
		b.now = b.now.Add(time.Minute)
	}
	all := make([]statement, 0, len(r.statements))
	for _, s := range r.statements {
		all = append(all, s)
	}
	return all
}

// node is a step of a plan.
type node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Plan Rows"`
	Plans    []node  `json:"Plans"`
}

func (n node) all() []node {
	nodes := []node{n}
	for _, below := range n.Plans {
		nodes = append(nodes, below.all()...)
	}
	return nodes
}

// explain is the plan for a statement's own arguments.
func (b *bundle) explain(s statement) []node {
	b.t.Helper()
	return b.planOn(b.pool, "explain (format json) "+s.sql, s.args...)
}

// explainForAnyArguments is the plan that a statement may get once it has been sent a few times.
func (b *bundle) explainForAnyArguments(s statement) []node {
	b.t.Helper()
	sql, args := s.sql, s.args
	if len(args) == 1 {
		if named, ok := args[0].(pgx.QueryRewriter); ok {
			var err error
			if sql, args, err = named.RewriteQuery(b.ctx, nil, sql, nil); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	conn, err := b.pool.Acquire(b.ctx)
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(b.ctx, "set plan_cache_mode = force_generic_plan; prepare planned as "+sql, pgx.QueryExecModeSimpleProtocol); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	execute := "execute planned"
	if len(args) > 0 {
		execute += "(" + strings.TrimSuffix(strings.Repeat("null,", len(args)), ",") + ")"
	}
	nodes := b.planOn(conn, "explain (format json) "+execute, pgx.QueryExecModeSimpleProtocol)
	if _, err := conn.Exec(b.ctx, "deallocate planned; reset plan_cache_mode", pgx.QueryExecModeSimpleProtocol); err != nil {
		b.t.Fatal(err)
	}
	return nodes
}

func (b *bundle) planOn(db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, explain string, args ...any) []node {
	b.t.Helper()
	var raw []byte
	if err := db.QueryRow(b.ctx, explain, args...).Scan(&raw); err != nil {
		b.t.Fatalf("%s: %v", explain, err)
	}
	var plans []struct{ Plan node }
	if err := json.Unmarshal(raw, &plans); err != nil {
		b.t.Fatal(err)
	}
	return plans[0].Plan.all()
}

// tableRows is how many rows each table has, as the planner knows it.
func (b *bundle) tableRows() map[string]float64 {
	b.t.Helper()
	rows, err := b.pool.Query(b.ctx, `select relname::text, reltuples::float8 from pg_class where relkind = 'r'`)
	if err != nil {
		b.t.Fatal(err)
	}
	counts := map[string]float64{}
	var name string
	var n float64
	if _, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { counts[name] = n; return nil }); err != nil {
		b.t.Fatal(err)
	}
	return counts
}

// bigTable is the big table that a relation is, or is a partition of.
func bigTable(relation string) string {
	for _, table := range big {
		if relation == table || table == "attempts" && strings.HasPrefix(relation, "attempts_") {
			return table
		}
	}
	return ""
}
