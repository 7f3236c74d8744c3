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
	// Holder is the live node that works the lane.
	Holder string `db:"holder"`
	// Queued tells of a failing endpoint that some deliveries are in River's hands, Cooling that some wait for its next probe.
	Queued  bool `db:"queued"`
	Cooling bool `db:"cooling"`
}

// room is how many deliveries may be in River's hands at now. A failing endpoint gets one when nothing else will probe it for a
// while.
func (b backlog) room(now time.Time) int {
	switch {
	case b.Gone:
		return laneWindow
	case b.Held:
		return 0
	case !b.Failing:
		return laneWindow
	case b.Queued || b.Cooling || b.LastFailureAt != nil && now.Sub(*b.LastFailureAt) < cooldown:
		return 0
	default:
		return 1
	}
}

// promotion is what one endpoint's promotion brought.
type promotion struct {
	// room is how many there was room for, ids are those that are in River's hands now, in order.
	room int
	ids  []int64
}

// promoter says for whom deliveries are promoted.
type promoter struct {
	now time.Time
	// node is the one that asks; it leaves alone the lanes of other live nodes. Empty leaves alone every lane that a node holds.
	node string
	// want bounds what may be in River's hands. limit, when it is not 0, is the last delivery that may be there while others wait.
	want  int
	limit int64
	// resumed is a person's word that deliveries go on, to a failing endpoint too and whoever holds its lane.
	resumed bool
}

// promote moves deliveries of some endpoints from the table into River's hands, in the order of their ids, as far as each
// window has room.
func promote(ctx context.Context, db store.DB, p promoter, endpointIDs ...string) (map[string]promotion, error) {
	backlogs, err := readBacklogs(ctx, db, p.now, endpointIDs)
	if err != nil {
		return nil, err
	}
	done := make(map[string]promotion, len(backlogs))
	for _, b := range backlogs {
		b.Failing = b.Failing && !p.resumed
		room := min(b.room(p.now), p.want)
		if room <= 0 || b.Holder != "" && b.Holder != p.node && !p.resumed {
			continue
		}
		queue := jobs.QueueWebhook
		if b.Holder != "" {
			queue = jobs.NodeQueue(queue, b.Holder)
		}
		if done[b.EndpointID], err = promoteOne(ctx, db, b.EndpointID, queue, room, p.limit); err != nil {
			return done, err
		}
	}
	return done, nil
}

// promoteOne works in one round trip and, outside of a caller's transaction, one of its own. The lane's row is locked first: two
// who promote at once would each fill the same room. Nothing is lost when the commit is: then all waits where it was.
func promoteOne(ctx context.Context, db store.DB, endpointID, queue string, want int, limit int64) (promotion, error) {
	var p promotion
	batch := &pgx.Batch{}
	batch.Queue(`select set_config('synchronous_commit', 'off', true)`)
	batch.Queue(`select from endpoint_lanes where endpoint_id = $1 for update`, endpointID)
	if limit > 0 {
		batch.Queue(`update river_job set state = 'pending' where endpoint_id = $1 and state = 'available' and id > $2`, endpointID, limit)
	}
	batch.Queue(`
		with queued as (
			select least(count(*), $3) as n from (
				select from river_job where endpoint_id = $1 and state in ('available', 'running') limit $3) w
		), next as materialized (
			select id from river_job where endpoint_id = $1 and state = 'pending' order by id limit (select $3 - n from queued)
		), moved as (
			update river_job j set state = 'available', queue = $2, scheduled_at = now()
			from next where j.id = next.id and j.state is not distinct from 'pending' -- no index serves this, so it is looked up by id
			returning j.id
		), told as (
			select pg_notify(concat(current_schema(), '.river_insert'), json_build_object('queue', $2::text)::text) from (select from moved limit 1) w
		)
		select $3 - queued.n, coalesce((select array_agg(id order by id) from moved), '{}'), (select count(*) from told) from queued`,
		endpointID, queue, want).QueryRow(func(row pgx.Row) error {
		var told int
		return row.Scan(&p.room, &p.ids, &told)
	})
	if err := db.SendBatch(ctx, batch).Close(); err != nil {
		return p, fmt.Errorf("promote deliveries of an endpoint: %w", err)
	}
	return p, nil
}

func readBacklogs(ctx context.Context, db store.DB, now time.Time, endpointIDs []string) ([]backlog, error) {
	rows, err := db.Query(ctx, `
		select b.endpoint_id,
		       e.id is null or e.deleted_at is not null or e.disabled_at is not null as gone,
		       e.paused_at is not null or coalesce(l.pause_until > @now, false) as held,
		       l.failing_since is not null as failing, l.last_failure_at,
		       coalesce(n.id, '') as holder,
		       l.failing_since is not null and exists (select from river_job j where j.endpoint_id = b.endpoint_id and j.state in ('available', 'running')) as queued,
		       l.failing_since is not null and exists (select from river_job j where j.endpoint_id = b.endpoint_id and j.state = 'scheduled') as cooling
		from unnest(@ids::text[]) as b (endpoint_id)
		left join endpoints e on e.id = b.endpoint_id
		left join endpoint_lanes l on l.endpoint_id = b.endpoint_id
		left join nodes n on n.id = l.holder and l.busy_until > now() and n.seen_at > now() - make_interval(secs => @dead)`,
		pgx.StrictNamedArgs{"ids": endpointIDs, "now": now, "dead": nodeDeadAfter.Seconds()})
	if err != nil {
		return nil, fmt.Errorf("read backlogs: %w", err)
	}
	backlogs, err := pgx.CollectRows(rows, pgx.RowToStructByName[backlog])
	if err != nil {
		return nil, fmt.Errorf("read backlogs: %w", err)
	}
	return backlogs, nil
}

// dueAfter lists what is due of an endpoint behind a task, in order. Before first it counts in what will come before anything else:
// what waits in the table, to be promoted, and what was snoozed until now, which River notices every few seconds. It also returns up
// to which task that is all.
func dueAfter(ctx context.Context, db store.DB, endpointID string, after, first int64) (due []int64, through int64, err error) {
	const most = 4 * laneWindow
	rows, err := db.Query(ctx, `
		select id from river_job
		where endpoint_id = $1 and id > $2
		  and (state = 'running' or state = 'available' and scheduled_at <= now() + make_interval(secs => $3)
		       or id < $5 and state = 'scheduled' and outcome = 'snooze' and scheduled_at <= now() + make_interval(secs => $3)
		       or id < $5 and state = 'pending')
		order by id limit $4`, endpointID, after, comesSoon.Seconds(), most, first)
	if err != nil {
		return nil, 0, fmt.Errorf("see what is due: %w", err)
	}
	if due, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return nil, 0, fmt.Errorf("see what is due: %w", err)
	}
	if len(due) > 0 {
		through = due[len(due)-1]
	}
	return due, through, nil
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

// wakeTx lets the deliveries wait in the table that were put off without a request because the endpoint failed or was paused: a
// promotion brings them back, in the order of their ids. Waits that an attempt led to stay as they were recorded.
func wakeTx(ctx context.Context, tx pgx.Tx, endpointID string) error {
	_, err := tx.Exec(ctx, `
		update river_job set state = 'pending', scheduled_at = now()
		where endpoint_id = $1 and state = 'scheduled' and kind = $2
		  and (outcome is null or outcome = 'snooze' and metadata ->> 'reason' = any($3))`,
		endpointID, Deliver.Name, []string{reasonFailing, reasonPaused, reasonPausedByPerson})
	if err != nil {
		return fmt.Errorf("wake deliveries: %w", err)
	}
	return nil
}
