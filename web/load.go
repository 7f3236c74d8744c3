package web

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
	"entrega/webhooks"
)

const (
	// countMost bounds the counts of a list: it is enough for a person, and keeps the page fast. It means more than 10,000.
	countMost = 10_001
	// lookMost bounds those that look into rows.
	lookMost = 1_000
)

// load is what waits for one endpoint.
type load struct {
	// backlog counts deliveries that are not finished.
	backlog int
	// discarded counts deliveries that a redelivery would try again, missed events that it would bring.
	discarded, missed int
}

// redeliverable is what a redelivery would take.
func (l load) redeliverable() int { return l.discarded + l.missed }

// readLoads counts for every endpoint of a page along indexes. Up to lookMost discarded deliveries are looked at one by one, so
// that their count is that of the redelivery's own page; beyond that it is near enough.
func readLoads(ctx context.Context, db store.DB, project string, endpoints []string) (map[string]load, error) {
	rows, err := db.Query(ctx, `
		select e.id,
			(select count(*) from (select from river_job where endpoint_id = e.id
				and state in ('available', 'pending', 'retryable', 'running', 'scheduled') limit @most) b),
			coalesce(
				(select case when count(*) < @look then count(*) filter (where coalesce(metadata ->> 'reason', '') <> all(@never)) end
				 from (select metadata from river_job where endpoint_id = e.id and state = 'discarded' limit @look) d),
				(select count(*) from (select from river_job where endpoint_id = e.id and state = 'discarded' limit @most) d))
			+ (select count(*) filter (where metadata ->> 'reason' = @disabled) from (
				select metadata from river_job where endpoint_id = e.id and state = 'cancelled' order by id desc limit @look) c),
			(select count(*) from (select from missed_events where endpoint_id = e.id and redelivered_at is null limit @most) m)
		from endpoints e where e.project_id = @project and e.id = any(@endpoints)`,
		pgx.StrictNamedArgs{"project": project, "endpoints": endpoints, "most": countMost, "look": lookMost,
			"never": []string{webhooks.ReasonTestFailed, "event_pruned"}, "disabled": jobs.ReasonEndpointDisabled})
	if err != nil {
		return nil, fmt.Errorf("count what waits for endpoints: %w", err)
	}
	loads := make(map[string]load, len(endpoints))
	var id string
	var l load
	into := []any{&id, &l.backlog, &l.discarded, &l.missed}
	if _, err := pgx.ForEachRow(rows, into, func() error { loads[id] = l; return nil }); err != nil {
		return nil, fmt.Errorf("count what waits for endpoints: %w", err)
	}
	return loads, nil
}
