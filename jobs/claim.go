package jobs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"entrega/internal/store"
)

// Claim asks for tasks of one endpoint whose lane this node holds. Those that wait in the table, pending, begin in one step, without
// having been due for all to see.
type Claim struct {
	EndpointID string
	// Window is how many tasks of the endpoint may be due or running then, at most.
	Window int
	// After is the last task that need not be looked at: whoever asks knows that none waits up to there.
	After int64
	// Soon, where it is not 0, asks for the order: what else runs of the endpoint behind the task Known, which nobody need be told of
	// again. It is how far ahead a wait counts that ends soon and takes its place before what begins now.
	Soon  time.Duration
	Known int64
}

// Claimed is what came of a Claim.
type Claimed struct {
	Claim
	// Refused says that the node does not hold the endpoint's lane, or that the endpoint takes nothing, or probes only.
	Refused bool
	// Room is how many there was room for, Found how many there were of them, IDs are those that begin now, in order: others may
	// have taken some in the same moment.
	Room, Found int
	IDs         []int64
	// Order has, where Claim.Soon asked for it, all that runs or begins now behind Claim.Known, in order. It is nil where something is
	// about to come before the last of them that is not among them.
	Order []int64
}

// Claimer says what this node may claim beside what is due in its own queue. It is called by one goroutine at a time.
type Claimer interface {
	// Wanted is readable when Claims has something to say.
	Wanted() <-chan struct{}
	// Claims returns the wishes of the moment, most of them at most, and forgets those.
	Claims(most int) []Claim
	// Claimed takes in what came of them. Where the database could not be asked all come back refused.
	Claimed([]Claimed)
}

// lockLane keeps all others from filling the window until the claim is committed. It is a statement of its own, since the claim must see
// what those did who had the lock before.
const lockLane = `select from endpoint_lanes where endpoint_id = $1 for update`

// beginTasks makes tasks running on a node. The ids are an array, so that no plan looks for the tasks in any other way than by id,
// whatever the statistics say of their states.
const beginTasks = `
	update river_job j set state = 'running', queue = $2, attempt = j.attempt + 1, attempted_at = now(),
		scheduled_at = case j.state when 'pending' then now() else j.scheduled_at end,
		attempted_by = array_append(j.attempted_by[greatest(array_length(j.attempted_by, 1) + 2 - $3::int, 1):], $1)
	where j.id = any(array(select id from chosen)) and (j.state is not distinct from 'available' or j.state is not distinct from 'pending')
	returning j.id, j.args, j.attempt, j.attempted_at, j.attempted_by, j.created_at, j.errors, j.kind, j.max_attempts, j.metadata,
		j.priority, j.queue, j.scheduled_at, j.tags`

// claimLane takes the first tasks of an endpoint whose lane the node holds, in the order of their ids: those that are due, in whichever
// queue, and of those that wait as many as the window has room for.
const claimLane = `
	with open as materialized (
		select hands.* from endpoint_lanes l join endpoints e on e.id = l.endpoint_id cross join lateral (
			select count(*) filter (where state = 'running') as running, count(*) filter (where state = 'available') as available,
			       count(*) filter (where state = 'available' and scheduled_at <= now()) as due
			from (select state, scheduled_at from river_job where endpoint_id = l.endpoint_id and state in ('running', 'available') limit $5) w) hands
		where l.endpoint_id = $4 and l.holder = $1 and l.busy_until > now() and l.failing_since is null and coalesce(l.pause_until <= now(), true)
		  and e.deleted_at is null and e.disabled_at is null and e.paused_at is null
	), room as materialized (
		select least(greatest($5 - running, 0), $6, greatest($5 - running - available, 0) + due) as n, greatest($5 - running - available, 0) as waiting from open
		union all select 0, 0 where not exists (select from open) -- no limit would be all
	), chosen as materialized (
		select id, waits from (
			(select id, false as waits from river_job where endpoint_id = $4 and state = 'available' and scheduled_at <= now() order by id limit (select n from room))
			union all
			(select id, true from river_job where endpoint_id = $4 and state = 'pending' and id > $7 order by id limit (select waiting from room))
		) w order by id limit (select n from room)
	), last as materialized (
		select max(id) as id, count(*) filter (where waits) as waited from chosen
	), ahead as materialized (
		select array(select id from river_job where endpoint_id = $4 and state = 'running' and id > $9 order by id) as ids from last
		where $8 and not exists (select from river_job where endpoint_id = $4 and state = 'available' and river_job.id < last.id
		                         and scheduled_at > now() and scheduled_at <= now() + make_interval(secs => $10))
		  and not exists (select from river_job where endpoint_id = $4 and state = 'scheduled' and river_job.id < last.id
		                  and outcome = 'snooze' and scheduled_at <= now() + make_interval(secs => $10))
		  and not exists (select from river_job where endpoint_id = $4 and state = 'pending' and river_job.id > $7 and river_job.id < last.id
		                  offset last.waited)
	), begun as (` + beginTasks + `)
	select room.n, (select count(*) from chosen), (select ids from ahead), begun.* from open cross join room left join begun on true order by begun.id`

// fetchDue takes what is due in a queue that all nodes work, as River does, with regard to lanes: of one that nobody holds it takes a few,
// whose workers get its lease and then claim the rest, and of one that another node holds none: that node claims them, and TakeOwn finds
// what it does not. What has no endpoint sends nothing, and a crash that undoes its beginning undoes what came of it: such a commit does not
// wait for the disk.
const fetchDue = `
	with first as materialized (
		select j.id, j.priority, j.scheduled_at, j.endpoint_id from river_job j
		where j.state = 'available' and j.queue = $2 and j.scheduled_at <= now()
		order by j.priority, j.scheduled_at, j.id limit $6
	), held as materialized (
		select l.endpoint_id, l.holder from endpoint_lanes l join nodes n on n.id = l.holder
		where l.endpoint_id in (select endpoint_id from first) and l.busy_until > now() and n.seen_at > now() - make_interval(secs => $5)
	), ranked as materialized (
		select f.*, h.holder, row_number() over (partition by f.endpoint_id order by f.priority, f.scheduled_at, f.id) as place
		from first f left join held h on h.endpoint_id = f.endpoint_id
	), chosen as materialized (
		select id from river_job where state = 'available' and id = any(array(
			select id from ranked where endpoint_id is null or holder = $1 or holder is null and place <= $7
			order by priority, scheduled_at, id limit $4))
		for update skip locked
	), begun as (` + beginTasks + `), unhurried as materialized (
		select set_config('synchronous_commit', 'off', true)
		where not exists (select from ranked where endpoint_id is not null and id in (select id from chosen))
	)
	select 0, 0, null::bigint[], begun.* from begun left join unhurried on true order by begun.priority, begun.scheduled_at, begun.id`

const (
	// lookedAt is how many due tasks are looked at in one fetch.
	lookedAt = 2000
	// enterWith is how many tasks of a lane that nobody holds a node takes at once.
	enterWith = 4
)

// begun are tasks that are running now. What is broken has an error that cannot be read: River fails its attempt, and nothing else is lost.
type begun struct {
	jobs   []*rivertype.JobRow
	broken map[int64]error
}

// fetch takes up to most tasks that are due in a queue of all nodes.
func fetch(ctx context.Context, db store.DB, nodeID, queue string, most, keepBy int) (begun, error) {
	var b begun
	rows, err := db.Query(ctx, fetchDue, nodeID, queue, keepBy, most, nodeDeadAfter.Seconds(), lookedAt, enterWith)
	if err != nil {
		return b, fmt.Errorf("fetch what is due: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var none Claimed
		if _, err := b.scan(rows, &none); err != nil {
			return b, fmt.Errorf("fetch what is due: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return b, fmt.Errorf("fetch what is due: %w", err)
	}
	return b, nil
}

// claim asks the table for many endpoints in one round trip, for most tasks at most, which the endpoints share. What it returns as
// running is committed.
func claim(ctx context.Context, db store.DB, nodeID, queue string, most, keepBy int, claims []Claim) (begun, []Claimed, error) {
	var b begun
	done := make([]Claimed, 0, len(claims))
	share := most / max(1, len(claims))
	batch := &pgx.Batch{}
	for _, c := range claims {
		batch.Queue(lockLane, c.EndpointID)
		batch.Queue(claimLane, nodeID, queue, keepBy, c.EndpointID, c.Window, share, c.After,
			c.Soon > 0, c.Known, c.Soon.Seconds()).Query(func(rows pgx.Rows) error {
			got := Claimed{Claim: c, Refused: true}
			for rows.Next() {
				id, err := b.scan(rows, &got)
				if err != nil {
					return err
				}
				got.Refused = false
				if id != 0 {
					got.IDs = append(got.IDs, id)
				}
			}
			got.sortOut()
			done = append(done, got)
			return rows.Err()
		})
	}
	if err := db.SendBatch(ctx, batch).Close(); err != nil {
		return begun{}, nil, fmt.Errorf("claim tasks that wait: %w", err)
	}
	return b, done, nil
}

// sortOut completes the order of what runs, which has what ran before, by what begins now. Others may have taken some of what was found:
// then the order is not known.
func (c *Claimed) sortOut() {
	if c.Order == nil || c.Found != len(c.IDs) {
		c.Order = nil
		return
	}
	c.Order = append(c.Order, c.IDs...)
	slices.Sort(c.Order)
}

// scan adds a row of what began, and returns its id; 0 is a row that says only that nothing did. The numbers go to c.
func (b *begun) scan(rows pgx.Rows, c *Claimed) (taskID int64, err error) {
	var id *int64
	var attempt, max, priority *int
	var kind, queue *string
	var attemptedAt, createdAt, scheduledAt *time.Time
	var failures [][]byte
	job := &rivertype.JobRow{State: rivertype.JobStateRunning}
	err = rows.Scan(&c.Room, &c.Found, &c.Order, &id, &job.EncodedArgs, &attempt, &attemptedAt, &job.AttemptedBy, &createdAt, &failures, &kind, &max, &job.Metadata,
		&priority, &queue, &scheduledAt, &job.Tags)
	if err != nil || id == nil {
		return 0, err
	}
	job.ID, job.Attempt, job.MaxAttempts, job.Priority, job.Kind, job.Queue = *id, *attempt, *max, *priority, *kind, *queue
	at := attemptedAt.UTC()
	job.AttemptedAt, job.CreatedAt, job.ScheduledAt = &at, createdAt.UTC(), scheduledAt.UTC()
	job.Errors = make([]rivertype.AttemptError, len(failures))
	for i, failure := range failures {
		if err := riverdriver.UnmarshalAttemptError(failure, &job.Errors[i]); err != nil {
			if b.broken == nil {
				b.broken = map[int64]error{}
			}
			b.broken[job.ID], job.Errors = fmt.Errorf("read an error of task %d: %w", job.ID, err), nil
			break
		}
	}
	b.jobs = append(b.jobs, job)
	return job.ID, nil
}
