package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

const (
	// statsGrace is how long after its end a minute is rolled up: the ledger's rows of it are committed by then.
	statsGrace = 15 * time.Second
	// statsKept is how long the sums stay.
	statsKept = 35 * 24 * time.Hour
	// statsBack is how far back a first roll-up looks.
	statsBack = 24 * time.Hour
)

// StatsRollup sums each minute of the ledger once it is over.
func StatsRollup(pool *pgxpool.Pool, now func() time.Time) Periodic {
	return Periodic{Name: "stats.rollup", About: "Sums up the attempts of each minute for Overview and Retry health.", Every: time.Minute, RunOnStart: true,
		Do: func(ctx context.Context) error { return rollUp(ctx, pool, now()) }}
}

// rollUp is one transaction that moves the watermark with the sums, so that a crash repeats nothing.
func rollUp(ctx context.Context, pool *pgxpool.Pool, now time.Time) error {
	until := now.UTC().Add(-statsGrace).Truncate(time.Minute)
	return store.InTx(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into rollups (name, through) values ('attempts', $1) on conflict do nothing`, until.Add(-statsBack))
		if err != nil {
			return fmt.Errorf("start the sums: %w", err)
		}
		var since time.Time
		if err := tx.QueryRow(ctx, `select through from rollups where name = 'attempts' for update`).Scan(&since); err != nil {
			return fmt.Errorf("read how far the sums are: %w", err)
		}
		if !since.Before(until) {
			return nil
		}
		if _, err := tx.Exec(ctx, `select entrega_roll_up($1, $2)`, since, until); err != nil {
			return fmt.Errorf("sum up attempts: %w", err)
		}
		if _, err := tx.Exec(ctx, `update rollups set through = $1 where name = 'attempts'`, until); err != nil {
			return fmt.Errorf("note how far the sums are: %w", err)
		}
		oldest := now.UTC().Add(-statsKept)
		for _, sql := range []string{`delete from attempt_minutes where minute < $1`, `delete from latency_minutes where minute < $1`,
			`delete from attempt_hours where hour < $1`, `delete from endpoint_hours where hour < $1`} {
			if _, err := tx.Exec(ctx, sql, oldest); err != nil {
				return fmt.Errorf("forget old sums: %w", err)
			}
		}
		return nil
	})
}
