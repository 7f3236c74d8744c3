package store_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"entrega/internal/store"
	"entrega/internal/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var _ = []store.DB{(*pgxpool.Pool)(nil), (*pgx.Conn)(nil), pgx.Tx(nil)}

func numbers(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "create table numbers (n bigint constraint one_of_each primary key)")
	return err
}

func insert(t *testing.T, db store.DB, n int) error {
	t.Helper()
	_, err := db.Exec(t.Context(), "insert into numbers values ($1)", n)
	return err
}

func stored(t *testing.T, db store.DB) []int {
	t.Helper()
	rows, err := db.Query(t.Context(), "select n from numbers order by n")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestInTx_CommitsWhenFnSucceeds(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, numbers)
	if err := store.InTx(t.Context(), pool, func(tx pgx.Tx) error { return insert(t, tx, 1) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1}, stored(t, pool)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestInTwoSteps_CommitsWithoutWaitingForTheDiskUnlessAsked(t *testing.T) {
	t.Parallel()
	config := storetest.New(t, numbers).Config()
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	show := func(batch *pgx.Batch, value *string) {
		batch.Queue("show synchronous_commit").QueryRow(func(row pgx.Row) error { return row.Scan(value) })
	}
	for i, waits := range []bool{false, true} {
		var first, second, after string
		err = store.InTwoSteps(t.Context(), pool, func(batch *pgx.Batch) { show(batch, &first) }, func(batch *pgx.Batch) error {
			if first != "off" {
				t.Errorf("synchronous_commit is %q in the first step", first)
			}
			if waits {
				store.WaitForDisk(batch)
			}
			batch.Queue("insert into numbers (n) values ($1)", i)
			show(batch, &second)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{false: "off", true: "on"}[waits]; second != want {
			t.Errorf("synchronous_commit is %s in the second step, want %s", second, want)
		}
		if err := pool.QueryRow(t.Context(), "show synchronous_commit").Scan(&after); err != nil || after != "on" {
			t.Errorf("synchronous_commit is %s for whoever has the connection next, %v", after, err)
		}
	}
	if diff := cmp.Diff([]int{0, 1}, stored(t, pool)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestInTwoSteps_RollsBackAndKeepsTheConnection(t *testing.T) {
	t.Parallel()
	config := storetest.New(t, numbers).Config()
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	session := func() (pid int) {
		if err := pool.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	before, refused := session(), errors.New("refused")
	insert := func(batch *pgx.Batch) { batch.Queue("insert into numbers (n) values (1)") }
	wrong := func(batch *pgx.Batch) { batch.Queue("select 1 / 0") }
	for name, step := range map[string]struct {
		first  func(batch *pgx.Batch)
		second func(batch *pgx.Batch) error
	}{
		"a statement of the first step fails":  {func(b *pgx.Batch) { insert(b); wrong(b) }, func(*pgx.Batch) error { t.Error("the second step began"); return nil }},
		"a statement of the second step fails": {insert, func(b *pgx.Batch) error { wrong(b); return nil }},
		"the second step refuses":              {insert, func(b *pgx.Batch) error { insert(b); return refused }},
	} {
		err := store.InTwoSteps(t.Context(), pool, step.first, step.second)
		if err == nil || name == "the second step refuses" && !errors.Is(err, refused) {
			t.Errorf("%s: the error is %v", name, err)
		}
		if got := stored(t, pool); len(got) != 0 {
			t.Errorf("%s: %v is stored", name, got)
		}
		if session() != before {
			t.Errorf("%s: the connection was lost", name)
		}
	}

	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is gone")
			}
		}()
		_ = store.InTwoSteps(t.Context(), pool, insert, func(*pgx.Batch) error { panic("no") })
	}()
	if got := stored(t, pool); len(got) != 0 {
		t.Errorf("after a panic %v is stored", got)
	}
}

func TestInTwoSteps_AnEndOfTheContextRollsBackOrIsTooLate(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, numbers)
	one := func(n int) func(batch *pgx.Batch) {
		return func(batch *pgx.Batch) { batch.Queue("insert into numbers (n) values ($1)", n) }
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := store.InTwoSteps(ctx, pool, one(1), func(*pgx.Batch) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ends before the commit is sent: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	err = store.InTwoSteps(ctx, pool, one(2), func(batch *pgx.Batch) error {
		batch.Queue("select pg_sleep(0.05)").Exec(func(pgconn.CommandTag) error { return nil })
		time.AfterFunc(10*time.Millisecond, cancel)
		return nil
	})
	if err != nil {
		t.Errorf("a context that ends while the commit is on its way: %v", err)
	}
	if diff := cmp.Diff([]int{2}, stored(t, pool)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestInTx_RollsBackAndReturnsTheErrorOfFn(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, numbers)
	refused := errors.New("refused")
	err := store.InTx(t.Context(), pool, func(tx pgx.Tx) error { return errors.Join(insert(t, tx, 1), refused) })
	if !errors.Is(err, refused) {
		t.Errorf("error = %v, want the one of fn", err)
	}
	if got := stored(t, pool); len(got) != 0 {
		t.Errorf("stored %v after a failure", got)
	}
}

func TestInTx_RollsBackAndGivesBackTheConnectionOnPanic(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, numbers)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = store.InTx(t.Context(), pool, func(tx pgx.Tx) error {
			if err := insert(t, tx, 1); err != nil {
				t.Error(err)
			}
			panic("fn is broken")
		})
	}()
	if got := stored(t, pool); len(got) != 0 {
		t.Errorf("stored %v after a panic", got)
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections were not given back", n)
	}
}

func TestInTx_RollsBackWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, numbers)
	ctx, cancel := context.WithCancel(t.Context())
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		defer cancel()
		return insert(t, tx, 1)
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want canceled", err)
	}
	if got := stored(t, pool); len(got) != 0 {
		t.Errorf("stored %v after a cancelled commit", got)
	}
}

func TestInTx_AnIgnoredFailureIsNoSilentCommit(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, numbers)
	err := store.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := insert(t, tx, 1); err != nil {
			return err
		}
		if err := insert(t, tx, 1); err == nil {
			t.Error("the second insert was let through")
		}
		return nil
	})
	if !errors.Is(err, pgx.ErrTxCommitRollback) {
		t.Errorf("error = %v, want that the commit rolled back", err)
	}
}

func TestOpen_SessionsSpeakUTCAndEndIdleTransactions(t *testing.T) {
	t.Parallel()
	pool, err := store.Open(t.Context(), storetest.DSN(storetest.New(t, nil)), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	got := map[string]string{}
	for _, name := range []string{"timezone", "application_name", "idle_in_transaction_session_timeout"} {
		var value string
		if err := pool.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&value); err != nil {
			t.Fatal(err)
		}
		got[name] = value
	}
	want := map[string]string{"timezone": "UTC", "application_name": "entrega", "idle_in_transaction_session_timeout": "1min"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestOpen_PoolSize(t *testing.T) {
	t.Parallel()
	dsn := storetest.DSN(storetest.New(t, nil))
	for name, test := range map[string]struct {
		dsn  string
		opts store.Options
		want int32
	}{
		"default":          {dsn, store.Options{}, 20},
		"the address says": {dsn + "&pool_max_conns=3", store.Options{}, 3},
		"the option wins":  {dsn + "&pool_max_conns=3", store.Options{MaxConns: 5}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			pool, err := store.Open(t.Context(), test.dsn, test.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if got := pool.Config().MaxConns; got != test.want {
				t.Errorf("pool size = %d, want %d", got, test.want)
			}
		})
	}
}

func TestOpen_KeepsThePasswordOutOfItsErrors(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://app:hunter2@127.0.0.1:1/app?sslmode=disable&connect_timeout=1",
		"postgres://app:hunter2@127.0.0.1:port/app",
	} {
		_, err := store.Open(t.Context(), dsn, store.Options{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error = %v", err)
		}
	}
}

func TestNewID_IsATypeIDAndSortsByTime(t *testing.T) {
	t.Parallel()
	id := store.NewID("event")
	if !regexp.MustCompile(`^event_[0-7][0-9a-hjkmnp-tv-z]{25}$`).MatchString(id) {
		t.Errorf("id = %s", id)
	}
	if again := store.NewID("event"); again == id {
		t.Errorf("two ids are the same: %s", id)
	}
}
