// Package store owns what every package that speaks SQL rests on: the connection pool, the two ways to begin a
// transaction, the errors that callers may act on, keyset pages, ids, migrations and LISTEN. It must know nothing of
// projects, tasks or HTTP.
//
// It keeps to SQL that both PostgreSQL 15 and YugabyteDB take, except session advisory locks and LISTEN, which
// YugabyteDB takes only in its newer releases, and the triggers of migrations/019_outbox.sql, which look at all rows of a statement.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// rollbackTimeout bounds the ROLLBACK of an abandoned transaction. After it the connection is closed, which makes
// the server roll back all the same.
const rollbackTimeout = 5 * time.Second

// secondStepTimeout bounds the second step of InTwoSteps.
const secondStepTimeout = 10 * time.Second

// DB is what a statement needs. *pgxpool.Pool, *pgx.Conn and pgx.Tx satisfy it, so a function that takes a DB works
// alone or inside its caller's transaction. It has no Begin on purpose: see InTx.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
	CopyFrom(ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource) (int64, error)
}

// Options sets up a pool. The zero value is right for one node of the product.
type Options struct {
	// MaxConns is the largest number of connections at once; 20 when zero, or what the DSN's pool_max_conns says.
	MaxConns int32
	// ApplicationName is what pg_stat_activity shows; "entrega" when empty.
	ApplicationName string
	// Tracer observes every query, for example otelpgx; nil means none.
	Tracer pgx.QueryTracer
}

const defaultMaxConns = 20

// Open makes a pool for dsn and proves that the database answers. The caller closes the pool.
//
// Sessions speak UTC, and a transaction left idle for a minute is ended by the server, because it would hold back
// vacuum on a table as busy as River's. They plan for memory and solid state disks, as the private server does, and do not
// compile: every statement is a few walks along an index, and the planner's default for spinning disks would rather sort.
func Open(ctx context.Context, dsn string, opts Options) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("read the database address: %w", err)
	}

	switch {
	case opts.MaxConns > 0:
		config.MaxConns = opts.MaxConns
	case !poolSizeGiven(dsn):
		config.MaxConns = defaultMaxConns
	}
	config.MaxConnLifetime = time.Hour
	config.MaxConnLifetimeJitter = 10 * time.Minute
	config.MaxConnIdleTime = 15 * time.Minute
	config.HealthCheckPeriod = 30 * time.Second

	conn := config.ConnConfig
	conn.Tracer = opts.Tracer
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = 5 * time.Second
	}
	params := conn.RuntimeParams
	params["timezone"] = "UTC"
	if opts.ApplicationName != "" {
		params["application_name"] = opts.ApplicationName
	}
	setDefault(params, "application_name", "entrega")
	setDefault(params, "idle_in_transaction_session_timeout", "60s")
	setDefault(params, "random_page_cost", "1.1")
	setDefault(params, "jit", "off")

	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("make the connection pool: %w", err)
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach the database: %w", err)
	}
	return pool, nil
}

// InTx runs fn in one transaction and commits when fn returns nil. An error or a panic of fn rolls back. It and
// InTwoSteps are the only Begins in the program, so every transaction's extent can be read off the page; a function that must share its
// caller's transaction takes a pgx.Tx and ends its name in Tx.
//
// It never runs fn again: whether a failed transaction is worth another try is for the job layer to decide.
func InTx(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	committed := false
	defer func() {
		if committed {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_ = tx.Rollback(ctx) // The connection is discarded if this fails, and fn's error is the one that matters.
	}()

	if err := fn(tx); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		if errors.Is(err, pgx.ErrTxCommitRollback) {
			return fmt.Errorf("commit: a statement failed earlier and its error was ignored: %w", err)
		}
		return fmt.Errorf("commit: %w", err)
	}
	committed = true
	return nil
}

// InTwoSteps runs one transaction in two round trips: what first queues goes with its begin, what second queues, having seen the answers,
// with its commit. Whatever waits for a processor at each round trip waits half as often as with InTx.
//
// An error of second rolls back, and so does one of any statement. What is queued second is not cut short by the end of ctx, since the
// commit is on its way with it. Where no answer comes, or a callback of what was queued second returns an error, it may be committed.
//
// It commits asynchronously (PostgreSQL, section "Asynchronous Commit") unless second queues WaitForDisk: all of it holds or nothing does,
// but a crash of the database within a fraction of a second may undo it. That is for work that is then found undone and done again, and
// that nobody outside has seen: any later commit that waits for the disk makes this one durable too.
func InTwoSteps(ctx context.Context, pool *pgxpool.Pool, first func(batch *pgx.Batch), second func(batch *pgx.Batch) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer conn.Release()
	defer func() {
		if conn.Conn().PgConn().TxStatus() == 'I' {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
		defer cancel()
		_, _ = conn.Exec(ctx, `rollback`) // The connection is discarded if this fails, and another error is the one that matters.
	}()

	batch := &pgx.Batch{}
	batch.Queue(`begin`)
	batch.Queue(`set local synchronous_commit = off`)
	first(batch)
	if err := conn.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	batch = &pgx.Batch{}
	if err := second(batch); err != nil {
		return err
	}
	batch.Queue(`commit`)
	if ctx.Err() != nil {
		return fmt.Errorf("commit: %w", context.Cause(ctx))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), secondStepTimeout)
	defer cancel()
	return conn.SendBatch(ctx, batch).Close()
}

// WaitForDisk makes the commit of InTwoSteps wait for the disk as usual.
func WaitForDisk(batch *pgx.Batch) { batch.Queue(`set local synchronous_commit to default`) }

// poolSizeGiven reports whether dsn itself sizes the pool, which then wins over our default.
func poolSizeGiven(dsn string) bool { return strings.Contains(dsn, "pool_max_conns") }

func setDefault(params map[string]string, key, value string) {
	if _, ok := params[key]; !ok {
		params[key] = value
	}
}
