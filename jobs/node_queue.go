package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// nodeMark stands between a queue's name and that of a node.
const nodeMark = "_of_"

// NodeQueue is a node's own part of a queue: what is put there is worked by that node alone, with workers of its own. It is for
// work that only the holder of some lease may do; other nodes would fetch it in vain. When the node is gone, the others take over.
func NodeQueue(queue, nodeID string) string { return queue + nodeMark + nodeID }

// wholeQueue is the queue that a queue is part of, which may be itself.
func wholeQueue(name string) string {
	whole, _, _ := strings.Cut(name, nodeMark)
	return whole
}

// reclaim gives what is due in a node's own queues to all nodes. What becomes due there later is found by AdoptOrphans.
func reclaim(ctx context.Context, tx pgx.Tx, nodeID string) error {
	_, err := tx.Exec(ctx, `
		update river_job set queue = $1 where state = 'available' and queue = $2`, QueueWebhook, NodeQueue(QueueWebhook, nodeID))
	if err != nil {
		return fmt.Errorf("give a node's queue to the others: %w", err)
	}
	return nil
}

// AdoptOrphans gives tasks that are due in the queues of nodes that are no more to all nodes, and returns how many those were. The
// queues are found by steps along an index, not by looking at each task.
func AdoptOrphans(ctx context.Context, db store.DB) (int, error) {
	rows, err := db.Query(ctx, `
		with recursive found as (
			(select queue from river_job where state = 'available' order by queue limit 1)
			union all
			select (select j.queue from river_job j where j.state = 'available' and j.queue > f.queue order by j.queue limit 1)
			from found f where f.queue is not null
		)
		select f.queue from found f
		where f.queue like '%' || $1 || '%' and not exists (
			select from nodes n where f.queue = split_part(f.queue, $1, 1) || $1 || n.id and n.seen_at > now() - make_interval(secs => $2))`,
		nodeMark, nodeDeadAfter.Seconds())
	if err != nil {
		return 0, fmt.Errorf("find the queues of nodes that are no more: %w", err)
	}
	orphaned, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("find the queues of nodes that are no more: %w", err)
	}
	total := 0
	for _, name := range orphaned {
		tag, err := db.Exec(ctx, `update river_job set queue = $2 where state = 'available' and queue = $1`, name, wholeQueue(name))
		if err != nil {
			return total, fmt.Errorf("adopt the tasks of a queue: %w", err)
		}
		total += int(tag.RowsAffected())
		if err := Nudge(ctx, db, wholeQueue(name)); err != nil {
			return total, err
		}
	}
	return total, nil
}

// TakeOwn moves what has been due in the queue of all nodes for some seconds, of lanes that a node holds, into the node's own queue. The
// others leave it there.
func TakeOwn(ctx context.Context, db store.DB, nodeID string) error {
	tag, err := db.Exec(ctx, `
		update river_job j set queue = $2 from endpoint_lanes l
		where l.holder = $3 and l.busy_until > now() and j.endpoint_id = l.endpoint_id
		  and j.state = 'available' and j.queue = $1 and j.scheduled_at < now() - make_interval(secs => 2)`,
		QueueWebhook, NodeQueue(QueueWebhook, nodeID), nodeID)
	if err != nil {
		return fmt.Errorf("take what is due of a node's lanes: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return Nudge(ctx, db, NodeQueue(QueueWebhook, nodeID))
}

// MoveTo puts the attempt's task into another queue, for when it comes back after a snooze.
func (a *Attempt) MoveTo(ctx context.Context, db store.DB, queue string) error {
	_, err := db.Exec(ctx, `update river_job set queue = $2 where id = $1 and project_id is not distinct from nullif($3, '')`, a.TaskID, queue, a.ProjectID)
	if err != nil {
		return fmt.Errorf("move a task to another queue: %w", err)
	}
	return nil
}

// pauseLikeOthers makes a node's own queues as paused as the queues that they are part of, before it begins to work them.
func pauseLikeOthers(ctx context.Context, db store.DB, nodeID string) error {
	_, err := db.Exec(ctx, `
		insert into river_queue (name, created_at, updated_at, metadata, paused_at)
		select name || $1 || $2, now(), now(), '{}', paused_at from river_queue where name = $3 and paused_at is not null
		on conflict (name) do update set paused_at = excluded.paused_at`, nodeMark, nodeID, QueueWebhook)
	if err != nil {
		return fmt.Errorf("see whether a queue is paused: %w", err)
	}
	return nil
}

// partsOf lists a queue and the parts of it that nodes work.
func (c *Client) partsOf(ctx context.Context, queue string) ([]string, error) {
	all, err := c.queueNames(ctx)
	if err != nil {
		return nil, err
	}
	parts := slices.DeleteFunc(all, func(name string) bool { return wholeQueue(name) != queue })
	if !slices.Contains(parts, queue) {
		return nil, store.ErrNotFound
	}
	return parts, nil
}
