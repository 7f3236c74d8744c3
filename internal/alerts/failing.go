package alerts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/jobs"
)

// walkBatch is how many subjects one pass of a walk looks at. The next pass goes on behind them.
const walkBatch = 1000

// scanFailing walks the endpoints that fail and raises an alert for those that are half way to being disabled.
func scanFailing(ctx context.Context, p *pass) error {
	ids, err := p.walkFailing(ctx)
	if err != nil {
		return err
	}
	endpoints, err := p.endpoints(ctx, ids)
	if err != nil {
		return err
	}
	var keys []key
	var findings []finding
	for _, id := range ids {
		e := endpoints[id]
		if p.halfWay(e) {
			keys, findings = append(keys, e.key()), append(findings, failingFinding(e, p.policy(e).Disable))
		}
	}
	current, err := p.current(ctx, keys)
	if err != nil {
		return err
	}
	if _, err := p.raise(ctx, current, findings); err != nil {
		return err
	}
	return p.resolve(ctx, p.whyNotFailing)
}

// walkFailing lists the next endpoints that fail, by id, from where the last pass stopped.
func (p *pass) walkFailing(ctx context.Context) ([]string, error) {
	rows, err := p.tx.Query(ctx, `
		select endpoint_id from endpoint_lanes where failing_since is not null and endpoint_id > $1 order by endpoint_id limit $2`,
		p.progress.FindAfter, walkBatch)
	if err != nil {
		return nil, fmt.Errorf("find failing endpoints: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("find failing endpoints: %w", err)
	}
	p.walked(ids)
	return ids, nil
}

// walked remembers where a walk goes on: behind ids, or at the start when they were the last.
func (p *pass) walked(ids []string) {
	p.progress.FindAfter = ""
	if len(ids) == walkBatch {
		p.progress.FindAfter = ids[walkBatch-1]
	}
}

// halfWay tells whether an endpoint is in use and has reached half of a limit at which its policy disables it.
func (p *pass) halfWay(e endpoint) bool {
	if !e.exists() || e.DisabledAt != nil || e.FailingSince == nil {
		return false
	}
	rule := p.policy(e).Disable
	return rule.FailingFor > 0 && 2*p.now.Sub(*e.FailingSince) >= rule.FailingFor ||
		rule.FailuresInARow > 0 && 2*e.FailuresInARow >= rule.FailuresInARow
}

func failingFinding(e endpoint, rule jobs.DisableRule) finding {
	since := *e.FailingSince
	f := finding{key: e.key(), about: e.host(), endpointID: e.ID, count: int64(max(e.FailuresInARow, 1)), first: since,
		last: since, marker: since}
	if last := orZero(e.LastFailureAt); last.After(since) {
		f.last = last
	}
	f.text = fmt.Sprintf("failed at every attempt since %s, %s in a row. It is disabled %s. See what it answers, mend it, and send a test.",
		at(since), number(f.count), limits(e, rule))
	return f
}

// limits says at which of its rule's limits an endpoint is disabled.
func limits(e endpoint, rule jobs.DisableRule) string {
	until := "on " + at(e.FailingSince.Add(rule.FailingFor))
	failures := "after " + number(int64(rule.FailuresInARow)) + " failures in a row"
	switch {
	case rule.FailuresInARow == 0:
		return until + " unless one succeeds"
	case rule.FailingFor == 0:
		return failures
	default:
		return until + " or " + failures
	}
}

func (p *pass) whyNotFailing(ctx context.Context, alerts []Alert) (map[string]string, error) {
	endpoints, err := p.endpointsOf(ctx, alerts)
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
		case e.FailingSince == nil && orZero(e.LastSuccessAt).After(a.FirstAt):
			why[a.ID] = "it works again"
		case e.FailingSince == nil:
			why[a.ID] = "it was reactivated"
		case !p.halfWay(e):
			why[a.ID] = "it is no longer half way to being disabled"
		}
	}
	return why, nil
}
