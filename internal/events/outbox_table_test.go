package events

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"entrega/internal/store"
	"entrega/internal/store/storetest"
	"entrega/jobs"
	"entrega/jobs/rawlimit"
	"entrega/migrations"
)

// migrateUpTo brings an empty database to the schema of an earlier build.
func (b bundle) migrateUpTo(t *testing.T, last string) {
	t.Helper()
	if err := rawlimit.Migrate(b.ctx, b.pool); err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	earlier := fstest.MapFS{}
	for _, name := range names {
		if name > last {
			break
		}
		text, err := migrations.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		earlier[name] = &fstest.MapFile{Data: text}
	}
	if err := store.Migrate(b.ctx, b.pool, earlier); err != nil {
		t.Fatal(err)
	}
}

func TestOutbox_TakesOverTheEventsOfAnEarlierSchema(t *testing.T) {
	t.Parallel()
	b := bundle{ctx: t.Context(), pool: storetest.New(t, nil)}
	b.migrateUpTo(t, "018_statistics.sql")
	b.project = b.newProject(t)
	b.exec(t, `insert into events (project_id, id, type, data, fanned_out_at, relay_failures, relay_error, poisoned_at, considered_at, deliveries, skipped) values
		($1, 'waiting', 'order.created', '1', null, 0, null, null, null, 0, null),
		($1, 'failed', 'order.created', '1', null, 2, 'no room', null, null, 0, null),
		($1, 'poisoned', 'order.created', '1', null, 5, 'no room', now(), null, 0, null),
		($1, 'handed', 'order.created', '1', now(), 0, null, null, null, 0, null),
		($1, 'done', 'order.created', '1', now(), 0, null, null, now(), 3, '{"counts":{"endpoint_disabled":1}}')`, b.project)

	if err := jobs.Migrate(b.ctx, b.pool); err != nil {
		t.Fatal(err)
	}
	outbox := scan[[]string](t, b, `select array_agg(concat_ws(' ', event_id, relay_failures, relay_error, fanned_out_at is not null, poisoned_at is not null) order by event_id)
		from event_outbox`)
	want := []string{"failed 2 no room f f", "handed 0 t f", "poisoned 5 no room f t", "waiting 0 f f"}
	if diff := cmp.Diff(want, outbox); diff != "" {
		t.Errorf("the outbox (-want +got):\n%s", diff)
	}
	done := b.event(t, "done")
	if done.Deliveries != 3 || done.ConsideredAt.IsZero() || done.FannedOutAt.IsZero() || done.Skipped.Counts["endpoint_disabled"] != 1 {
		t.Errorf("what came of an event is lost: %+v", done)
	}
	sweep(t, b, b.newRelay(t, 0))
	b.exec(t, `update event_outbox set relay_after = now() where relay_after is not null`)
	if diff := cmp.Diff([]string{"failed", "waiting"}, b.fannedOut(t)); diff != "" {
		t.Errorf("events in tasks (-want +got):\n%s", diff)
	}
}

func TestOutbox_NothingIsLeftOfAProjectThatIsDeleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "waiting")
	b.publish(t, "done")
	b.exec(t, `with done as (delete from event_outbox where event_id = 'done' returning seq)
		insert into event_outcomes (seq, considered_at, deliveries) select seq, now(), 0 from done`)
	b.exec(t, `delete from projects where id = $1`, b.project)
	if n := scan[int](t, b, `select (select count(*) from events) + (select count(*) from event_outbox) + (select count(*) from event_outcomes)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestEvents_BelongToAProjectThatExists(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.pool.Exec(b.ctx, `insert into events (project_id, id, type, data) values ($1, 'x', 'order.created', '1'), ('project_none', 'x', 'order.created', '1')`, b.project)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "23503" {
		t.Errorf("an event of no project: %v", err)
	}
	if n := scan[int](t, b, `select (select count(*) from events) + (select count(*) from event_outbox)`); n != 0 {
		t.Errorf("%d rows are left of it", n)
	}
}

func TestEvents_ProjectsDoNotLoseThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "kept")
	for _, refused := range []string{
		`update projects set id = 'project_other'`,
		`update events set project_id = 'project_none'`,
		`begin isolation level repeatable read; delete from projects; commit`,
	} {
		if _, err := b.pool.Exec(b.ctx, refused); err == nil {
			t.Errorf("this is let through: %s", refused)
		}
		b.pool.Reset()
	}
	if n := scan[int](t, b, `select count(*) from events e join projects p on p.id = e.project_id`); n != 1 {
		t.Errorf("%d events of a project are left, want 1", n)
	}
	b.exec(t, `truncate projects cascade`)
	if n := scan[int](t, b, `select (select count(*) from events) + (select count(*) from event_outbox)`); n != 0 {
		t.Errorf("%d rows are left of no project", n)
	}
}

func TestEvents_OfAProjectThatIsDeletedMeanwhileGoWithIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.pool.Begin(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.WithoutCancel(b.ctx))
	if _, err := tx.Exec(b.ctx, `insert into events (project_id, id, type, data) values ($1, 'late', 'order.created', '1')`, b.project); err != nil {
		t.Fatal(err)
	}
	deleted := make(chan error, 1)
	go func() {
		_, err := b.pool.Exec(b.ctx, `delete from projects where id = $1`, b.project)
		deleted <- err
	}()
	for scan[int](t, b, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`) == 0 {
		select {
		case err := <-deleted:
			t.Fatalf("the project went while an event of it was being stored: %v", err)
		default:
		}
	}
	if err := tx.Commit(b.ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if n := scan[int](t, b, `select (select count(*) from events) + (select count(*) from event_outbox)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func TestOutbox_IsFilledWhateverSchemaComesFirst(t *testing.T) {
	t.Parallel()
	b := bundle{ctx: t.Context(), pool: storetest.New(t, nil)}
	b.exec(t, `create schema app`)
	b.exec(t, `do $$ begin execute format('alter database %I set search_path = app, public', current_database()); end $$`)
	b.pool.Reset()
	if err := jobs.Migrate(b.ctx, b.pool); err != nil {
		t.Fatal(err)
	}
	if schema := scan[string](t, b, `select relnamespace::regnamespace::text from pg_class where oid = 'events'::regclass`); schema != "app" {
		t.Fatalf("the events are in %s", schema)
	}
	b.project = b.newProject(t)
	b.publish(t, "x")
	// As a restore does it.
	b.exec(t, `begin; set local search_path = ''; insert into app.events (project_id, id, type, data) select id, 'y', 'order.created', '1' from app.projects; commit`)
	if n := scan[int](t, b, `select count(*) from event_outbox`); n != 2 {
		t.Errorf("%d events wait in the outbox, want 2", n)
	}
	b.exec(t, `truncate events cascade`)
	if n := scan[int](t, b, `select count(*) from event_outbox`); n != 0 {
		t.Errorf("%d events are left in the outbox", n)
	}
}

// TestOutbox_NoPlanFollowsWhatTheTableLookedLikeOnce: analyzed while all of it waited, it would be read as a whole for each row later.
func TestOutbox_NoPlanFollowsWhatTheTableLookedLikeOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	calm := b.newProject(t)
	b.flood(t, b.project, 20_000)
	b.exec(t, `analyze event_outbox`)
	b.exec(t, `update event_outbox set fanned_out_at = now()`)
	b.exec(t, `vacuum event_outbox`)
	b.flood(t, calm, 1)
	tx, err := b.pool.Begin(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(b.ctx) }() // The test has seen what it wants.
	looked := func() (rows int) {
		t.Helper()
		err := tx.QueryRow(b.ctx, `select coalesce(seq_tup_read + idx_tup_fetch, 0) from pg_stat_xact_user_tables where relname = 'event_outbox'`).Scan(&rows)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	before := looked()
	batch := &pgx.Batch{}
	WakeRelays(batch, b.project)
	if err := tx.SendBatch(b.ctx, batch).Close(); err != nil {
		t.Fatal(err)
	}
	if n := looked() - before; n > 10 {
		t.Errorf("%d rows are looked at to see that nothing waits", n)
	}
	before = looked()
	claimed, err := claimTurnTx(b.ctx, tx)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("%d events claimed, %v; want the calm project's", len(claimed), err)
	}
	if n := looked() - before; n > 100 {
		t.Errorf("%d rows are looked at for one that waits", n)
	}
}

// TestOutbox_PlansMadeWhileNothingWaitsAreGoodForAFlood: a connection keeps a plan, and nothing renews it until the table is vacuumed.
func TestOutbox_PlansMadeWhileNothingWaitsAreGoodForAFlood(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `vacuum analyze event_outbox`)
	conn, err := b.pool.Acquire(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	claim := func() (claimed, scans int) {
		tx, err := conn.Begin(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(b.ctx) }() // The test has seen what it wants.
		rows, err := claimTurnTx(b.ctx, tx)
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRow(b.ctx, `select seq_scan from pg_stat_xact_user_tables where relname = 'event_outbox'`).Scan(&scans); err != nil {
			t.Fatal(err)
		}
		return len(rows), scans
	}
	for range 8 { // From the sixth time on a plan is kept.
		claim()
	}
	b.flood(t, b.project, 3000)
	if claimed, scans := claim(); claimed != 100 || scans != 0 {
		t.Errorf("%d events are claimed and the outbox is read as a whole %d times, want 100 and never", claimed, scans)
	}
}

// claimTurnTx takes a turn from the first project on.
func claimTurnTx(ctx context.Context, tx pgx.Tx) ([]outboxRow, error) {
	var t turn
	batch := &pgx.Batch{}
	claimTurn(batch, "", 100, &t)
	err := tx.SendBatch(ctx, batch).Close()
	return t.claimed, err
}
