package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"entrega/internal/store"
)

// Item is one of many tasks to insert.
type Item[T any] struct {
	Args T
	Insert
}

// insertMany puts tasks of one kind into the queue in the order in which they are given, those that run on a node at once as begun there.
// River copies many in, which takes three round trips however few they are.
const insertMany = `
	insert into river_job (kind, max_attempts, priority, args, metadata, queue, state, scheduled_at, attempt, attempted_at, attempted_by)
	select $1, $2, 1, n.args, n.metadata, n.queue, n.state::river_job_state, coalesce(n.scheduled_at, now()),
		case n.state when 'running' then 1 else 0 end, case n.state when 'running' then $9::timestamptz end, case n.state when 'running' then array[$8::text] end
	from unnest($3::jsonb[], $4::jsonb[], $5::text[], $6::text[], $7::timestamptz[]) with ordinality as n (args, metadata, queue, state, scheduled_at, place)
	order by n.place`

// notifyQueues tells the workers of queues to fetch, as River's own inserts do.
const notifyQueues = `
	select pg_notify(concat(current_schema(), '.river_insert'), json_build_object('queue', queue)::text) from unnest($1::text[]) as q (queue)`

// InsertManyTx puts many tasks into the queue in one round trip, as part of the caller's transaction. Unique is not honoured. What it
// returns must be settled when the transaction has ended, where Here was asked for.
func InsertManyTx[T any](ctx context.Context, c *Client, tx pgx.Tx, k Kind[T], items []Item[T]) (*Started, error) {
	batch := &pgx.Batch{}
	started, err := InsertManyLater(c, batch, k, items)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("insert %d of %s: %w", len(items), k.Name, err)
	}
	return started, nil
}

// InsertManyLater adds what InsertManyTx does to a batch, which the caller sends in its transaction.
func InsertManyLater[T any](c *Client, batch *pgx.Batch, k Kind[T], items []Item[T]) (*Started, error) {
	if len(items) == 0 {
		return nil, nil
	}
	var maxAttempts int
	var args, metadata [][]byte
	var queues, states, told []string
	var scheduledAt []*time.Time
	var places []int
	var node string
	started, sends := &Started{starter: c.starter}, false
	seen := map[string]bool{}
	for i, item := range items {
		a, opts, err := prepare(c, k, item.Args, item.Insert)
		if err != nil {
			return nil, err
		}
		state, at := rivertype.JobStateAvailable, (*time.Time)(nil)
		if !opts.ScheduledAt.IsZero() {
			state, at = rivertype.JobStateScheduled, &opts.ScheduledAt
		}
		if opts.Pending {
			state = rivertype.JobStatePending
		}
		if state == rivertype.JobStateAvailable && item.Here {
			if n := c.starter.reserve(opts.Queue); n != "" {
				node, state, sends = n, rivertype.JobStateRunning, sends || item.EndpointID != ""
				places = append(places, i)
				started.add(&rivertype.JobRow{Kind: k.Name, Queue: opts.Queue, State: state, Attempt: 1, AttemptedBy: []string{n}, MaxAttempts: opts.MaxAttempts,
					Priority: 1, EncodedArgs: a.json, Metadata: opts.Metadata, Errors: []rivertype.AttemptError{}, Tags: []string{}})
			}
		}
		if state == rivertype.JobStateAvailable && !seen[opts.Queue] {
			seen[opts.Queue] = true
			told = append(told, opts.Queue)
		}
		maxAttempts = opts.MaxAttempts
		args, metadata = append(args, a.json), append(metadata, opts.Metadata)
		queues, states, scheduledAt = append(queues, opts.Queue), append(states, string(state)), append(scheduledAt, at)
	}
	if len(places) > 0 {
		batch.Queue(insertMany+` returning id, created_at`, k.Name, maxAttempts, args, metadata, queues, states, scheduledAt, node, started.at).Query(func(rows pgx.Rows) error {
			return started.stored(rows, places)
		})
	} else {
		batch.Queue(insertMany, k.Name, maxAttempts, args, metadata, queues, states, scheduledAt, node, started.at)
	}
	if sends { // Nothing is sent before it is durable that it begins.
		store.WaitForDisk(batch)
	}
	if len(told) > 0 {
		batch.Queue(notifyQueues, told)
	}
	return started, nil
}
