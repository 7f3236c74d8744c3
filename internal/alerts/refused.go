package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// newestAttempts is how many of an endpoint's newest attempts are searched for a success.
const newestAttempts = 100

// scanRefused counts 401 and 403 answers per endpoint. An endpoint that has accepted an attempt since needs nobody.
func scanRefused(ctx context.Context, p *pass) error {
	rows, err := p.newRecords(ctx, `a.status in (401, 403) and a.endpoint_id is not null`)
	if err != nil {
		return err
	}
	if err := p.countRefusals(ctx, rows); err != nil {
		return err
	}
	if err := p.noteRecords(ctx, rows); err != nil {
		return err
	}
	return p.resolve(ctx, p.whyAccepted)
}

func (p *pass) countRefusals(ctx context.Context, rows []recorded) error {
	if len(rows) == 0 {
		return nil
	}
	keys, groups := grouped(rows, func(r recorded) key { return key{r.ProjectID, r.EndpointID} })
	newest := map[string]time.Time{}
	for k, group := range groups {
		_, last := startsOf(group)
		newest[k.subject] = last.StartedAt
	}
	accepted, err := p.acceptedSince(ctx, newest)
	if err != nil {
		return err
	}
	ids := make([]string, 0, len(keys))
	for _, k := range keys {
		ids = append(ids, k.subject)
	}
	endpoints, err := p.endpoints(ctx, ids)
	if err != nil {
		return err
	}
	current, err := p.current(ctx, keys)
	if err != nil {
		return err
	}
	var findings []finding
	for _, k := range keys {
		e := endpoints[k.subject]
		if !e.exists() || accepted[e.ID] {
			continue
		}
		a, counting := unresolved(current, k)
		findings = append(findings, refusedFinding(e, groups[k], a, counting))
	}
	_, err = p.raise(ctx, current, findings)
	return err
}

func refusedFinding(e endpoint, group []recorded, a Alert, counting bool) finding {
	first, last := startsOf(group)
	f := finding{key: e.key(), about: e.host(), endpointID: e.ID, count: int64(len(group)), first: first.StartedAt, last: last.StartedAt,
		marker: last.StartedAt, again: true}
	if counting {
		f.count += a.Count
	}
	f.text = "answered " + statusWords(last.Status) + ": the receiver refuses our signature or credentials. " +
		"Compare the secret and the endpoint's own headers with the receiver's, then send a test."
	return f
}

// acceptedSince tells which endpoints accepted an attempt that started after an instant. The lane knows of successes that
// ended a row of failures, the ledger of all.
func (p *pass) acceptedSince(ctx context.Context, since map[string]time.Time) (map[string]bool, error) {
	ids, instants, oldest := make([]string, 0, len(since)), make([]time.Time, 0, len(since)), p.now
	for id, t := range since {
		ids, instants = append(ids, id), append(instants, t)
		if t.Before(oldest) {
			oldest = t
		}
	}
	rows, err := p.tx.Query(ctx, `
		select i.id from unnest(@ids::text[], @instants::timestamptz[]) as i (id, at)
		left join endpoint_lanes l on l.endpoint_id = i.id
		where l.last_success_at > i.at or exists (
			select from (select a.class from attempts a where a.endpoint_id = i.id and a.started_at > i.at and a.started_at > @oldest
			             order by a.started_at desc limit @newest) as n
			where n.class = 'success')`,
		pgx.StrictNamedArgs{"ids": ids, "instants": instants, "oldest": oldest, "newest": newestAttempts})
	if err != nil {
		return nil, fmt.Errorf("find accepted attempts: %w", err)
	}
	accepted := map[string]bool{}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { accepted[id] = true; return nil }); err != nil {
		return nil, fmt.Errorf("find accepted attempts: %w", err)
	}
	return accepted, nil
}

func (p *pass) whyAccepted(ctx context.Context, alerts []Alert) (map[string]string, error) {
	endpoints, err := p.endpointsOf(ctx, alerts)
	if err != nil {
		return nil, err
	}
	since := make(map[string]time.Time, len(alerts))
	for _, a := range alerts {
		since[a.EndpointID] = a.LastAt
	}
	accepted, err := p.acceptedSince(ctx, since)
	if err != nil {
		return nil, err
	}
	why := map[string]string{}
	for _, a := range alerts {
		switch {
		case !endpoints[a.EndpointID].exists():
			why[a.ID] = whyDeleted
		case accepted[a.EndpointID]:
			why[a.ID] = "it accepted a later attempt"
		}
	}
	return why, nil
}
