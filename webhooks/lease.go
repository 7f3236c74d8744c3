package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

const (
	// leaseFor is how long a lease is good without being renewed: longer than an attempt with its bookkeeping.
	leaseFor = 35 * time.Second
	// leaseMargin is how much earlier its holder takes it for lost, for clocks and round trips.
	leaseMargin = 5 * time.Second
	// renewAhead is how long before that a busy lane's lease is renewed.
	renewAhead = 20 * time.Second
	// releaseAfter is how long a lane is idle before it is left to other nodes.
	releaseAfter = time.Second
	// nodeDeadAfter is how long a node may be silent before its leases are free (package jobs keeps the list).
	nodeDeadAfter = 5 * time.Second
)

// lease is this process's right to work a lane. Its instants are of two clocks: until is this machine's monotonic one, and
// busyUntil is the row's own value, which says whether a release still concerns the lease it means.
type lease struct {
	until     time.Time
	busyUntil time.Time
}

func (l lease) good() bool { return time.Now().Before(l.until) }

// leaseState is the answer to taking a lease.
type leaseState struct {
	lease
	taken bool
	// holder is the live node that has it, when it was not taken.
	holder string
	// restFor is how long the endpoint's rate must rest: the former holder's last request counts.
	restFor time.Duration
	health
}

// takeLease takes or renews the lease of a lane with one UPDATE. It fails to when another node that is alive holds it. A holder
// that never gave the lease up may have sent a moment ago.
func takeLease(ctx context.Context, db store.DB, node, project, endpointID string) (leaseState, error) {
	asked := time.Now()
	var s leaseState
	var since, pause, until *time.Time
	var rest float64
	err := db.QueryRow(ctx, `
		with was as (
			select l.endpoint_id, l.holder, l.failing_since, l.failures_in_a_row, l.pause_until,
			       l.holder is null or l.holder = @node or l.busy_until < now()
			       or not exists (select from nodes n where n.id = l.holder and n.seen_at > now() - make_interval(secs => @dead)) as free,
			       case when l.holder is null then greatest(extract(epoch from l.rate_next_at - now()), 0)
			            when l.holder <> @node then coalesce(1 / e.rate_per_second, 0) end as rest
			from endpoint_lanes l join endpoints e on e.id = l.endpoint_id
			where l.project_id = @project and l.endpoint_id = @endpoint for update of l
		), taken as (
			update endpoint_lanes l set holder = @node, busy_until = now() + make_interval(secs => @secs)
			from was where l.endpoint_id = was.endpoint_id and was.free
			returning l.endpoint_id, l.busy_until
		)
		select taken.busy_until, coalesce(was.holder, ''), coalesce(was.rest, 0)::float8, was.failing_since, was.failures_in_a_row, was.pause_until
		from was left join taken on true`,
		pgx.StrictNamedArgs{"node": node, "project": project, "endpoint": endpointID, "secs": leaseFor.Seconds(), "dead": nodeDeadAfter.Seconds()},
	).Scan(&until, &s.holder, &rest, &since, &s.failures, &pause)
	if errors.Is(err, pgx.ErrNoRows) {
		return leaseState{}, nil
	}
	if err != nil {
		return leaseState{}, fmt.Errorf("take the lease of a lane: %w", err)
	}
	if until == nil {
		return s, nil
	}
	s.taken, s.until, s.busyUntil = true, asked.Add(leaseFor-leaseMargin), *until
	s.failingSince, s.pauseUntil, s.restFor = orZero(since), orZero(pause), time.Duration(rest*float64(time.Second))
	return s, nil
}

// needsLease reports whether the database must be asked before a task may enter: there is no lease, or the lane is paused
// and a person may have ended that. The one who gets no channel asks, and calls leaseAsked; the others wait for it.
func (l *lanes) needsLease(ln *lane) (needed bool, wait <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln.lease.good() && !l.now().Before(ln.pauseUntil) {
		return false, nil
	}
	if ln.leasing != nil {
		return true, ln.leasing
	}
	ln.leasing = make(chan struct{})
	return true, nil
}

// leaseAsked lets those go on who waited for the lease.
func (l *lanes) leaseAsked(ln *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(ln.leasing)
	ln.leasing = nil
}

// holds reports whether the lease of a lane is still good, as it may not be after a long wait for a place.
func (l *lanes) holds(ln *lane) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ln.lease.good()
}

func (l *lanes) leased(ln *lane, s leaseState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln.lease.busyUntil.IsZero() {
		ln.restFor(s.restFor)
		l.drained(ln.endpointID) // Something may wait in the table.
	}
	ln.lease, ln.healthAt = s.lease, time.Now()
	l.setHealth(ln, s.health)
}

// leaseRow is one lane in a statement on many.
type leaseRow struct {
	endpointID  string
	busyUntil   time.Time
	lastSuccess time.Time
	restFor     time.Duration
}

func (ln *lane) row(now time.Time) leaseRow {
	return leaseRow{endpointID: ln.endpointID, busyUntil: ln.lease.busyUntil, lastSuccess: ln.lastSuccess, restFor: ln.restUntil(now)}
}

// duties lists what the lease keeper has to do now: leases of busy lanes to renew, and those of idle lanes to give up. The
// latter are forgotten in the same moment, so that a task which comes now takes the lease anew.
func (l *lanes) duties() (renew, release []leaseRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for id, ln := range l.byID {
		row := ln.row(now)
		switch {
		case !ln.idle():
			if ln.lease.until.Sub(now) < renewAhead {
				renew = append(renew, row)
			}
		case now.Sub(ln.idleSince) >= releaseAfter:
			delete(l.byID, id)
			release = append(release, row)
			if ln.backlog { // The last promotion found no room, or failed.
				l.left(id)
			}
		}
	}
	return renew, release
}

// everything forgets all lanes, for a process that ends.
func (l *lanes) everything() (release []leaseRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for id, ln := range l.byID {
		delete(l.byID, id)
		release = append(release, ln.row(now))
	}
	return release
}

// renewed notes new leases; a lane that is not among them has lost its own, and whoever enters next has to take it.
func (l *lanes) renewed(asked time.Time, wanted []leaseRow, got map[string]time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, row := range wanted {
		ln := l.byID[row.endpointID]
		if ln == nil {
			continue
		}
		busyUntil, ok := got[row.endpointID]
		if !ok {
			ln.lease = lease{}
			continue
		}
		ln.lease = lease{until: asked.Add(leaseFor - leaseMargin), busyUntil: busyUntil}
	}
}

// renewLeases renews in one statement and returns the new instants by endpoint.
func renewLeases(ctx context.Context, db store.DB, node string, rows []leaseRow) (map[string]time.Time, error) {
	ids, _, _, _ := columns(rows)
	found, err := db.Query(ctx, `
		update endpoint_lanes set busy_until = now() + make_interval(secs => $3)
		where endpoint_id = any($1) and holder = $2 returning endpoint_id, busy_until`, ids, node, leaseFor.Seconds())
	if err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	got := make(map[string]time.Time, len(rows))
	var id string
	var until time.Time
	if _, err := pgx.ForEachRow(found, []any{&id, &until}, func() error { got[id] = until; return nil }); err != nil {
		return nil, fmt.Errorf("renew leases: %w", err)
	}
	return got, nil
}

// releaseLeases gives leases up in one statement, and writes down the newest successes, which healthy lanes keep to
// themselves. A lease that was taken again meanwhile has another instant and stays.
func releaseLeases(ctx context.Context, db store.DB, node string, rows []leaseRow) error {
	ids, untils, successes, rests := columns(rows)
	_, err := db.Exec(ctx, `
		update endpoint_lanes l set holder = null, busy_until = '-infinity', last_success_at = greatest(l.last_success_at, r.success),
			rate_next_at = case when r.rest > 0 then now() + make_interval(secs => r.rest) end
		from unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::float8[]) as r (endpoint_id, busy_until, success, rest)
		where l.endpoint_id = r.endpoint_id and l.holder = $5 and l.busy_until = r.busy_until`, ids, untils, successes, rests, node)
	if err != nil {
		return fmt.Errorf("release leases: %w", err)
	}
	return nil
}

func columns(rows []leaseRow) (ids []string, untils []time.Time, successes []*time.Time, rests []float64) {
	for _, row := range rows {
		ids = append(ids, row.endpointID)
		untils = append(untils, row.busyUntil)
		successes = append(successes, orNull(row.lastSuccess))
		rests = append(rests, row.restFor.Seconds())
	}
	return ids, untils, successes, rests
}
