package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// discardQuiet is how long nothing new must have come for an alert to resolve itself though tasks are left. A first scan
	// looks no further back.
	discardQuiet = 7 * 24 * time.Hour
	// undoneBatch is how many tasks of each alert one pass asks after.
	undoneBatch = 200
)

// whyNoDiscards finds the alerts that have no task left which is discarded, and those that nothing was added to for long.
func (p *pass) whyNoDiscards(ctx context.Context, alerts []Alert) (map[string]string, error) {
	ids := make([]string, len(alerts))
	for i, a := range alerts {
		ids[i] = a.ID
	}
	if err := p.tickOff(ctx, ids); err != nil {
		return nil, err
	}
	rows, err := p.tx.Query(ctx, `select i.id from unnest($1::text[]) as i (id)
		where not exists (select from alert_counted c where c.alert_id = i.id and c.undone)`, ids)
	if err != nil {
		return nil, fmt.Errorf("find alerts without discarded tasks: %w", err)
	}
	done, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("find alerts without discarded tasks: %w", err)
	}
	endpoints, err := p.endpointsOf(ctx, alerts)
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	for _, a := range alerts {
		if e, found := endpoints[a.EndpointID]; found && !e.exists() {
			why[a.ID] = whyDeleted
		} else if p.now.Sub(a.LastAt) >= discardQuiet {
			why[a.ID] = "nothing new came for " + exact(discardQuiet) + "; tasks that are still discarded can be retried as before"
		}
	}
	for _, id := range done {
		why[id] = "all of its tasks were retried, completed or removed"
	}
	return why, nil
}

// tickOff notes which of the alerts' tasks are discarded no more. It asks after the first of each alert, and goes on behind
// them as they are ticked off.
func (p *pass) tickOff(ctx context.Context, alertIDs []string) error {
	rows, err := p.tx.Query(ctx, `
		select c.ref from unnest($1::text[]) as i (id)
		cross join lateral (select ref from alert_counted where alert_id = i.id and undone order by ref limit $2) as c
		where (select j.state from river_job j where j.id = c.ref) is distinct from 'discarded'`, alertIDs, undoneBatch)
	if err != nil {
		return fmt.Errorf("find tasks to tick off: %w", err)
	}
	refs, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("find tasks to tick off: %w", err)
	}
	if len(refs) == 0 {
		return nil
	}
	_, err = p.tx.Exec(ctx, `update alert_counted set undone = false where rule = $1 and ref = any($2)`, string(p.rule.Kind), refs)
	if err != nil {
		return fmt.Errorf("tick off tasks: %w", err)
	}
	return nil
}
