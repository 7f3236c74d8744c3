package alerts

import (
	"context"
	"time"
)

// lostQuiet is how long none must have been lost for the alert to resolve itself.
const lostQuiet = time.Hour

// scanLost counts, per project, attempts that the ledger has as unknown because nobody reported back. The rows are written
// with the task's next attempt, which may be much later: what counts is when a scan saw them.
func scanLost(ctx context.Context, p *pass) error {
	rows, err := p.newRecords(ctx, `a.decision = 'unknown'`)
	if err != nil {
		return err
	}
	keys, groups := grouped(rows, func(r recorded) key { return key{r.ProjectID, "attempts"} })
	current, err := p.current(ctx, keys)
	if err != nil {
		return err
	}
	findings := make([]finding, 0, len(keys))
	for _, k := range keys {
		a, counting := unresolved(current, k)
		findings = append(findings, p.lostFinding(k, groups[k], a, counting))
	}
	if _, err := p.raise(ctx, current, findings); err != nil {
		return err
	}
	if err := p.noteRecords(ctx, rows); err != nil {
		return err
	}
	return p.resolve(ctx, p.whyNoneLost)
}

func (p *pass) lostFinding(k key, group []recorded, a Alert, counting bool) finding {
	first, last := startsOf(group)
	f := finding{key: k, count: int64(len(group)), first: first.StartedAt, last: last.StartedAt, marker: p.now, again: true}
	if counting {
		f.count += a.Count
	}
	f.about = plural(f.count, "attempt")
	f.text = "never reported back, because the node that made " + pick(f.count, "it", "them") + " ended. The " + pick(f.count, "task goes", "tasks go") +
		" on without you; a receiver may have got a message twice, with the same webhook-id. If this comes again, look at the nodes' logs and memory."
	return f
}

func (p *pass) whyNoneLost(_ context.Context, alerts []Alert) (map[string]string, error) {
	why := map[string]string{}
	for _, a := range alerts {
		if p.now.Sub(a.Marker) >= lostQuiet {
			why[a.ID] = "none was lost for " + exact(lostQuiet)
		}
	}
	return why, nil
}
