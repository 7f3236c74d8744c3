package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"
)

// Item is one of many tasks to insert.
type Item[T any] struct {
	Args T
	Insert
}

// insertMany puts tasks of one kind into the queue in the order in which they are given. River copies many in, which takes three round
// trips however few they are.
const insertMany = `
	insert into river_job (kind, max_attempts, priority, args, metadata, queue, state, scheduled_at)
	select $1, $2, 1, n.args, n.metadata, n.queue, n.state::river_job_state, coalesce(n.scheduled_at, now())
	from unnest($3::jsonb[], $4::jsonb[], $5::text[], $6::text[], $7::timestamptz[]) with ordinality as n (args, metadata, queue, state, scheduled_at, place)
	order by n.place`

// notifyQueues tells the workers of queues to fetch, as River's own inserts do.
const notifyQueues = `
	select pg_notify(concat(current_schema(), '.river_insert'), json_build_object('queue', queue)::text) from unnest($1::text[]) as q (queue)`

// InsertManyTx puts many tasks into the queue in one round trip, as part of the caller's transaction. Unique is not honoured.
func InsertManyTx[T any](ctx context.Context, c *Client, tx pgx.Tx, k Kind[T], items []Item[T]) (int, error) {
	batch := &pgx.Batch{}
	if err := InsertManyLater(c, batch, k, items); err != nil || len(items) == 0 {
		return 0, err
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return 0, fmt.Errorf("insert %d of %s: %w", len(items), k.Name, err)
	}
	return len(items), nil
}

// InsertManyLater adds what InsertManyTx does to a batch, which the caller sends in its transaction.
func InsertManyLater[T any](c *Client, batch *pgx.Batch, k Kind[T], items []Item[T]) error {
	if len(items) == 0 {
		return nil
	}
	var maxAttempts int
	var args, metadata [][]byte
	var queues, states, told []string
	var scheduledAt []*time.Time
	seen := map[string]bool{}
	for _, item := range items {
		a, opts, err := prepare(c, k, item.Args, item.Insert)
		if err != nil {
			return err
		}
		state, at := rivertype.JobStateAvailable, (*time.Time)(nil)
		if !opts.ScheduledAt.IsZero() {
			state, at = rivertype.JobStateScheduled, &opts.ScheduledAt
		}
		if opts.Pending {
			state = rivertype.JobStatePending
		}
		if state == rivertype.JobStateAvailable && !seen[opts.Queue] {
			seen[opts.Queue] = true
			told = append(told, opts.Queue)
		}
		maxAttempts = opts.MaxAttempts
		args, metadata = append(args, a.json), append(metadata, opts.Metadata)
		queues, states, scheduledAt = append(queues, opts.Queue), append(states, string(state)), append(scheduledAt, at)
	}
	batch.Queue(insertMany, k.Name, maxAttempts, args, metadata, queues, states, scheduledAt)
	if len(told) > 0 {
		batch.Queue(notifyQueues, told)
	}
	return nil
}
