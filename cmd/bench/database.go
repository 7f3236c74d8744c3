package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

// database is one figure's own. It must be dropped when the figure is taken: what it left in the buffers, and the vacuum of it, would
// be paid by the next. Dropping it also makes a checkpoint, so that each figure starts with a log that is written over, as that of a
// server which has run for a while.
type database struct {
	name  string
	dsn   string
	pool  *pgxpool.Pool
	bench *bench
}

// database makes an empty database and opens it.
func (b *bench) database(ctx context.Context, conns int32) (*database, error) {
	b.databases++
	db := &database{name: fmt.Sprintf("bench_%d_%d", os.Getpid(), b.databases), bench: b}
	if err := b.administer(ctx, "create database "+db.name); err != nil {
		return nil, fmt.Errorf("make a database: %w", err)
	}
	db.dsn = b.server.DSN(db.name)
	var err error
	db.pool, err = store.Open(ctx, db.dsn, store.Options{MaxConns: conns, ApplicationName: "bench"})
	if err != nil {
		return nil, errors.Join(err, db.drop())
	}
	return db, nil
}

func (db *database) drop() error {
	if db.pool != nil {
		db.pool.Close()
	}
	if err := db.bench.administer(context.Background(), "drop database "+db.name+" with (force)"); err != nil {
		return fmt.Errorf("drop a database: %w", err)
	}
	return nil
}

// administer runs a statement that belongs to no database of ours.
func (b *bench) administer(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, b.server.DSN("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, statement)
	return err
}

// ageLog makes the server write a GiB into its log and begin it anew. A server that has run for a while writes into files that are there;
// one that is new makes each first, which holds up all who commit for some 50 ms.
func (b *bench) ageLog(ctx context.Context) error {
	err := b.administer(ctx, `select count(pg_logical_emit_message(false, 'bench', repeat('x', 1 << 20))) from generate_series(1, 1024)`)
	if err == nil {
		err = b.administer(ctx, "checkpoint")
	}
	if err != nil {
		return fmt.Errorf("age the log of Postgres: %w", err)
	}
	return nil
}
