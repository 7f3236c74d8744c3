package alerts

import (
	"context"
	"fmt"
	"time"
)

const (
	// resolvedKept is how long resolved alerts stay.
	resolvedKept = 90 * 24 * time.Hour
	// countedKept is how long counted tasks are remembered: longer than discarded ones stay in the queue's table. Counted
	// attempts are forgotten by their own rules.
	countedKept = 100 * 24 * time.Hour
	// sweepBatch is how many rows one transaction removes of each.
	sweepBatch = 5000
)

// sweeping is what the scanner does besides its rules: it forgets what is over.
func sweeping() Rule { return Rule{Kind: "sweep", every: time.Hour, scan: sweep} }

func sweep(ctx context.Context, p *pass) error {
	for _, old := range []struct {
		sql    string
		before time.Time
	}{
		{`delete from alerts where id = any(array(
			select id from alerts where state = 'resolved' and not holds and resolved_at < $1 order by resolved_at limit $2))`, p.now.Add(-resolvedKept)},
		{`delete from alert_counted where rule = 'task_discarded' and ref = any(array(
			select ref from alert_counted where noted_at < $1 order by noted_at limit $2))`, p.now.Add(-countedKept)},
	} {
		tag, err := p.tx.Exec(ctx, old.sql, old.before, sweepBatch)
		if err != nil {
			return fmt.Errorf("forget old alerts: %w", err)
		}
		p.more = p.more || tag.RowsAffected() == sweepBatch
	}
	return nil
}
