package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"entrega/internal/store"
)

// Claim asks for tasks of one endpoint that wait in the table, pending: they begin on this node in one step, without having been due
// for all to see.
type Claim struct {
	EndpointID string
	// Window is how many tasks of the endpoint may be due or running then, at most.
	Window int
	// After is the last task that need not be looked at: whoever asks knows that none waits up to there.
	After int64
}

// Claimed is what came of a Claim.
type Claimed struct {
	Claim
	// Refused says that the node does not hold the endpoint's lane, or that the endpoint takes nothing, or probes only.
	Refused bool
	// Room is how many there was room for, IDs are those that begin now, in order.
	Room int
	IDs  []int64
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

// claimWaiting takes the first tasks that wait for an endpoint, as far as there is room. The ids are an array, so that no plan looks for
// the tasks in any other way than by id, whatever the statistics say of their states.
const claimWaiting = `
	with open as materialized (
		select $3::bigint - (select count(*) from (select from river_job where endpoint_id = $1 and state in ('available', 'running') limit $3) w) as room
		from endpoint_lanes l join endpoints e on e.id = l.endpoint_id
		where l.endpoint_id = $1 and l.holder = $2 and l.busy_until > now() and l.failing_since is null and coalesce(l.pause_until <= now(), true)
		  and e.deleted_at is null and e.disabled_at is null and e.paused_at is null
	), claimed as (
		update river_job j set state = 'running', queue = $4, attempt = j.attempt + 1, attempted_at = now(), scheduled_at = now(),
			attempted_by = array_append(j.attempted_by[greatest(array_length(j.attempted_by, 1) + 2 - $6::int, 1):], $2)
		where j.id = any(array(
				select id from river_job where endpoint_id = $1 and state = 'pending' and id > $5
				order by id limit coalesce((select least(greatest(room, 0), $7) from open), 0))) -- no limit would be all
		  and j.state is not distinct from 'pending'
		returning j.id, j.args, j.attempt, j.attempted_at, j.attempted_by, j.created_at, j.errors, j.kind, j.max_attempts, j.metadata,
			j.priority, j.queue, j.scheduled_at, j.tags
	)
	select open.room, claimed.* from open left join claimed on true order by claimed.id`

// claim asks the table for many endpoints in one round trip, for most tasks at most, which the endpoints share. What it returns as
// running is committed.
func claim(ctx context.Context, db store.DB, nodeID, queue string, most, keepBy int, claims []Claim) ([]*rivertype.JobRow, []Claimed, error) {
	var jobs []*rivertype.JobRow
	done := make([]Claimed, 0, len(claims))
	share := most / max(1, len(claims))
	batch := &pgx.Batch{}
	for _, c := range claims {
		batch.Queue(lockLane, c.EndpointID)
		batch.Queue(claimWaiting, c.EndpointID, nodeID, c.Window, queue, c.After, keepBy, share).Query(func(rows pgx.Rows) error {
			got := Claimed{Claim: c, Refused: true}
			for rows.Next() {
				job, err := scanClaimed(rows, &got.Room)
				if err != nil {
					return err
				}
				got.Refused = false
				if job != nil {
					jobs, got.IDs = append(jobs, job), append(got.IDs, job.ID)
				}
			}
			got.Room = min(got.Room, share)
			done = append(done, got)
			return rows.Err()
		})
	}
	if err := db.SendBatch(ctx, batch).Close(); err != nil {
		return nil, nil, fmt.Errorf("claim tasks that wait: %w", err)
	}
	return jobs, done, nil
}

// scanClaimed reads a row of claimWaiting; there is no job in it when nothing waited.
func scanClaimed(rows pgx.Rows, room *int) (*rivertype.JobRow, error) {
	var id *int64
	var attempt, max, priority *int
	var kind, queue *string
	var attemptedAt, createdAt, scheduledAt *time.Time
	var failures [][]byte
	job := &rivertype.JobRow{State: rivertype.JobStateRunning}
	err := rows.Scan(room, &id, &job.EncodedArgs, &attempt, &attemptedAt, &job.AttemptedBy, &createdAt, &failures, &kind, &max, &job.Metadata,
		&priority, &queue, &scheduledAt, &job.Tags)
	if err != nil || id == nil {
		return nil, err
	}
	job.ID, job.Attempt, job.MaxAttempts, job.Priority, job.Kind, job.Queue = *id, *attempt, *max, *priority, *kind, *queue
	at := attemptedAt.UTC()
	job.AttemptedAt, job.CreatedAt, job.ScheduledAt = &at, createdAt.UTC(), scheduledAt.UTC()
	job.Errors = make([]rivertype.AttemptError, len(failures))
	for i, failure := range failures {
		if err := riverdriver.UnmarshalAttemptError(failure, &job.Errors[i]); err != nil {
			return nil, fmt.Errorf("read an error of task %d: %w", job.ID, err)
		}
	}
	return job, nil
}
