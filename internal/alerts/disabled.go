package alerts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/jobs"
)

// The reasons for which endpoints are disabled, as package webhooks records them.
const (
	disabledManual = "manual"
	disabledGone   = "gone"
	disabledRow    = "failures_in_a_row"
)

// disabledBatch is how many endpoints one transaction raises alerts for.
const disabledBatch = 500

// scanDisabled raises an alert for each endpoint that a rule or its receiver has disabled. What a person disabled, a person
// knows.
func scanDisabled(ctx context.Context, p *pass) error {
	ids, err := p.newlyDisabled(ctx)
	if err != nil {
		return err
	}
	p.more = len(ids) == disabledBatch
	endpoints, err := p.endpoints(ctx, ids)
	if err != nil {
		return err
	}
	keys := make([]key, 0, len(ids))
	for _, id := range ids {
		keys = append(keys, endpoints[id].key())
	}
	current, err := p.current(ctx, keys)
	if err != nil {
		return err
	}
	findings := make([]finding, 0, len(ids))
	for _, id := range ids {
		e := endpoints[id]
		a, counting := unresolved(current, e.key())
		findings = append(findings, disabledFinding(e, p.policy(e).Disable, a, counting))
	}
	if _, err := p.raise(ctx, current, findings); err != nil {
		return err
	}
	return p.resolve(ctx, p.whyEnabled)
}

// newlyDisabled finds endpoints whose disabling no alert tells of.
func (p *pass) newlyDisabled(ctx context.Context) ([]string, error) {
	rows, err := p.tx.Query(ctx, `
		select e.id from endpoints e
		where e.deleted_at is null and e.disabled_at is not null and e.disabled_reason <> $2
		  and coalesce((select a.marker from alerts a where a.project_id = e.project_id and a.kind = $1 and a.subject = e.id and a.holds),
		               '-infinity') < e.disabled_at
		limit $3`, string(p.rule.Kind), disabledManual, disabledBatch)
	if err != nil {
		return nil, fmt.Errorf("find disabled endpoints: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("find disabled endpoints: %w", err)
	}
	return ids, nil
}

func disabledFinding(e endpoint, rule jobs.DisableRule, a Alert, counting bool) finding {
	f := finding{key: e.key(), about: e.host(), endpointID: e.ID, count: 1, first: *e.DisabledAt, last: *e.DisabledAt, marker: *e.DisabledAt}
	if counting {
		f.count = a.Count + 1
	}
	f.text = whatDisabled(e, rule) + " and was disabled. Reactivate it when it works again, and redeliver what it missed."
	return f
}

func whatDisabled(e endpoint, rule jobs.DisableRule) string {
	since := ""
	if e.FailingSince != nil {
		since = " since " + at(*e.FailingSince)
	}
	switch {
	case e.DisabledReason == disabledGone:
		return "answered 410 Gone"
	case e.DisabledReason == disabledRow && e.FailuresInARow > 0:
		return fmt.Sprintf("failed %s times in a row%s", number(int64(e.FailuresInARow)), since)
	case rule.FailingFor > 0:
		return "failed for " + exact(rule.FailingFor) + since
	default:
		return "kept failing" + since
	}
}

func (p *pass) whyEnabled(ctx context.Context, alerts []Alert) (map[string]string, error) {
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
		case e.DisabledAt == nil:
			why[a.ID] = "it was reactivated"
		case e.DisabledReason == disabledManual:
			why[a.ID] = "it was reactivated, and then disabled by a person"
		}
	}
	return why, nil
}
