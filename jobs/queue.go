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

// ListQueues lists the queues that some node has worked, by name.
func (c *Client) ListQueues(ctx context.Context) ([]QueueStatus, error) {
	list, err := c.river.QueueList(ctx, river.NewQueueListParams().First(100))
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	out := make([]QueueStatus, 0, len(list.Queues))
	for _, q := range list.Queues {
		s := QueueStatus{Name: q.Name}
		if q.PausedAt != nil {
			s.PausedAt = *q.PausedAt
		}
		var oldest *time.Time
		err := c.pool.QueryRow(ctx, `
			select (select count(*) from (select 1 from river_job where state = 'available' and queue = $1 and scheduled_at <= now() limit $2) as t),
			       (select count(*) from (select 1 from river_job where state = 'running' and queue = $1 limit $2) as t),
			       (select scheduled_at from river_job where state = 'available' and queue = $1 and priority = 1 and scheduled_at <= now() order by scheduled_at limit 1)`,
			q.Name, CountLimit+1).Scan(&s.Available, &s.Running, &oldest)
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
	return store.InTx(ctx, c.pool, func(tx pgx.Tx) error {
		if _, err := c.river.QueueGetTx(ctx, tx, name); errors.Is(err, rivertype.ErrNotFound) {
			return store.ErrNotFound
		} else if err != nil {
			return fmt.Errorf("find queue %s: %w", name, err)
		}
		if err := set(ctx, tx, name, nil); err != nil {
			return fmt.Errorf("%s %s: %w", action, name, err)
		}
		return tenant.Audit(ctx, tx, actor, action, "queue", name, nil)
	})
}
