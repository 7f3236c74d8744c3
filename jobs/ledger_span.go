package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// clocksWithin is how far the clock of a node, which dates attempts, may be from the database's, which dates tasks.
const clocksWithin = 7 * 24 * time.Hour

// span bounds when a task's attempts started. The ledger has a partition for each day and is kept for long: a query that names
// the span as well as the task is answered from the days in it, however many there are.
type span struct{ from, until time.Time }

// spanSince is that of a task which has not ended.
func spanSince(createdAt time.Time) span {
	return span{from: createdAt.Add(-clocksWithin), until: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
}

// spanOf reads a task's span. The ledger outlives tasks: that of a task which was removed has no bounds.
func spanOf(ctx context.Context, db store.DB, taskID int64) (span, error) {
	var createdAt time.Time
	var finalizedAt *time.Time
	err := db.QueryRow(ctx, `select created_at, finalized_at from river_job where id = $1`, taskID).Scan(&createdAt, &finalizedAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return spanSince(time.Time{}.Add(clocksWithin)), nil
	case err != nil:
		return span{}, fmt.Errorf("read when a task was made: %w", err)
	}
	s := spanSince(createdAt)
	if finalizedAt != nil {
		s.until = finalizedAt.Add(clocksWithin)
	}
	return s, nil
}
