package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// QueueStatus is how a queue stands in the whole installation. Counts stop at CountLimit+1.
type QueueStatus struct {
	Name     string
	PausedAt time.Time
	// Available are due, Running are under way.
	Available, Running int
	// Oldest is when the longest waiting of the due ones came due; zero when none waits.
	Oldest time.Time
}

// ListQueues lists the queues that some node has worked, by name. The parts that nodes have of their own count with the whole.
func (c *Client) ListQueues(ctx context.Context) ([]QueueStatus, error) {
	list, err := c.riverQueues(ctx)
	if err != nil {
		return nil, err
	}
	var out []QueueStatus
	for _, q := range list {
		if wholeQueue(q.Name) != q.Name {
			continue
		}
		s := QueueStatus{Name: q.Name}
		if q.PausedAt != nil {
			s.PausedAt = *q.PausedAt
		}
		var names []string
		for _, part := range list {
			if wholeQueue(part.Name) == q.Name {
				names = append(names, part.Name)
			}
		}
		var oldest *time.Time
		err := c.pool.QueryRow(ctx, `
			select (select count(*) from (select 1 from river_job where state = 'available' and queue = any($1) and scheduled_at <= now() limit $2) as t),
			       (select count(*) from (select 1 from river_job where state = 'running' and queue = any($1) limit $2) as t),
			       (select min(first.at) from unnest($1::text[]) as part (name) cross join lateral (
			           select scheduled_at as at from river_job where state = 'available' and queue = part.name and priority = 1 and scheduled_at <= now()
			           order by scheduled_at limit 1) as first)`,
			names, CountLimit+1).Scan(&s.Available, &s.Running, &oldest)
		if err != nil {
			return nil, fmt.Errorf("count queue %s: %w", q.Name, err)
		}
		if oldest != nil {
			s.Oldest = *oldest
		}
		out = append(out, s)
	}
	return out, nil
}

// mostQueues bounds a list of queues: a few, and a part of some for each node that was alive within the last day.
const mostQueues = 1000

func (c *Client) riverQueues(ctx context.Context) ([]*rivertype.Queue, error) {
	list, err := c.river.QueueList(ctx, river.NewQueueListParams().First(mostQueues))
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return list.Queues, nil
}

func (c *Client) queueNames(ctx context.Context) ([]string, error) {
	list, err := c.riverQueues(ctx)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(list))
	for i, q := range list {
		names[i] = q.Name
	}
	return names, nil
}

// PauseQueue stops all nodes from fetching of a queue; what runs goes on. An unknown queue is store.ErrNotFound.
func (c *Client) PauseQueue(ctx context.Context, actor tenant.Actor, name string) error {
	return c.setQueue(ctx, actor, name, "queue.pause", c.river.QueuePauseTx)
}

// ResumeQueue undoes PauseQueue.
func (c *Client) ResumeQueue(ctx context.Context, actor tenant.Actor, name string) error {
	return c.setQueue(ctx, actor, name, "queue.resume", c.river.QueueResumeTx)
}

func (c *Client) setQueue(ctx context.Context, actor tenant.Actor, name, action string, set func(context.Context, pgx.Tx, string, *river.QueuePauseOpts) error) error {
	if err := actor.Require(tenant.PermAdmin); err != nil {
		return err
	}
	parts, err := c.partsOf(ctx, name)
	if err != nil {
		return err
	}
	return store.InTx(ctx, c.pool, func(tx pgx.Tx) error {
		for _, part := range parts {
			if err := set(ctx, tx, part, nil); err != nil && !errors.Is(err, rivertype.ErrNotFound) {
				return fmt.Errorf("%s %s: %w", action, part, err)
			}
		}
		return tenant.Audit(ctx, tx, actor, action, "queue", name, nil)
	})
}
