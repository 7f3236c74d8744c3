package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// ledgerBatch is how many rows of the ledger one transaction counts.
	ledgerBatch = 1000
	// ledgerSettled is how long an id must have been seen before all below it are taken for seen: ids are given out in order,
	// but a transaction that has a smaller one may still commit. The ledger gives up on one after 10 s.
	ledgerSettled = 2 * time.Minute
	// ledgerBack bounds the days whose partitions are looked at. A lost attempt may be written days after it was made, when
	// its task has its next turn: as long as a delivery is tried at all.
	ledgerBack = 8 * 24 * time.Hour
)

// recorded is a row of the ledger that was not counted before.
type recorded struct {
	ID         int64     `db:"id"`
	ProjectID  string    `db:"project_id"`
	EndpointID string    `db:"endpoint_id"`
	StartedAt  time.Time `db:"started_at"`
	Status     int       `db:"status"`
}

// newRecords reads the rows of the ledger that fit a condition, which must be that of one of the ledger's partial indexes, and
// that were not counted. They are walked by id, which unlike their times grows as they are written.
func (p *pass) newRecords(ctx context.Context, condition string) ([]recorded, error) {
	rows, err := p.tx.Query(ctx, `
		select a.id, a.project_id, coalesce(a.endpoint_id, '') as endpoint_id, a.started_at, coalesce(a.status, 0) as status
		from attempts a
		where `+condition+` and a.id > @safe and a.started_at > @oldest
		  and (select c.ref from alert_counted c where c.rule = @rule and c.ref = a.id) is null
		order by a.id limit @limit`,
		pgx.StrictNamedArgs{"rule": string(p.rule.Kind), "safe": p.progress.Safe, "oldest": p.now.Add(-ledgerBack), "limit": ledgerBatch})
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[recorded])
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	p.more = len(found) == ledgerBatch
	return found, nil
}

// noteRecords notes that rows are counted, and moves the mark below which all are seen.
func (p *pass) noteRecords(ctx context.Context, rows []recorded) error {
	refs, ats := make([]int64, len(rows)), make([]time.Time, len(rows))
	for i, r := range rows {
		refs[i], ats[i] = r.ID, r.StartedAt
		p.progress.Newest = max(p.progress.Newest, r.ID)
	}
	if p.now.Sub(p.progress.NextAt) >= ledgerSettled {
		p.progress.Safe, p.progress.Next, p.progress.NextAt = p.progress.Next, p.progress.Newest, p.now
		// No scan looks at those any more.
		if _, err := p.tx.Exec(ctx, `delete from alert_counted where rule = $1 and ref <= $2`, string(p.rule.Kind), p.progress.Safe); err != nil {
			return fmt.Errorf("forget what is counted: %w", err)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := p.tx.Exec(ctx, `
		insert into alert_counted (rule, ref, at, alert_id, undone)
		select $1, t.ref, t.at, '', false from unnest($2::bigint[], $3::timestamptz[]) as t (ref, at)
		on conflict do nothing`, string(p.rule.Kind), refs, ats)
	if err != nil {
		return fmt.Errorf("note what is counted: %w", err)
	}
	return nil
}

// grouped sorts rows into groups by their keys, which are returned in the order in which they came first.
func grouped(rows []recorded, keyOf func(recorded) key) ([]key, map[key][]recorded) {
	var keys []key
	groups := map[key][]recorded{}
	for _, r := range rows {
		k := keyOf(r)
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], r)
	}
	return keys, groups
}

// startsOf finds the rows of a group whose attempts started first and last. Ids need not be in the order of times.
func startsOf(group []recorded) (first, last recorded) {
	first, last = group[0], group[0]
	for _, r := range group[1:] {
		if r.StartedAt.Before(first.StartedAt) {
			first = r
		}
		if r.StartedAt.After(last.StartedAt) {
			last = r
		}
	}
	return first, last
}
