package jobs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

const (
	heartbeatEvery = time.Second
	// nodeDeadAfter is how long a node may be silent before the others take over its tasks and leases.
	nodeDeadAfter = 5 * time.Second
)

// Node is one process that works the queues.
type Node struct {
	ID        string    `db:"id"`
	Host      string    `db:"host"`
	Version   string    `db:"version"`
	StartedAt time.Time `db:"started_at"`
	SeenAt    time.Time `db:"seen_at"`
}

// NewNodeID makes a name for a process among the nodes.
func NewNodeID() string {
	var b [6]byte
	// rand.Read never fails.
	_, _ = rand.Read(b[:])
	return "node_" + hex.EncodeToString(b[:])
}

func newNode(id, version string) Node {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if id == "" {
		id = NewNodeID()
	}
	return Node{ID: id, Host: host, Version: version}
}

// ListNodes lists the nodes that are alive, oldest first.
func ListNodes(ctx context.Context, db store.DB) ([]Node, error) {
	rows, err := db.Query(ctx, `select id, host, version, started_at, seen_at from nodes where seen_at > now() - make_interval(secs => $1) order by started_at`,
		nodeDeadAfter.Seconds())
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Node])
}

// beat keeps the node in the list; it also joins, and rejoins should the others have taken this node for dead.
func (n Node) beat(ctx context.Context, db store.DB) error {
	_, err := db.Exec(ctx, `insert into nodes (id, host, version) values ($1, $2, $3) on conflict (id) do update set seen_at = now()`, n.ID, n.Host, n.Version)
	if err != nil {
		return fmt.Errorf("beat: %w", err)
	}
	return nil
}

func (n Node) leave(ctx context.Context, pool *pgxpool.Pool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return store.InTx(ctx, pool, func(tx pgx.Tx) error { return n.forget(ctx, tx) })
}

// forget takes a node off the list, frees its leases, and lets the other nodes have what is due in its own queues.
func (n Node) forget(ctx context.Context, tx pgx.Tx) error {
	if err := reclaim(ctx, tx, n.ID); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `delete from nodes where id = $1`, n.ID); err != nil {
		return fmt.Errorf("remove a node: %w", err)
	}
	if _, err := tx.Exec(ctx, `update endpoint_lanes set holder = null, busy_until = '-infinity' where holder = $1`, n.ID); err != nil {
		return fmt.Errorf("free a node's leases: %w", err)
	}
	return nil
}

// heartbeat keeps this node in the list and takes over from nodes that fell silent, until the context ends.
func (w *Worker) heartbeat(ctx context.Context) {
	tick := time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := w.beatOnce(ctx); err != nil && ctx.Err() == nil {
			w.log.WarnContext(ctx, "heartbeat failed; other nodes may take over this node's tasks", "error", err)
		}
	}
}

func (w *Worker) beatOnce(ctx context.Context) error {
	if err := w.node.beat(ctx, w.pool); err != nil {
		return err
	}
	dead, err := buryDeadNodes(ctx, w.pool)
	if err != nil {
		return err
	}
	for _, b := range dead {
		w.log.WarnContext(ctx, "took over from a dead node", "node_id", b.node, "tasks", b.tasks)
	}
	return nil
}

// releaseSQL gives a dead node's running tasks back. Where the ledger holds the record of the very attempt, the node died between the
// ledger and River, so River is told what was decided and nothing is sent again.
const releaseSQL = `
	with lost as materialized (
		select j.id, j.metadata ? 'cancel_attempted_at' as cancelled, known.*
		from river_job j
		left join lateral (
			select a.decision, a.reason, a.attempt, a.charged, a.next_attempt_at from attempts a
			where a.task_id = j.id and a.started_at >= j.attempted_at - interval '100 milliseconds'
			order by a.seq desc limit 1
		) as known on true
		where j.state = 'running' and j.attempted_by[array_upper(j.attempted_by, 1)] = $1
	), told as materialized (
		select id, decision, reason, attempt, charged, next_attempt_at,
		       case when decision = 'accepted' then 'completed' when decision = 'permanent_failure' then 'discarded'
		            when decision = 'cancelled' or cancelled then 'cancelled' when next_attempt_at is null or next_attempt_at <= now() then 'available'
		            when decision = 'snoozed' then 'scheduled' else 'retryable' end as state
		from lost
	)
	update river_job j set
		state = told.state::river_job_state,
		finalized_at = case when told.state in ('completed', 'discarded', 'cancelled') then now() end,
		scheduled_at = coalesce(told.next_attempt_at, now()),
		attempt = case when told.decision = 'snoozed' then j.attempt - 1 else j.attempt end,
		metadata = case when told.decision is null then j.metadata else j.metadata || jsonb_build_object('reason', told.reason,
			'attempt', told.attempt, 'trigger', 'schedule',
			'outcome', case told.decision when 'snoozed' then 'snooze' when 'retry_scheduled' then 'retry' else 'done' end) end,
		errors = array_append(j.errors, jsonb_build_object('at', now(), 'attempt', j.attempt, 'error', 'node ' || $1 || ' was lost', 'trace', ''))
	from told where j.id = told.id`

type burial struct {
	node  string
	tasks int64
}

// buryDeadNodes removes silent nodes, frees their leases, and makes the tasks they were running available again. River's attempt
// number stays as it is, so the next attempt finds the gap in the ledger and records the lost one. A task that a person had asked to
// cancel is cancelled.
func buryDeadNodes(ctx context.Context, pool *pgxpool.Pool) ([]burial, error) {
	var dead []burial
	err := store.InTx(ctx, pool, func(tx pgx.Tx) error {
		dead = nil
		rows, err := tx.Query(ctx, `select id from nodes where seen_at < now() - make_interval(secs => $1) for update skip locked`, nodeDeadAfter.Seconds())
		if err != nil {
			return fmt.Errorf("find dead nodes: %w", err)
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("find dead nodes: %w", err)
		}
		for _, id := range ids {
			tag, err := tx.Exec(ctx, releaseSQL, id)
			if err != nil {
				return fmt.Errorf("release a dead node's tasks: %w", err)
			}
			if err := (Node{ID: id}).forget(ctx, tx); err != nil {
				return err
			}
			dead = append(dead, burial{node: id, tasks: tag.RowsAffected()})
		}
		return nil
	})
	return dead, err
}
