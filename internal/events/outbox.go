package events

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
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

// waitingProjects has each project in whose outbox something waits, and when the first of it was published. It steps from project to
// project along the index of what waits: an order by age would have to pass over all that does not wait any more.
const waitingProjects = `waiting_projects as (
		(select project_id, published_at from event_outbox where fanned_out_at is null and poisoned_at is null order by project_id, seq limit 1)
		union all
		select next.project_id, next.published_at from waiting_projects w cross join lateral (
			select e.project_id, e.published_at from event_outbox e
			where e.fanned_out_at is null and e.poisoned_at is null and e.project_id > w.project_id
			order by e.project_id, e.seq limit 1) next
	)`

// ProjectOutbox is what waits in the outbox of one project.
type ProjectOutbox struct {
	ProjectID string
	// Waiting counts as Outbox.Waiting does, Age is how long ago the first of them was published.
	Waiting int
	Age     time.Duration
}

// OutboxByProject looks at the outbox of each project that has one, by id.
func OutboxByProject(ctx context.Context, db store.DB) ([]ProjectOutbox, error) {
	rows, err := db.Query(ctx, `
		with recursive `+waitingProjects+`
		select project_id,
		       (select count(*) from (select from event_outbox e where e.project_id = w.project_id and e.fanned_out_at is null and e.poisoned_at is null limit $1) t),
		       extract(epoch from clock_timestamp() - published_at)::float8
		from waiting_projects w order by project_id`, OutboxLimit)
	if err != nil {
		return nil, fmt.Errorf("look at the outbox of projects: %w", err)
	}
	outboxes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (ProjectOutbox, error) {
		var o ProjectOutbox
		var seconds float64
		err := row.Scan(&o.ProjectID, &o.Waiting, &seconds)
		o.Age = time.Duration(seconds * float64(time.Second))
		return o, err
	})
	if err != nil {
		return nil, fmt.Errorf("look at the outbox of projects: %w", err)
	}
	return outboxes, nil
}

// OutboxStats looks at the outbox of all projects.
func OutboxStats(ctx context.Context, db store.DB) (Outbox, error) {
	var o Outbox
	var seconds float64
	err := db.QueryRow(ctx, `
		select waiting.n, waiting.failing, oldest.at, coalesce(extract(epoch from clock_timestamp() - oldest.at), 0)::float8, poisoned.n
		from (
			select count(*) as n, count(*) filter (where relay_failures > 0) as failing from (
				select relay_failures from event_outbox where fanned_out_at is null and poisoned_at is null limit $1) w
		) waiting
		left join (
			with recursive `+waitingProjects+`
			select min(published_at) as at from waiting_projects
		) oldest on true
		cross join (
			select count(*) as n from (
				select from event_outbox where poisoned_at is not null order by project_id, published_at desc, seq desc limit $1) p
		) poisoned`, OutboxLimit).
		Scan(&o.Waiting, &o.Failing, (*zeronull.Timestamptz)(&o.OldestAt), &seconds, &o.Poisoned)
	if err != nil {
		return Outbox{}, fmt.Errorf("look at the outbox: %w", err)
	}
	o.OldestAt = o.OldestAt.UTC()
	o.Age = time.Duration(seconds * float64(time.Second))
	return o, nil
}
