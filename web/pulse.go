package web

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// pulseAttempts is how far back the newest attempt is looked for. It is a value of the statement, so that the planner leaves out
// the ledger's older days.
const pulseAttempts = 10 * time.Minute

// pulses reads the pulse of projects: a text that differs whenever something has changed that a page may show. What it holds
// is nobody's business.
type pulses struct{ db store.DB }

// read takes a handful of index lookups per project, whatever the size of its tables. A finished attempt moves the set of
// running tasks or the newest attempt, a click the audit log, a new task the newest id of its state, a scan the alerts that are
// not resolved.
func (p pulses) read(ctx context.Context, projects []string) (map[string]string, error) {
	rows, err := p.db.Query(ctx, `
		select p.id, concat_ws('|',
			coalesce((select id from audit_log where project_id = p.id order by id desc limit 1), 0),
			coalesce((select seq from events where project_id = p.id order by created_at desc, seq desc limit 1), 0),
			coalesce((select started_at::text || task_id from attempts
				where project_id = p.id and started_at > $2 order by started_at desc, id desc limit 1), ''),
			coalesce((select count(*) || '/' || sum(id) from (
				select id from river_job where project_id = p.id and state = 'running' order by id desc limit 1000) r), ''),
			(select string_agg(coalesce((select id from river_job where project_id = p.id and state = s.state and state <> 'running' order by id desc limit 1), 0)::text, ',')
				from unnest(enum_range(null::river_job_state)) as s (state)),
			coalesce((select id || state || done || '/' || skipped from bulk_actions
				where project_id = p.id order by created_at desc limit 1), ''),
			coalesce((select count(*) || '/' || sum(count) || max(id) from (
				select id, count from alerts where project_id = p.id and rank > 0 limit 1000) a), ''))
		from unnest($1::text[]) as p (id)`, projects, time.Now().Add(-pulseAttempts))
	if err != nil {
		return nil, fmt.Errorf("read what changed: %w", err)
	}
	read := make(map[string]string, len(projects))
	var project, pulse string
	if _, err := pgx.ForEachRow(rows, []any{&project, &pulse}, func() error { read[project] = pulse; return nil }); err != nil {
		return nil, fmt.Errorf("read what changed: %w", err)
	}
	return read, nil
}
