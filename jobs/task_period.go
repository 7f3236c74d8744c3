package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// commitsWithin is how long the transaction that makes a task may take: so far, and no further, ids and times of creation may be
// in different orders.
const commitsWithin = time.Minute

// idRange bounds the ids of a period's tasks. Ids grow with time, so a list or a count of a period need not walk past it. Zero
// does not bound.
type idRange struct{ first, last int64 }

func (f TaskFilter) idRange(ctx context.Context, db store.DB) (r idRange, err error) {
	if !f.Since.IsZero() {
		if r.first, err = idAt(ctx, db, f.Since.Add(-commitsWithin)); err != nil {
			return r, err
		}
	}
	if !f.Until.IsZero() {
		if r.last, err = idAt(ctx, db, f.Until.Add(commitsWithin)); err != nil {
			return r, err
		}
		r.last++
	}
	return r, nil
}

// where is the range as SQL, its values put into args.
func (r idRange) where(args pgx.StrictNamedArgs) string {
	where := ""
	if r.first > 0 {
		where, args["first_id"] = where+" and id >= @first_id", r.first
	}
	if r.last > 0 {
		where, args["last_id"] = where+" and id <= @last_id", r.last
	}
	return where
}

// idAt finds an id such that the tasks below it were made before t, and those above the next id at t or later, by bisection over
// the primary key.
func idAt(ctx context.Context, db store.DB, t time.Time) (int64, error) {
	var id int64
	err := db.QueryRow(ctx, `
		with recursive bisect(lo, hi) as (
			select 0::bigint, coalesce((select max(id) from river_job), 0)
			union all
			select case when early then mid else lo end, case when early then hi else mid end
			from (select lo, hi, (lo + hi) / 2 as mid,
			             coalesce((select created_at < $1 from river_job where id > (lo + hi) / 2 order by id limit 1), false) as early
			      from bisect where hi - lo > 1) as step
		)
		select min(lo) from (select lo from bisect order by hi - lo limit 1) as last`, t).Scan(&id)
	if err != nil {
		return 0, fmt.Errorf("find where the period starts or ends: %w", err)
	}
	return id, nil
}
