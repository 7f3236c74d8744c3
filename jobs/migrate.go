package jobs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"entrega/internal/store"
	"entrega/migrations"
)

// Migrate brings the database to this program's schema: River's tables first, then ours, which add to them. It is safe to call
// from several nodes at once and does nothing when all is in place.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	err := store.WithLock(ctx, pool, "entrega_river_schema", func(ctx context.Context) error {
		migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
		if err != nil {
			return err
		}
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		return err
	})
	if err != nil {
		return fmt.Errorf("migrate River's tables: %w", err)
	}
	return store.Migrate(ctx, pool, migrations.FS)
}

// MigrateDSN is Migrate for a connection string.
func MigrateDSN(ctx context.Context, dsn string) error {
	pool, err := store.Open(ctx, dsn, store.Options{MaxConns: 2})
	if err != nil {
		return err
	}
	defer pool.Close()
	return Migrate(ctx, pool)
}
