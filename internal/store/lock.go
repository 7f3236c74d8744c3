package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// lockPoll is how often a waiting process asks for an advisory lock.
const lockPoll = 100 * time.Millisecond

// WithLock runs fn while it holds the advisory lock called name, which at most one process of the whole installation
// holds at a time. It waits for the lock as long as ctx allows. The lock lives on a connection of its own and goes with
// it, so a process that dies frees it.
//
// It asks again and again instead of waiting inside the server: a waiting statement holds a snapshot, and a migration
// that builds an index concurrently would wait for that snapshot while it is itself waited for.
func WithLock(ctx context.Context, pool *pgxpool.Pool, name string, fn func(ctx context.Context) error) error {
	conn, err := dedicatedConn(ctx, pool, nil)
	if err != nil {
		return fmt.Errorf("connect to lock %s: %w", name, err)
	}
	defer closeConn(ctx, conn)

	if err := acquire(ctx, conn, name); err != nil {
		return fmt.Errorf("lock %s: %w", name, err)
	}
	return fn(ctx)
}

func acquire(ctx context.Context, conn *pgx.Conn, name string) error {
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	for {
		var held bool
		err := conn.QueryRow(ctx, "select pg_try_advisory_lock(hashtextextended($1, 0))", name).Scan(&held)
		if err != nil {
			return err
		}
		if held {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
