package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// poisonedMost bounds the count per project.
	poisonedMost = 1000
	// poisonedProjects bounds the projects that one pass looks at.
	poisonedProjects = 1000
)

// poison is what the relay gave up of a project.
type poison struct {
	ProjectID string    `db:"project_id"`
	Events    int64     `db:"events"`
	FirstAt   time.Time `db:"first_at"`
	LastAt    time.Time `db:"last_at"`
	NewestID  string    `db:"newest_id"`
}

// scanPoisoned looks at the events that the relay has given up, project by project.
func scanPoisoned(ctx context.Context, p *pass) error {
	found, err := p.poisoned(ctx)
	if err != nil {
		return err
	}
	keys, findings := make([]key, 0, len(found)), make([]finding, 0, len(found))
	for _, f := range found {
		keys, findings = append(keys, key{f.ProjectID, "events"}), append(findings, poisonFinding(f))
	}
	current, err := p.current(ctx, keys)
	if err != nil {
		return err
	}
	if _, err := p.raise(ctx, current, findings); err != nil {
		return err
	}
	return p.resolve(ctx, p.whyNoPoison)
}

// poisoned steps from project to project along the index of poisoned events, whose length is theirs.
func (p *pass) poisoned(ctx context.Context) ([]poison, error) {
	rows, err := p.tx.Query(ctx, `
		with recursive found (project_id, n) as (
			(select project_id, 1 from event_outbox where poisoned_at is not null order by project_id limit 1)
			union all
			select (select e.project_id from event_outbox e where e.poisoned_at is not null and e.project_id > f.project_id
			        order by e.project_id limit 1), f.n + 1
			from found f where f.project_id is not null and f.n < $1
		)
		select f.project_id, e.events, e.first_at, e.last_at, e.newest_id
		from found f cross join lateral (
			select count(*) as events, min(w.poisoned_at) as first_at, max(w.poisoned_at) as last_at,
			       (array_agg(w.id order by w.poisoned_at desc))[1] as newest_id
			from (select event_id as id, poisoned_at from event_outbox where project_id = f.project_id and poisoned_at is not null
			      order by published_at desc, seq desc limit $2) as w
		) as e
		where f.project_id is not null and e.events > 0`, poisonedProjects, poisonedMost+1)
	if err != nil {
		return nil, fmt.Errorf("find poisoned events: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[poison])
	if err != nil {
		return nil, fmt.Errorf("find poisoned events: %w", err)
	}
	return found, nil
}

func poisonFinding(p poison) finding {
	f := finding{key: key{p.ProjectID, "events"}, count: p.Events, first: p.FirstAt, last: p.LastAt, marker: p.LastAt, eventID: p.NewestID}
	if p.Events == 1 {
		f.about = p.NewestID
		f.text = "could not be handed to the fan-out and was given up after five tries. Open the event to see why, then requeue it."
		return f
	}
	f.about = bounded(p.Events, poisonedMost, "event")
	f.text = "could not be handed to the fan-out and were given up after five tries each, the newest " + p.NewestID +
		". Open the events to see why, then requeue them."
	return f
}

func (p *pass) whyNoPoison(ctx context.Context, alerts []Alert) (map[string]string, error) {
	ids, projects := make([]string, len(alerts)), make([]string, len(alerts))
	for i, a := range alerts {
		ids[i], projects[i] = a.ID, a.ProjectID
	}
	rows, err := p.tx.Query(ctx, `select a.id from unnest($1::text[], $2::text[]) as a (id, project_id)
		where not exists (select from event_outbox e where e.project_id = a.project_id and e.poisoned_at is not null)`, ids, projects)
	if err != nil {
		return nil, fmt.Errorf("find projects without poisoned events: %w", err)
	}
	why := map[string]string{}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error {
		why[id] = "every event was requeued or removed"
		return nil
	}); err != nil {
		return nil, fmt.Errorf("find projects without poisoned events: %w", err)
	}
	return why, nil
}
