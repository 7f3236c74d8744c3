package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// What an installation of a year has in its tables: tasks that ended, and their attempts, over the last days.
const (
	fullTasks    = 1_000_000
	fullAttempts = 10 // of each task
	fullDays     = 25
)

// fill puts finished tasks and rows of the ledger of another project into the tables. They serve to be in the way: the rows are as
// large as true ones, but nobody could verify their chains.
func (in *installation) fill(ctx context.Context, tasks int) error {
	if _, err := in.pool.Exec(ctx, `
		insert into river_job (args, kind, max_attempts, metadata, queue, state, attempt, attempted_at, attempted_by, created_at, finalized_at, scheduled_at)
		select jsonb_build_object('projectId', 'project_full', 'eventId', 'event_full_' || n, 'endpointId', 'endpoint_full_' || n % 50),
		       'webhook.deliver', 21, jsonb_build_object('project_id', 'project_full', 'event_id', 'event_full_' || n,
		       'endpoint_id', 'endpoint_full_' || n % 50, 'outcome', 'done', 'reason', 'accepted', 'attempt', 1, 'max', 18, 'trigger', 'schedule'),
		       'webhook', 'completed', 1, at, array['node_full'], at, at, at
		from (select n, now() - make_interval(days => $2) * (1 - n::float8 / $1) as at from generate_series(1, $1::int) n) w`, tasks, fullDays); err != nil {
		return fmt.Errorf("fill the table of tasks: %w", err)
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	return parallel(ctx, 2, func(ctx context.Context, i int) error {
		for day := i; day < fullDays; day += 2 {
			if err := in.fillDay(ctx, today.AddDate(0, 0, -day), tasks/fullDays, day); err != nil {
				return err
			}
		}
		return nil
	})
}

func (in *installation) fillDay(ctx context.Context, day time.Time, tasks, n int) error {
	name := "attempts_" + day.Format("20060102")
	var missing bool
	err := in.pool.QueryRow(ctx, `select to_regclass($1) is null`, name).Scan(&missing)
	if err == nil && missing {
		_, err = in.pool.Exec(ctx, fmt.Sprintf(`create table %s partition of attempts for values from ('%s') to ('%s')`,
			pgx.Identifier{name}.Sanitize(), day.Format(time.RFC3339), day.AddDate(0, 0, 1).Format(time.RFC3339)))
	}
	if err != nil {
		return fmt.Errorf("make a day of the ledger: %w", err)
	}
	_, err = in.pool.Exec(ctx, `
		insert into attempts (project_id, task_id, seq, attempt, charged, kind, trigger, idempotency_key, event_id, endpoint_id, policy_profile,
			policy_version, policy_hash, started_at, finished_at, first_byte_us, total_us, peer, class, status, decision, reason,
			request_sha256, node_id, prev_hash, hash)
		select 'project_full', -(task * 100 + $3), seq, seq, true, 'webhook.deliver', 'schedule', 'event_full_' || task, 'event_full_' || task,
		       'endpoint_full_' || task % 50, 'standard', 1, sha256('policy'), at, at + interval '20 ms', 18000, 20000, '127.0.0.1:443', 'server', 500,
		       'retry_scheduled', 'server_error', sha256(task::text::bytea), 'node_full', sha256((task + seq)::text::bytea), sha256((task - seq)::text::bytea)
		from (select task, seq, least($1::timestamptz + make_interval(secs => 86000 * task::float8 / $2), now() - interval '1 hour') as at
		      from generate_series(1, $2::int) task, generate_series(1, $4::int) seq) w`, day, tasks, n, fullAttempts)
	if err != nil {
		return fmt.Errorf("fill a day of the ledger: %w", err)
	}
	return nil
}

// full measures some figures again with full tables.
func (b *bench) full(ctx context.Context, in *installation) error {
	if err := in.fill(ctx, b.size(fullTasks)); err != nil {
		return err
	}
	for _, sql := range []string{`vacuum analyze`, `checkpoint`} {
		if _, err := in.pool.Exec(ctx, sql); err != nil {
			return err
		}
	}
	const name = "full tables: 20,000 to one endpoint, 64 at once"
	rate, _, err := b.drain(ctx, in, name, b.size(backlogEvents), 1, 64)
	if err != nil {
		return err
	}
	b.figures.add(name, "/s", rate)
	b.figures.compare(name, "deliver: 20,000 to one endpoint, 64 at once")

	p, s, err := in.timedProject(ctx, 8)
	if err != nil {
		return err
	}
	const single = "full tables: publish single events, 32 connections"
	alone, err := in.project(ctx, "Publisher")
	if err != nil {
		return err
	}
	if rate, _, err = alone.publishFor(ctx, publishConns, b.lasting(publishTime)); err != nil {
		return err
	}
	b.figures.add(single, "/s", rate)
	b.figures.compare(single, "publish: single events, 32 connections")

	if err := p.publishAt(ctx, evenRate, b.lasting(evenTime)); err != nil {
		return err
	}
	took, err := s.drain(ctx)
	if err != nil {
		return err
	}
	for _, q := range []struct {
		name string
		of   float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		b.figures.add("full tables: latency at 50 events/s, "+q.name, " ms", ms(quantile(took, q.of)))
		b.figures.compare("full tables: latency at 50 events/s, "+q.name, "latency: 50 events/s, "+q.name)
	}
	return nil
}
