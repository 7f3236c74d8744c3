package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"entrega/internal/store"
)

// poisonAfter is how many failures make the relay give an event up.
const poisonAfter = 5

// failureWaits has the wait after each failure but the last. It is data in the row, not a pause of the relay.
var failureWaits = [poisonAfter - 1]time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute}

// maxErrorLength bounds what is kept of an error, in bytes.
const maxErrorLength = 500

// outboxRow is what the relay needs of an event.
type outboxRow struct {
	Seq           int64
	ProjectID     string
	ID            string
	RelayFailures int
}

// claimFreshTx locks up to limit events that wait and never failed, first published first. It asks for the mark, never
// for "after the last sequence number": a transaction that commits late has a lower number than ones already relayed.
func claimFreshTx(ctx context.Context, tx pgx.Tx, limit int) ([]outboxRow, error) {
	rows, err := tx.Query(ctx, `
		select seq, project_id, id, relay_failures from events
		where fanned_out_at is null and poisoned_at is null and relay_after is null
		order by seq limit $1
		for update skip locked`, limit)
	if err != nil {
		return nil, fmt.Errorf("claim events: %w", err)
	}
	claimed, err := pgx.CollectRows(rows, pgx.RowToStructByName[outboxRow])
	if err != nil {
		return nil, fmt.Errorf("claim events: %w", err)
	}
	return claimed, nil
}

// claimOneTx locks one event, unless it is not as row has it any more or another relay holds it: then store.ErrNotFound.
func claimOneTx(ctx context.Context, tx pgx.Tx, row outboxRow) error {
	var seq int64
	err := tx.QueryRow(ctx, `
		select seq from events
		where seq = $1 and relay_failures = $2 and fanned_out_at is null and poisoned_at is null
		for update skip locked`, row.Seq, row.RelayFailures).Scan(&seq)
	if err != nil {
		return fmt.Errorf("claim event: %w", store.MapError(err))
	}
	return nil
}

// failedRows reads up to limit events that failed before and are due, and tells whether others wait for later.
func failedRows(ctx context.Context, db store.DB, limit int) (due []outboxRow, later bool, err error) {
	rows, err := db.Query(ctx, `
		select seq, project_id, id, relay_failures, relay_after <= now() as due from events
		where fanned_out_at is null and poisoned_at is null and relay_after is not null
		order by relay_after limit $1`, limit)
	if err != nil {
		return nil, false, fmt.Errorf("read events that failed: %w", err)
	}
	var row outboxRow
	var isDue bool
	_, err = pgx.ForEachRow(rows, []any{&row.Seq, &row.ProjectID, &row.ID, &row.RelayFailures, &isDue}, func() error {
		if isDue {
			due = append(due, row)
		}
		later = later || !isDue
		return nil
	})
	if err != nil {
		return nil, false, fmt.Errorf("read events that failed: %w", err)
	}
	return due, later || len(due) == limit, nil
}

// markTx notes that the fan-out of rows is in the queue.
func markTx(ctx context.Context, tx pgx.Tx, rows []outboxRow) error {
	seqs := make([]int64, len(rows))
	for i, row := range rows {
		seqs[i] = row.Seq
	}
	_, err := tx.Exec(ctx, `
		update events set fanned_out_at = now(), relay_after = null, relay_error = null where seq = any($1)`, seqs)
	if err != nil {
		return fmt.Errorf("mark events: %w", err)
	}
	return nil
}

// charge notes one more failure of an event and when its next turn is, and reports whether it has one: at the fifth the
// event is poisoned. When another relay noted a failure meanwhile, that counts for both.
func (r *Relay) charge(ctx context.Context, row outboxRow, cause error) (waits bool, err error) {
	failures := row.RelayFailures + 1
	var wait *time.Duration
	if failures < poisonAfter {
		wait = &failureWaits[failures-1]
	}
	tag, err := r.pool.Exec(ctx, `
		update events set relay_failures = $3, relay_error = $4, relay_after = now() + $5::interval,
			poisoned_at = case when $5::interval is null then now() end
		where seq = $1 and relay_failures = $2 and fanned_out_at is null and poisoned_at is null`,
		row.Seq, row.RelayFailures, failures, errorText(cause), wait)
	if err != nil {
		return true, fmt.Errorf("note the failure of an event: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return true, nil
	}
	attrs := []any{"project_id", row.ProjectID, "event_id", row.ID, "failures", failures, "error", cause}
	if wait == nil {
		r.logger.ErrorContext(ctx, "an event is poisoned: the relay gives it up", attrs...)
	} else {
		r.logger.WarnContext(ctx, "an event could not be handed to the fan-out", attrs...)
	}
	return wait != nil, nil
}

// blamesEvent reports whether err says something about the events at hand. It does not when the relay is stopping or when
// the database is unreachable, overloaded, out of resources or gave another session precedence: then every event would
// fail, and none must be poisoned for it.
func blamesEvent(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || store.IsUnavailable(err) {
		return false
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.Code[:2] {
		// Rollback (deadlock, serialization), insufficient resources, lock not available, operator, system, internal:
		// PostgreSQL manual, appendix A.
		case "40", "53", "55", "57", "58", "XX":
			return false
		}
		return true
	}
	var netErr net.Error
	return !errors.As(err, &netErr) && !errors.Is(err, io.EOF)
}

// errorText is err as a text column takes it.
func errorText(err error) string {
	text := strings.ReplaceAll(err.Error(), "\x00", "")
	if len(text) > maxErrorLength {
		text = text[:maxErrorLength]
	}
	return strings.ToValidUTF8(text, "")
}
