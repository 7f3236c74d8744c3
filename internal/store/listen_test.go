package store_test

import (
	"context"
	"errors"
	"testing"

	"entrega/internal/store"
	"entrega/internal/store/storetest"

	"github.com/jackc/pgx/v5/pgxpool"
)

// listen starts a listener and returns once it listens.
func listen(t *testing.T, ctx context.Context, pool *pgxpool.Pool) (payloads <-chan string, ended <-chan error) {
	t.Helper()
	heard, end := make(chan string, 10), make(chan error, 1)
	go func() { end <- store.Listen(ctx, pool, "Some Channel", func(payload string) { heard <- payload }) }()
	if first := <-heard; first != "" {
		t.Fatalf("first call = %q, want the empty one that says it listens", first)
	}
	return heard, end
}

func notify(t *testing.T, pool *pgxpool.Pool, payload string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), "select pg_notify('Some Channel', $1)", payload); err != nil {
		t.Fatal(err)
	}
}

func TestListen_HandsOverEachPayloadUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := listen(t, ctx, pool)
	for _, payload := range []string{"one", "two"} {
		notify(t, pool, payload)
		if got := <-heard; got != payload {
			t.Errorf("heard %q, want %q", got, payload)
		}
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("the listener holds %d of the pool's connections", n)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want canceled", err)
	}
}

func TestListen_ReturnsWhenItsConnectionIsLost(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, nil)
	_, ended := listen(t, t.Context(), pool)
	_, err := pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and query like 'listen%' and pid <> pg_backend_pid()`)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !store.IsUnavailable(err) {
		t.Errorf("error = %v, want one that says the database went away", err)
	}
}
