package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// saturatedAfter is how long a delivery must have waited for its lane, and how long the endpoint must have been well: what
	// an outage, a pause or a change of settings left behind takes its time to drain.
	saturatedAfter = 10 * time.Minute
	// drainedWithin is how long a delivery may wait in a lane that has drained.
	drainedWithin = time.Minute
	// widestLane is the most that an endpoint may have in flight.
	widestLane = 64
	// waitingMost bounds the count of waiting deliveries.
	waitingMost = 10_000
)

// scanSaturated walks the endpoints whose deliveries wait in the table for their lane.
func scanSaturated(ctx context.Context, p *pass) error {
	oldest, ids, err := p.walkPending(ctx)
	if err != nil {
		return err
	}
	var late []string
	for _, id := range ids {
		if p.now.Sub(oldest[id]) >= saturatedAfter {
			late = append(late, id)
		}
	}
	endpoints, err := p.endpoints(ctx, late)
	if err != nil {
		return err
	}
	var keys []key
	for _, id := range late {
		if p.well(endpoints[id]) {
			keys = append(keys, endpoints[id].key())
		}
	}
	current, err := p.current(ctx, keys)
	if err != nil {
		return err
	}
	findings := make([]finding, 0, len(keys))
	for _, k := range keys {
		f, err := p.saturatedFinding(ctx, endpoints[k.subject], oldest[k.subject], current)
		if err != nil {
			return err
		}
		findings = append(findings, f)
	}
	if _, err := p.raise(ctx, current, findings); err != nil {
		return err
	}
	return p.resolve(ctx, p.whyNotSaturated)
}

// walkPending steps from endpoint to endpoint along the index of waiting deliveries, from where the last pass stopped, and
// reads since when the first one of each waits.
func (p *pass) walkPending(ctx context.Context) (oldest map[string]time.Time, ids []string, err error) {
	rows, err := p.tx.Query(ctx, `
		with recursive found (endpoint_id, n) as (
			(select endpoint_id, 1 from river_job
			 where state = 'pending' and endpoint_id is not null and endpoint_id > $1 order by endpoint_id limit 1)
			union all
			select (select j.endpoint_id from river_job j
			        where j.state = 'pending' and j.endpoint_id is not null and j.endpoint_id > f.endpoint_id
			        order by j.endpoint_id limit 1), f.n + 1
			from found f where f.endpoint_id is not null and f.n < $2
		)
		select f.endpoint_id, (select j.scheduled_at from river_job j where j.state = 'pending' and j.endpoint_id = f.endpoint_id
		                       and j.endpoint_id is not null order by j.id limit 1)
		from found f where f.endpoint_id is not null`, p.progress.FindAfter, walkBatch)
	if err != nil {
		return nil, nil, fmt.Errorf("find waiting deliveries: %w", err)
	}
	oldest = map[string]time.Time{}
	var id string
	var since *time.Time
	if _, err := pgx.ForEachRow(rows, []any{&id, &since}, func() error {
		ids = append(ids, id)
		oldest[id] = p.now
		if since != nil { // Nothing waits any more where the row went meanwhile.
			oldest[id] = *since
		}
		return nil
	}); err != nil {
		return nil, nil, fmt.Errorf("find waiting deliveries: %w", err)
	}
	p.walked(ids)
	return oldest, ids, nil
}

// well tells whether an endpoint has worked for a while under the settings that it has.
func (p *pass) well(e endpoint) bool {
	return e.exists() && e.DisabledAt == nil && e.PausedAt == nil && e.FailingSince == nil && !recent(&e.UpdatedAt, p.now, saturatedAfter) &&
		!recent(e.LastFailureAt, p.now, saturatedAfter) && !recent(e.PauseUntil, p.now, saturatedAfter)
}

func (p *pass) saturatedFinding(ctx context.Context, e endpoint, oldest time.Time, current map[key]Alert) (finding, error) {
	f := finding{key: e.key(), about: e.host(), endpointID: e.ID, taskKind: deliverKind, taskState: "pending", count: 1, first: p.now, last: p.now}
	if a, counting := unresolved(current, f.key); counting {
		f.first, f.last = a.FirstAt, a.LastAt // A lane is saturated once, however long it lasts.
	}
	var waiting int64
	err := p.tx.QueryRow(ctx, `select count(*) from (select from river_job where state = 'pending' and endpoint_id = $1 and endpoint_id is not null limit $2) w`,
		e.ID, waitingMost+1).Scan(&waiting)
	if err != nil {
		return f, fmt.Errorf("count waiting deliveries: %w", err)
	}
	f.text = fmt.Sprintf("works, yet %s, the oldest for %s. %s", waitingWords(waiting), span(p.now.Sub(oldest)), widen(e))
	return f, nil
}

func waitingWords(n int64) string {
	switch {
	case n > waitingMost:
		return "more than " + number(waitingMost) + " deliveries wait for their turn"
	case n == 1:
		return "1 delivery waits for its turn"
	default:
		return number(n) + " deliveries wait for their turn"
	}
}

// widen says what would let more through.
func widen(e endpoint) string {
	switch {
	case e.RatePerSecond > 0:
		return fmt.Sprintf("Raise its rate limit (now %g a second) or maxInFlight (now %d), if the receiver can take more.", e.RatePerSecond, e.MaxInFlight)
	case e.MaxInFlight >= widestLane:
		return fmt.Sprintf("It has %d in flight, which is the most: the receiver must answer faster, for example by working after its answer.", e.MaxInFlight)
	default:
		return fmt.Sprintf("Raise maxInFlight (now %d), if the receiver can take more at once.", e.MaxInFlight)
	}
}

func (p *pass) whyNotSaturated(ctx context.Context, alerts []Alert) (map[string]string, error) {
	endpoints, err := p.endpointsOf(ctx, alerts)
	if err != nil {
		return nil, err
	}
	late, err := p.stillWaiting(ctx, alerts)
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	for _, a := range alerts {
		e := endpoints[a.EndpointID]
		switch {
		case !e.exists():
			why[a.ID] = whyDeleted
		case e.DisabledAt != nil:
			why[a.ID] = "it was disabled"
		case e.PausedAt != nil:
			why[a.ID] = "it was paused"
		case e.FailingSince != nil:
			why[a.ID] = "it fails now, which is another matter"
		case !late[a.ID]:
			why[a.ID] = "its lane has drained"
		}
	}
	return why, nil
}

// stillWaiting tells which alerts' endpoints have a delivery that waits for longer than a drained lane lets it.
func (p *pass) stillWaiting(ctx context.Context, alerts []Alert) (map[string]bool, error) {
	ids, endpoints := make([]string, len(alerts)), make([]string, len(alerts))
	for i, a := range alerts {
		ids[i], endpoints[i] = a.ID, a.EndpointID
	}
	rows, err := p.tx.Query(ctx, `select a.id from unnest($1::text[], $2::text[]) as a (id, endpoint_id)
		where (select j.scheduled_at from river_job j where j.state = 'pending' and j.endpoint_id = a.endpoint_id
		       and j.endpoint_id is not null order by j.id limit 1) <= $3`, ids, endpoints, p.now.Add(-drainedWithin))
	if err != nil {
		return nil, fmt.Errorf("find lanes that have not drained: %w", err)
	}
	late := map[string]bool{}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { late[id] = true; return nil }); err != nil {
		return nil, fmt.Errorf("find lanes that have not drained: %w", err)
	}
	return late, nil
}
