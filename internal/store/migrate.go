package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/tern/v2/migrate"
)

// versionTable holds one row: the number of the last migration that ran.
const versionTable = "public.entrega_schema_version"

// migrationLockTimeout bounds how long a migration may wait for a table. While it waits, every later statement on that
// table queues up behind it, and publishing must never stand still for more than five seconds.
const migrationLockTimeout = "4s"

// The codes of a migration that gave way to another session.
const (
	codeLockNotAvailable = "55P03"
	codeDeadlock         = "40P01"
)

// SchemaNewerError says that the database was migrated by a newer Entrega than this one.
type SchemaNewerError struct {
	Have, Known int32
}

func (e *SchemaNewerError) Error() string {
	return fmt.Sprintf("the database's schema is at version %d and this Entrega knows only %d: "+
		"run the newer Entrega, the schema does not go back", e.Have, e.Known)
}

// Migrate brings the schema to the newest of the numbered files in migrations. Each file runs in a transaction of its own
// (unless it says otherwise), so a failure leaves the schema at the file before. Any number of nodes may call it at once:
// one works, the others wait and find nothing to do.
//
// River's tables have a migrator of their own, which must have run before: see package jobs.
func Migrate(ctx context.Context, pool *pgxpool.Pool, migrations fs.FS) error {
	return WithLock(ctx, pool, versionTable, func(ctx context.Context) error {
		conn, err := dedicatedConn(ctx, pool, map[string]string{
			"application_name":                    "entrega migrate",
			"lock_timeout":                        migrationLockTimeout,
			"statement_timeout":                   "0",
			"idle_in_transaction_session_timeout": "0",
		})
		if err != nil {
			return fmt.Errorf("connect to migrate: %w", err)
		}
		defer closeConn(ctx, conn)
		return migrateConn(ctx, conn, migrations)
	})
}

func migrateConn(ctx context.Context, conn *pgx.Conn, migrations fs.FS) error {
	migrator, err := migrate.NewMigrator(ctx, conn, versionTable)
	if err != nil {
		return fmt.Errorf("prepare %s: %w", versionTable, err)
	}
	if err := migrator.LoadMigrations(migrations); err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	have, err := migrator.GetCurrentVersion(ctx)
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if known := int32(len(migrator.Migrations)); have > known {
		return &SchemaNewerError{Have: have, Known: known}
	}

	running := ""
	migrator.OnStart = func(_ int32, name, _, _ string) { running = name }
	err = migrator.Migrate(ctx)
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pgErr) && pgErr.Code == codeLockNotAvailable:
		return fmt.Errorf("migration %s waited %s for a table that another session holds and gave way; "+
			"run it again when that session is done: %w", running, migrationLockTimeout, err)
	case errors.As(err, &pgErr) && pgErr.Code == codeDeadlock:
		return fmt.Errorf("migration %s and another session waited for each other, and it gave way; run it again: %w", running, err)
	default:
		return fmt.Errorf("run migration %s: %w", running, err)
	}
}

// SchemaVersion returns the number of the last migration that ran on db and the newest that migrations holds. A database
// that was never migrated has 0.
func SchemaVersion(ctx context.Context, db DB, migrations fs.FS) (have, newest int32, err error) {
	files, err := migrate.FindMigrations(migrations)
	if err != nil {
		return 0, 0, fmt.Errorf("read the migrations: %w", err)
	}
	newest = int32(len(files))

	var exists bool
	if err := db.QueryRow(ctx, "select to_regclass($1) is not null", versionTable).Scan(&exists); err != nil {
		return 0, newest, fmt.Errorf("look for %s: %w", versionTable, err)
	}
	if !exists {
		return 0, newest, nil
	}
	if err := db.QueryRow(ctx, "select version from "+versionTable).Scan(&have); err != nil {
		return 0, newest, fmt.Errorf("read the schema version: %w", err)
	}
	return have, newest, nil
}
