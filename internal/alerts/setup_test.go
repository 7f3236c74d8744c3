package alerts

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
	"entrega/internal/store/storetest"
	"entrega/internal/tenant"
	"entrega/jobs"
)

var quiet = slog.New(slog.DiscardHandler)

// bundle is a fresh database with a project in it, and a scanner whose clock the test moves.
type bundle struct {
	t        *testing.T
	ctx      context.Context
	pool     *pgxpool.Pool
	policies *jobs.PolicySet
	client   *jobs.Client
	periodic []jobs.Periodic
	scanner  *Scanner
	now      time.Time
	project  string
	owner    tenant.Actor
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{t: t, ctx: t.Context(), pool: storetest.New(t, jobs.MigrateDSN), now: time.Now().UTC().Truncate(time.Microsecond)}
	var err error
	if b.policies, err = jobs.LoadPolicies(""); err != nil {
		t.Fatal(err)
	}
	if err := b.policies.StoreVersions(b.ctx, b.pool); err != nil {
		t.Fatal(err)
	}
	if b.client, err = jobs.NewClient(jobs.ClientOptions{Pool: b.pool, Policies: b.policies, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	b.scanner = b.newScanner()
	b.project = b.newProject()
	b.owner = tenant.Actor{Kind: tenant.ActorUser, ID: "user_owner", Name: "ines@acme.example", ProjectID: b.project, Role: tenant.RoleOwner}
	return b
}

// newScanner is a scanner as another node, or the same one after a restart, has it.
func (b *bundle) newScanner() *Scanner {
	return NewScanner(Options{Pool: b.pool, Policies: b.policies, Periodic: b.periodic, Logger: quiet, Now: func() time.Time { return b.now }})
}

func (b *bundle) newProject() string {
	b.t.Helper()
	id := store.NewID("project")
	b.exec(`insert into projects (id, name) values ($1, 'Shop')`, id)
	return id
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.pool.Exec(b.ctx, sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

// scan reads the one value that sql answers.
func scan[T any](b *bundle, sql string, args ...any) T {
	b.t.Helper()
	var v T
	if err := b.pool.QueryRow(b.ctx, sql, args...).Scan(&v); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// look scans once by every rule.
func (b *bundle) look() {
	b.t.Helper()
	if err := b.scanner.Scan(b.ctx); err != nil {
		b.t.Fatal(err)
	}
}

// all reads every alert of a kind, the oldest first.
func (b *bundle) all(k Kind) []Alert {
	b.t.Helper()
	rows, err := b.pool.Query(b.ctx, `select `+alertColumns+` from alerts where kind = $1 order by created_at, id`, string(k))
	if err != nil {
		b.t.Fatal(err)
	}
	alerts, err := pgx.CollectRows(rows, pgx.RowToStructByName[Alert])
	if err != nil {
		b.t.Fatal(err)
	}
	return alerts
}

// one is the only alert of a kind.
func (b *bundle) one(k Kind) Alert {
	b.t.Helper()
	all := b.all(k)
	if len(all) != 1 {
		b.t.Fatalf("there are %d alerts of kind %s, want 1: %+v", len(all), k, all)
	}
	return all[0]
}

// none fails the test when there is an alert of a kind.
func (b *bundle) none(k Kind) {
	b.t.Helper()
	if all := b.all(k); len(all) != 0 {
		b.t.Fatalf("there are alerts of kind %s, want none: %+v", k, all)
	}
}

// resolvedItself checks that the only alert of a kind is resolved, by nobody, and says why.
func (b *bundle) resolvedItself(k Kind, why string) {
	b.t.Helper()
	a := b.one(k)
	if a.State != StateResolved || a.ResolvedWhy != why || a.ResolvedBy != "" || a.ResolvedAt == nil || !a.ResolvedAt.Equal(b.now) {
		b.t.Fatalf("the alert is %s at %v by %q: %q, want it resolved at %v by itself: %q", a.State, a.ResolvedAt, a.ResolvedBy, a.ResolvedWhy, b.now, why)
	}
}

// resolveByHand resolves an alert as the owner.
func (b *bundle) resolveByHand(a Alert) {
	b.t.Helper()
	if _, err := Resolve(b.ctx, b.pool, b.owner, b.project, a.ID); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) newEndpoint(url string) string {
	b.t.Helper()
	id := store.NewID("endpoint")
	b.exec(`insert into endpoints (id, project_id, url, updated_at) values ($1, $2, $3, $4)`, id, b.project, url, b.now.Add(-time.Hour))
	b.exec(`insert into endpoint_lanes (endpoint_id, project_id) values ($1, $2)`, id, b.project)
	return id
}

// task is a row of the queue, as River and the worker leave it.
type task struct {
	project, endpoint, kind, queue string
	state                          string
	at                             time.Time // when it finished, or since when it waits
	reason                         string
	label                          map[string]string
	// byRescuer is a row that River's rescuer finished: it leaves the marks of the last attempt as they are.
	byRescuer bool
}

func (b *bundle) insert(k task) int64 { return insertIn(b, b.pool, k) }

func insertIn(b *bundle, db store.DB, k task) int64 {
	b.t.Helper()
	if k.kind == "" {
		k.kind = deliverKind
	}
	if k.queue == "" {
		k.queue = "webhook"
	}
	if k.state == "" {
		k.state = "discarded"
	}
	meta := map[string]any{"max": 18, "attempt": 18, "label": k.label}
	if k.project != "-" {
		meta["project_id"] = b.project
	}
	if k.project != "-" && k.project != "" {
		meta["project_id"] = k.project
	}
	if k.endpoint != "" {
		meta["endpoint_id"] = k.endpoint
	}
	lastError := `{"at":"2026-03-01T12:00:00Z","attempt":21,"error":"The receiver answered 500.","trace":""}`
	switch {
	case k.byRescuer:
		meta["outcome"], meta["reason"], meta["river:rescue_count"] = "retry", "failed", 1
		lastError = `{"at":"2026-03-01T12:00:00Z","attempt":21,"error":"Stuck job rescued by JobRescuer","trace":""}`
	case k.state == "discarded":
		meta["outcome"], meta["reason"] = "done", k.reason
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		b.t.Fatal(err)
	}
	var id int64
	err = db.QueryRow(b.ctx, `
		insert into river_job (state, kind, queue, args, metadata, attempt, max_attempts, priority, created_at, scheduled_at, attempted_at, finalized_at, errors)
		values ($1::river_job_state, $2, $3, '{}', $4, 21, 21, 1, $5, $5, $5, case when $1::text in ('discarded', 'completed', 'cancelled') then $5::timestamptz end, array[$6::jsonb])
		returning id`, k.state, k.kind, k.queue, raw, k.at, lastError).Scan(&id)
	if err != nil {
		b.t.Fatal(err)
	}
	return id
}

// discard is a delivery that used up its attempts now.
func (b *bundle) discard(endpoint string) int64 {
	b.t.Helper()
	return b.insert(task{endpoint: endpoint, at: b.now, reason: jobs.ReasonAttemptsExhausted})
}

// attempt is a row of the ledger.
type attempt struct {
	project, endpoint string
	at                time.Time
	status            int
	class, decision   string
	reason            string
}

func (b *bundle) record(a attempt) { recordIn(b, b.pool, a) }

func recordIn(b *bundle, db store.DB, a attempt) {
	b.t.Helper()
	if a.project == "" {
		a.project = b.project
	}
	zero := make([]byte, 32)
	_, err := db.Exec(b.ctx, `
		insert into attempts (project_id, task_id, seq, attempt, charged, kind, trigger, endpoint_id, policy_profile, policy_version, policy_hash,
			started_at, finished_at, class, status, decision, reason, node_id, prev_hash, hash)
		values ($1, 1, 1, 1, true, 'webhook.deliver', 'schedule', nullif($2, ''), 'standard', 1, $3, $4, $4, $5, nullif($6, 0), $7, $8, 'node_1', $3, $3)`,
		a.project, a.endpoint, zero, a.at, a.class, a.status, a.decision, a.reason)
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) refuse(endpoint string, status int, at time.Time) {
	b.t.Helper()
	b.record(attempt{endpoint: endpoint, at: at, status: status, class: "client", decision: "permanent_failure", reason: "rejected"})
}
