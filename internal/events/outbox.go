package events

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"entrega/internal/store"
)

// OutboxLimit bounds the counts of an Outbox, which must stay cheap when it matters most: a count that reaches it means
// "this many or more".
const OutboxLimit = 10_001

// Outbox is the state of the installation's outbox.
type Outbox struct {
	// Waiting counts events whose fan-out is not in the queue yet, those that failed before included.
	Waiting int
	// Failing counts those of them that failed before.
	Failing int
	// OldestAt is when the first of those that wait was published; zero when none waits.
	OldestAt time.Time
	// Age is how long ago that was, by the database's clock.
	Age time.Duration
	// Poisoned counts events that the relay gave up.
	Poisoned int
}

// OutboxStats looks at the outbox of all projects.
func OutboxStats(ctx context.Context, db store.DB) (Outbox, error) {
	var o Outbox
	var seconds float64
	err := db.QueryRow(ctx, `
		select waiting.n, waiting.failing, oldest.at, coalesce(extract(epoch from clock_timestamp() - oldest.at), 0)::float8, poisoned.n
		from (
			select count(*) as n, count(*) filter (where relay_failures > 0) as failing from (
				select relay_failures from events where fanned_out_at is null and poisoned_at is null limit $1) w
		) waiting
		left join (
			with recursive first as (
				(select project_id, created_at from events where fanned_out_at is null and poisoned_at is null order by project_id, seq limit 1)
				union all
				select next.project_id, next.created_at from first cross join lateral (
					select e.project_id, e.created_at from events e
					where e.fanned_out_at is null and e.poisoned_at is null and e.project_id > first.project_id
					order by e.project_id, e.seq limit 1) next
			)
			select min(created_at) as at from first
		) oldest on true
		cross join (
			select count(*) as n from (select 1 from events where poisoned_at is not null limit $1) p
		) poisoned`, OutboxLimit).
		Scan(&o.Waiting, &o.Failing, (*zeronull.Timestamptz)(&o.OldestAt), &seconds, &o.Poisoned)
	if err != nil {
		return Outbox{}, fmt.Errorf("look at the outbox: %w", err)
	}
	o.OldestAt = o.OldestAt.UTC()
	o.Age = time.Duration(seconds * float64(time.Second))
	return o, nil
}
