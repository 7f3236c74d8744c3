package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
)

// backlog is an endpoint with deliveries that wait in the table for their lane.
type backlog struct {
	EndpointID string `db:"endpoint_id"`
	// Gone is one that takes nothing any more; its deliveries get their turn to end.
	Gone bool `db:"gone"`
	// Held is one that a person or the receiver has paused.
	Held          bool       `db:"held"`
	Failing       bool       `db:"failing"`
	LastFailureAt *time.Time `db:"last_failure_at"`
	// Queued is how many deliveries River has in its hands, as far as the window goes.
	Queued int `db:"queued"`
	// Cooling tells of deliveries that wait for a failing endpoint's next probe.
	Cooling bool `db:"cooling"`
}

// room is how many deliveries may be promoted at now. A failing endpoint gets one when nothing else will probe it for a while.
func (b backlog) room(now time.Time) int {
	switch {
	case b.Gone:
		return laneWindow - b.Queued
	case b.Held:
		return 0
	case !b.Failing:
		return laneWindow - b.Queued
	case b.Queued > 0 || b.Cooling || b.LastFailureAt != nil && now.Sub(*b.LastFailureAt) < cooldown:
		return 0
	default:
		return 1
	}
}

// promote moves deliveries of some endpoints from the table into River's hands, in the order of their ids, as far as each
// window has room. The tasks in done have been worked here and hold no place, though River may not have written that yet.
func promote(ctx context.Context, db store.DB, now time.Time, endpointIDs []string, done []int64) error {
	backlogs, err := readBacklogs(ctx, db, now, endpointIDs, done)
	if err != nil {
		return err
	}
	for _, b := range backlogs {
		room := b.room(now)
		if room <= 0 {
			continue
		}
		if _, err := jobs.Promote(ctx, db, b.EndpointID, room); err != nil {
			return err
		}
	}
	return nil
}

func readBacklogs(ctx context.Context, db store.DB, now time.Time, endpointIDs []string, done []int64) ([]backlog, error) {
	rows, err := db.Query(ctx, `
		select b.endpoint_id,
		       e.id is null or e.deleted_at is not null or e.disabled_at is not null as gone,
		       e.paused_at is not null or coalesce(l.pause_until > @now, false) as held,
		       l.failing_since is not null as failing, l.last_failure_at,
		       (select count(*) from (select from river_job j where j.endpoint_id = b.endpoint_id
		                              and j.state in ('available', 'running') and not (j.state = 'running' and j.id = any(@done))
		                              limit @window) w) as queued,
		       exists (select from river_job j where j.endpoint_id = b.endpoint_id and j.state = 'scheduled') as cooling
		from unnest(@ids::text[]) as b (endpoint_id)
		left join endpoints e on e.id = b.endpoint_id
		left join endpoint_lanes l on l.endpoint_id = b.endpoint_id`,
		pgx.StrictNamedArgs{"ids": endpointIDs, "now": now, "window": laneWindow, "done": done})
	if err != nil {
		return nil, fmt.Errorf("read backlogs: %w", err)
	}
	backlogs, err := pgx.CollectRows(rows, pgx.RowToStructByName[backlog])
	if err != nil {
		return nil, fmt.Errorf("read backlogs: %w", err)
	}
	return backlogs, nil
}

// backlogged lists the endpoints that have deliveries waiting in the table. It walks from one endpoint to the next along the
// index, whose length is that of all backlogs.
func backlogged(ctx context.Context, db store.DB) ([]string, error) {
	rows, err := db.Query(ctx, `
		with recursive found as (
			(select endpoint_id from river_job where state = 'pending' and endpoint_id is not null order by endpoint_id limit 1)
			union all
			select (select j.endpoint_id from river_job j
			        where j.state = 'pending' and j.endpoint_id is not null and j.endpoint_id > f.endpoint_id
			        order by j.endpoint_id limit 1)
			from found f where f.endpoint_id is not null
		)
		select endpoint_id from found where endpoint_id is not null`)
	if err != nil {
		return nil, fmt.Errorf("find backlogs: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("find backlogs: %w", err)
	}
	return ids, nil
}

// wakeTx brings forward the deliveries that were put off without a request because the endpoint failed, was paused or was
// busy: those within the window are due now, the others wait in the table, all in the order of their ids. Waits that an
// attempt led to stay as they were recorded.
func wakeTx(ctx context.Context, tx pgx.Tx, endpointID string) error {
	tag, err := tx.Exec(ctx, `
		with due as materialized (
			select id from river_job
			where endpoint_id = $1 and state = 'scheduled' and kind = $2
			  and (outcome is null or outcome = 'snooze' and metadata ->> 'reason' = any($4))
			order by id for update skip locked
		), placed as (
			select id, row_number() over (order by id) as place from due
		)
		update river_job j set scheduled_at = now(), state = case when p.place <= $3 then 'available' else 'pending' end::river_job_state
		from placed p where j.id = p.id and j.state = 'scheduled'`,
		endpointID, Deliver.Name, laneWindow, []string{reasonFailing, reasonPaused, reasonPausedByPerson, jobs.ReasonLaneBusy})
	if err != nil {
		return fmt.Errorf("wake deliveries: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return jobs.Nudge(ctx, tx, Deliver.Queue)
}
