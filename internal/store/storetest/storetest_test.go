package storetest_test

import (
	"context"
	"fmt"
	"testing"

	"entrega/internal/store"
	"entrega/internal/store/storetest"

	"github.com/jackc/pgx/v5"
)

func migrateNotes(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "create table notes (id bigint primary key, text text not null); insert into notes values (1, 'migrated')")
	return err
}

func countNotes(t *testing.T, db store.DB) int {
	t.Helper()
	var n int
	if err := db.QueryRow(t.Context(), "select count(*) from notes").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNew_EachTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	one, two := storetest.New(t, migrateNotes), storetest.New(t, migrateNotes)
	if _, err := one.Exec(t.Context(), "insert into notes values (2, 'mine')"); err != nil {
		t.Fatal(err)
	}
	if a, b := countNotes(t, one), countNotes(t, two); a != 2 || b != 1 {
		t.Errorf("notes: %d and %d, want 2 and 1", a, b)
	}
}

func TestNew_DatabaseGoesWithTheTest(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("inner", func(t *testing.T) {
		pool := storetest.New(t, nil)
		if err := pool.QueryRow(t.Context(), "select current_database()").Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	var left int
	err := storetest.New(t, nil).QueryRow(t.Context(), "select count(*) from pg_database where datname = $1", name).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("database %q: %d left, %v", name, left, err)
	}
}

func TestDSN_OpensTheSameDatabase(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, migrateNotes)
	conn, err := pgx.Connect(t.Context(), storetest.DSN(pool))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if n := countNotes(t, conn); n != 1 {
		t.Errorf("notes = %d, want 1", n)
	}
}

func TestTx_LeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for i := range 2 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			tx := storetest.Tx(t, migrateNotes)
			if n := countNotes(t, tx); n != 1 {
				t.Errorf("notes = %d before this test wrote any, want 1", n)
			}
			if _, err := tx.Exec(t.Context(), "insert into notes values (2, 'mine')"); err != nil {
				t.Fatal(err)
			}
		})
	}
}
