package store_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"entrega/internal/store"
	"entrega/internal/store/storetest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func files(sql ...string) fstest.MapFS {
	names := []string{"001_first.sql", "002_second.sql", "003_third.sql"}
	fsys := fstest.MapFS{}
	for i, text := range sql {
		fsys[names[i]] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func schemaVersion(t *testing.T, pool *pgxpool.Pool, fsys fstest.MapFS) [2]int32 {
	t.Helper()
	have, newest, err := store.SchemaVersion(t.Context(), pool, fsys)
	if err != nil {
		t.Fatal(err)
	}
	return [2]int32{have, newest}
}

func TestMigrate_RunsEachFileOnce(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, nil)
	two := files("create table a ()", "create table b ()")
	if got := schemaVersion(t, pool, two); got != [2]int32{0, 2} {
		t.Errorf("before: %v", got)
	}
	for range 2 {
		if err := store.Migrate(t.Context(), pool, two); err != nil {
			t.Fatal(err)
		}
	}
	three := files("create table a ()", "create table b ()", "drop table b")
	if err := store.Migrate(t.Context(), pool, three); err != nil {
		t.Fatal(err)
	}
	if got := schemaVersion(t, pool, three); got != [2]int32{3, 3} {
		t.Errorf("after: %v", got)
	}
}

func TestMigrate_AFailureKeepsTheFilesBefore(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, nil)
	broken := files("create table a ()", "create table b (); select nonsense")
	err := store.Migrate(t.Context(), pool, broken)
	if err == nil || !strings.Contains(err.Error(), "002_second.sql") {
		t.Errorf("error = %v, want one that names the file", err)
	}
	if got := schemaVersion(t, pool, broken); got != [2]int32{1, 2} {
		t.Errorf("versions = %v, want 1 of 2", got)
	}
	if err := store.Migrate(t.Context(), pool, files("create table a ()", "create table b ()")); err != nil {
		t.Errorf("after the repair: %v", err)
	}
}

func TestMigrate_RefusesANewerSchema(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, nil)
	if err := store.Migrate(t.Context(), pool, files("create table a ()", "create table b ()")); err != nil {
		t.Fatal(err)
	}
	var newer *store.SchemaNewerError
	if err := store.Migrate(t.Context(), pool, files("create table a ()")); !errors.As(err, &newer) {
		t.Fatalf("error = %v, want SchemaNewerError", err)
	}
	if *newer != (store.SchemaNewerError{Have: 2, Known: 1}) {
		t.Errorf("error = %+v", *newer)
	}
}

// An index that is built concurrently waits for every snapshot of its database, so a node that waits for its turn must
// not hold one.
func TestMigrate_SeveralNodesAtOnceWithAConcurrentIndex(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, nil)
	fsys := files("create table a (n int)", "---- tern: disable-tx ----\ncreate index concurrently on a (n)")
	const nodes = 4
	results := make(chan error, nodes)
	for range nodes {
		go func() { results <- store.Migrate(t.Context(), pool, fsys) }()
	}
	for range nodes {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if got := schemaVersion(t, pool, fsys); got != [2]int32{2, 2} {
		t.Errorf("versions = %v", got)
	}
}

func TestMigrate_GivesWayToASessionThatHoldsTheTable(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, numbers)
	err := store.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := insert(t, tx, 1); err != nil {
			return err
		}
		return store.Migrate(t.Context(), pool, files("alter table numbers add column m int"))
	})
	if err == nil || !strings.Contains(err.Error(), "001_first.sql waited 4s for a table") {
		t.Errorf("error = %v", err)
	}
}

func TestMigrate_GivesWayToASessionThatItWaitsForCrosswise(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, numbers)
	if _, err := pool.Exec(t.Context(), `create table more (n int)`); err != nil {
		t.Fatal(err)
	}
	err := store.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		// Whoever has waited for this long looks for a cycle, and gives way: that must be the migration.
		if _, err := tx.Exec(t.Context(), `set local deadlock_timeout = '1min'; lock table more in share mode`); err != nil {
			return err
		}
		migrated := make(chan error, 1)
		go func() {
			migrated <- store.Migrate(t.Context(), pool, files(`set local deadlock_timeout = '3s'; lock table numbers; alter table more add column m int`))
		}()
		for waits := false; !waits; {
			if err := pool.QueryRow(t.Context(), `select exists (select from pg_locks where relation = 'more'::regclass and not granted)`).Scan(&waits); err != nil {
				return err
			}
		}
		if err := insert(t, tx, 1); err != nil {
			t.Errorf("the session gave way: %v", err)
		}
		return <-migrated
	})
	if err == nil || !strings.Contains(err.Error(), "001_first.sql and another session waited for each other") {
		t.Errorf("error = %v", err)
	}
}

func TestWithLock_SecondWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, nil)
	free := func() (free bool) {
		// In a transaction of its own, which gives the lock back at once.
		err := pool.QueryRow(t.Context(), "select pg_try_advisory_xact_lock(hashtextextended('name', 0))").Scan(&free)
		if err != nil {
			t.Error(err)
		}
		return free
	}

	var firstLeft atomic.Bool
	second := make(chan error, 1)
	err := store.WithLock(t.Context(), pool, "name", func(context.Context) error {
		if free() {
			t.Error("the lock is free inside")
		}
		go func() {
			second <- store.WithLock(t.Context(), pool, "name", func(context.Context) error {
				if !firstLeft.Load() {
					return errors.New("the second came in while the first was inside")
				}
				return nil
			})
		}()
		for asked := 0; asked < 2; { // Both sessions have asked, and the second was refused.
			err := pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database()
				and state = 'idle' and query like 'select pg_try_advisory_lock%'`).Scan(&asked)
			if err != nil {
				return err
			}
		}
		firstLeft.Store(true)
		return nil
	})
	if err := errors.Join(err, <-second); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(10 * time.Second); !free(); { // The server notices a moment later that the connection is closed.
		if time.Now().After(deadline) {
			t.Fatal("the lock is still held after its holder left")
		}
	}
}

func TestWithLock_WaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, nil)
	err := store.WithLock(t.Context(), pool, "name", func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return store.WithLock(ctx, pool, "name", func(context.Context) error { return nil })
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want canceled", err)
	}
}
