package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/localpg"
	"entrega/internal/store"
	"entrega/jobs"
)

// database is the installation's Postgres as one command uses it: the one of DATABASE_URL, or the private one, which is started where
// it does not run and shared with a serve where it does.
type database struct {
	pool   *pgxpool.Pool
	server *localpg.Server // nil with DATABASE_URL
}

// openDatabase connects and brings the schema up to date. The caller closes it.
func openDatabase(ctx context.Context, c Config, conns int32, log *slog.Logger) (*database, error) {
	d := &database{}
	dsn := c.DatabaseURL
	if dsn == "" {
		server, err := localpg.Start(ctx, localpg.Options{Dir: c.Data, BinDir: c.PgBin, Logger: log})
		if err != nil {
			return nil, fmt.Errorf("start the private Postgres: %w", err)
		}
		d.server, dsn = server, server.DSN(localpg.Database)
	}
	pool, err := store.Open(ctx, dsn, store.Options{MaxConns: conns, Tracer: c.tracer})
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	d.pool = pool
	if err := jobs.Migrate(ctx, pool); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// close ends this command's use of the database; the private Postgres stops when nobody else uses it.
func (d *database) close() error {
	if d.pool != nil {
		d.pool.Close()
	}
	if d.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return d.server.Stop(ctx)
}

// withDatabase runs one short command against the database.
func withDatabase(ctx context.Context, env environment, fn func(ctx context.Context, c Config, d *database) error) error {
	c, err := LoadConfig(env.getenv)
	if err != nil {
		return err
	}
	d, err := openDatabase(ctx, c, 4, quietLogger(env))
	if err != nil {
		return err
	}
	return errors.Join(fn(ctx, c, d), d.close())
}

// quietLogger is for commands whose output is their result: warnings and worse only.
func quietLogger(env environment) *slog.Logger {
	return slog.New(slog.NewTextHandler(env.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
