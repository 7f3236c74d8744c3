package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// MaxLaneCount bounds the counts of LaneStats: one more means more than that.
const MaxLaneCount = 10_000

// LaneStats is how an endpoint's lane stands by the tables, whichever node works it. Counts stop at MaxLaneCount + 1.
type LaneStats struct {
	// InFlight is how many of its deliveries may be on their way at this moment: those in workers' hands, as far as the lane
	// lets them send at once.
	InFlight int
	// Outstanding are in workers' hands or handed to them, which the window bounds. Pending wait behind it in the table. Later
	// wait for their time: that of a retry, or the end of a pause.
	Outstanding, Pending, Later int
	// OldestAt is when the oldest of all these was made; zero when there is none.
	OldestAt time.Time
	// Holder is the live node that works the lane, empty when none does. HeldUntil is when its lease ends unless it is renewed.
	Holder    string
	HeldUntil time.Time
	// PauseUntil is when the receiver wants to be asked again; zero when that is past.
	PauseUntil time.Time
}

// Backlog counts the deliveries that are not finished. Where a part of it is above MaxLaneCount it is only a lower bound.
func (l LaneStats) Backlog() int { return l.Outstanding + l.Pending + l.Later }

// LaneOf reads how the lane of an endpoint stands. Every count is a walk along one index.
func (s *Endpoints) LaneOf(ctx context.Context, db store.DB, e Endpoint) (LaneStats, error) {
	l := LaneStats{Holder: e.Holder, HeldUntil: orZero(e.BusyUntil)}
	if e.PauseUntil != nil && e.PauseUntil.After(s.now()) {
		l.PauseUntil = *e.PauseUntil
	}
	var running int
	var oldest *time.Time
	var held bool
	err := db.QueryRow(ctx, `
		select (select count(*) from (select from river_job where endpoint_id = @endpoint and state = 'running' limit @most) w),
		       (select count(*) from (select from river_job where endpoint_id = @endpoint and state in ('available', 'running') limit @most) w),
		       (select count(*) from (select from river_job where endpoint_id = @endpoint and state = 'pending' limit @most) w),
		       (select count(*) from (select from river_job where endpoint_id = @endpoint and state in ('retryable', 'scheduled') limit @most) w),
		       (select min(created_at) from river_job where id = any(array[
		           (select min(id) from river_job where endpoint_id = @endpoint and state = 'available'),
		           (select min(id) from river_job where endpoint_id = @endpoint and state = 'pending'),
		           (select min(id) from river_job where endpoint_id = @endpoint and state = 'retryable'),
		           (select min(id) from river_job where endpoint_id = @endpoint and state = 'running'),
		           (select min(id) from river_job where endpoint_id = @endpoint and state = 'scheduled')])),
		       exists (select from endpoint_lanes l join nodes n on n.id = l.holder
		               where l.endpoint_id = @endpoint and l.project_id = @project and l.busy_until > now()
		                 and n.seen_at > now() - make_interval(secs => @dead))`,
		pgx.StrictNamedArgs{"project": e.ProjectID, "endpoint": e.ID, "most": MaxLaneCount + 1, "dead": nodeDeadAfter.Seconds()},
	).Scan(&running, &l.Outstanding, &l.Pending, &l.Later, &oldest, &held)
	if err != nil {
		return LaneStats{}, fmt.Errorf("read how a lane stands: %w", err)
	}
	l.OldestAt = orZero(oldest)
	if !held {
		l.Holder, l.HeldUntil = "", time.Time{}
	}
	l.InFlight = min(running, max(e.MaxInFlight, 1))
	if e.FailingSince != nil {
		l.InFlight = min(running, 1)
	}
	return l, nil
}
