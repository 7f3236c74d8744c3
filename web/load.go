package web

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

const (
	// countMost bounds the counts of a list: it is enough for a person, and keeps the page fast.
	countMost = 10_000
	// missedMost bounds those that look into rows.
	missedMost = 1_000
)

// load is what waits for one endpoint.
type load struct {
	// backlog counts deliveries that are not finished, missed those that a redelivery would take.
	backlog, missed int
}

// readLoads counts for every endpoint of a page along indexes. What a redelivery would take is near enough for a list; its own
// page counts exactly.
func readLoads(ctx context.Context, db store.DB, project string, endpoints []string) (map[string]load, error) {
	rows, err := db.Query(ctx, `
		select e.id,
			(select count(*) from (select from river_job where endpoint_id = e.id
				and state in ('available', 'pending', 'retryable', 'running', 'scheduled') limit @most) b),
			(select count(*) from (select from missed_events where endpoint_id = e.id and redelivered_at is null limit @missed) m)
			+ (select count(*) from (select from river_job where endpoint_id = e.id and state = 'discarded' limit @missed) d)
			+ (select count(*) filter (where metadata ->> 'reason' = 'endpoint_disabled') from (
				select metadata from river_job where endpoint_id = e.id and state = 'cancelled' order by id desc limit @missed) c)
		from endpoints e where e.project_id = @project and e.id = any(@endpoints)`,
		pgx.StrictNamedArgs{"project": project, "endpoints": endpoints, "most": countMost, "missed": missedMost})
	if err != nil {
		return nil, fmt.Errorf("count what waits for endpoints: %w", err)
	}
	loads := make(map[string]load, len(endpoints))
	var id string
	var l load
	if _, err := pgx.ForEachRow(rows, []any{&id, &l.backlog, &l.missed}, func() error { loads[id] = l; return nil }); err != nil {
		return nil, fmt.Errorf("count what waits for endpoints: %w", err)
	}
	return loads, nil
}
