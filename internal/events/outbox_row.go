package events

import (
	"cmp"
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

const (
	// turnProjects is how many projects get a turn in one transaction, and leastShare how many events each may bring at least.
	turnProjects = 50
	leastShare   = 10
	// projectWindow is how many events of a project may wait for their fan-out at once. What is beyond waits in the outbox, where
	// it is nobody else's concern.
	projectWindow = 1000
	// windowFor is how long an event counts that was handed over and never considered.
	windowFor = time.Minute
)

// turn is what one turn of the relay took: the project that had its turn last, whether more may wait that no notification tells of, and
// whether another relay is at a project whose turn it would be: what that one does not see yet, nobody is told of again.
type turn struct {
	claimed    []outboxRow
	last       string
	more, busy bool
}

// claimTurn takes events that wait and never failed, of the projects whose turn it is: those behind a project, in the order of their
// ids, and the first ones again after the last. Each brings its share of limit, first published first, as far as its window has room.
// They are marked as handed over; the caller hands them over in the same transaction.
//
// It asks for the mark, never for "after the last sequence number": a transaction that commits late has a lower number than ones already
// relayed. One relay at a time takes from a project, so that none hands over what comes after before what is before: the projects are
// locked first, and what another has marked since this statement began is passed over, because a row that is locked is looked at again.
//
// The projects are found by stepping from one to the next along the index, so that one with very many events costs no more than one with
// a single one.
func claimTurn(batch *pgx.Batch, behind string, limit int, t *turn) {
	batch.Queue(`
		with recursive later as (
			(select project_id as id from event_outbox where fanned_out_at is null and poisoned_at is null and project_id > $1 order by project_id limit 1)
			union all
			select (select e.project_id from event_outbox e where e.fanned_out_at is null and e.poisoned_at is null and e.project_id > later.id
			        order by e.project_id limit 1)
			from later where later.id is not null
		), sooner as (
			(select project_id as id from event_outbox where fanned_out_at is null and poisoned_at is null and project_id <= $1 order by project_id limit 1)
			union all
			select (select e.project_id from event_outbox e where e.fanned_out_at is null and e.poisoned_at is null and e.project_id > sooner.id and e.project_id <= $1
			        order by e.project_id limit 1)
			from sooner where sooner.id is not null
		), turn as materialized (
			select id, row_number() over (order by part, id) as place from (
				(select id, 1 as part from later where id is not null limit $2)
				union all
				(select id, 2 from sooner where id is not null limit $2)
			) w order by part, id limit $2
		), locked as materialized (
			select id, place from turn where pg_try_advisory_xact_lock(hashtextextended('entrega/relay/' || id, 0))
		), share as materialized (
			select greatest($3 / count(*), $4) as n from locked having count(*) > 0
		), claimed as materialized (
			select p.place, e.seq, e.project_id, e.event_id, e.relay_failures from locked p
			cross join lateral (
				select count(*) as n from (
					select from event_outbox v where v.project_id = p.id and v.fanned_out_at is not null
					and v.fanned_out_at > now() - $6::interval limit $5) w
			) open
			cross join lateral (
				select v.seq, v.project_id, v.event_id, v.relay_failures from event_outbox v
				where v.project_id = p.id and v.fanned_out_at is null and v.poisoned_at is null and v.relay_after is null
				order by v.seq limit least((select n from share), $5 - open.n)
				for update skip locked
			) e
		), marked as (
			update event_outbox set fanned_out_at = now() where seq = any(array(select seq from claimed)) and fanned_out_at is null
		)
		select l.last, l.more, l.busy, c.seq, c.project_id, c.event_id, c.relay_failures
		from (
			select coalesce((select id from locked order by place desc limit 1), '') as last,
			       (select count(*) >= $2 from turn) or exists (select from claimed group by place having count(*) >= (select n from share)) as more,
			       (select count(*) from turn) > (select count(*) from locked) as busy
		) l left join claimed c on true
		order by c.place, c.seq`, behind, turnProjects, limit, leastShare, projectWindow, windowFor).Query(func(rows pgx.Rows) error {
		t.last = behind
		var locked string
		var seq *int64
		var project, id *string
		var failures *int
		_, err := pgx.ForEachRow(rows, []any{&locked, &t.more, &t.busy, &seq, &project, &id, &failures}, func() error {
			t.last = cmp.Or(locked, behind)
			if seq != nil {
				t.claimed = append(t.claimed, outboxRow{Seq: *seq, ProjectID: *project, ID: *id, RelayFailures: *failures})
			}
			return nil
		})
		return err
	})
}

// WakeRelays tells the relays of events of a project that wait in the outbox, if there are any: a fan-out calls it when it has made
// room in the project's window. In a transaction it takes effect with the commit. Commits that notify come one after the other, so
// none does so in vain.
func WakeRelays(batch *pgx.Batch, project string) {
	batch.Queue(`
		select pg_notify($2, $3) where exists (
			select from event_outbox where project_id = $1 and fanned_out_at is null and poisoned_at is null)`, project, channel, markOf(project))
}

// claimOneTx takes and marks one event, unless it is not as row has it any more or another relay holds it: then store.ErrNotFound.
func claimOneTx(ctx context.Context, tx pgx.Tx, row outboxRow) error {
	var seq int64
	err := tx.QueryRow(ctx, `
		update event_outbox set fanned_out_at = now(), relay_after = null, relay_error = null
		where seq = (
			select seq from event_outbox
			where seq = $1 and relay_failures = $2 and fanned_out_at is null and poisoned_at is null
			for update skip locked)
		returning seq`, row.Seq, row.RelayFailures).Scan(&seq)
	if err != nil {
		return fmt.Errorf("claim event: %w", store.MapError(err))
	}
	return nil
}

// failedRows reads up to limit events that failed before and are due, and tells whether others wait for later.
func failedRows(ctx context.Context, db store.DB, limit int) (due []outboxRow, later bool, err error) {
	rows, err := db.Query(ctx, `
		select seq, project_id, event_id, relay_failures, relay_after <= now() as due from event_outbox
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

// charge notes one more failure of an event and when its next turn is, and reports whether it has one: at the fifth the
// event is poisoned. When another relay noted a failure meanwhile, that counts for both.
func (r *Relay) charge(ctx context.Context, row outboxRow, cause error) (waits bool, err error) {
	failures := row.RelayFailures + 1
	var wait *time.Duration
	if failures < poisonAfter {
		wait = &failureWaits[failures-1]
	}
	tag, err := r.pool.Exec(ctx, `
		update event_outbox set relay_failures = $3, relay_error = $4, relay_after = now() + $5::interval,
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
