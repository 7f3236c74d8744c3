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
	// attempts need be known only as long as a scan may see them again.
	countedKept  = 100 * 24 * time.Hour
	attemptsKept = ledgerBack + 24*time.Hour
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
		{`delete from alerts where id in (select id from alerts where state = 'resolved' and not holds and resolved_at < $1 limit $2)`, p.now.Add(-resolvedKept)},
		{`delete from alert_counted where (rule, ref) in (select rule, ref from alert_counted where noted_at < $1 limit $2)`, p.now.Add(-countedKept)},
		{`delete from alert_counted where (rule, ref) in (
			select rule, ref from alert_counted where rule in ('receiver_refuses', 'attempts_lost') and noted_at < $1 limit $2)`, p.now.Add(-attemptsKept)},
	} {
		tag, err := p.tx.Exec(ctx, old.sql, old.before, sweepBatch)
		if err != nil {
			return fmt.Errorf("forget old alerts: %w", err)
		}
		p.more = p.more || tag.RowsAffected() == sweepBatch
	}
	return nil
}
