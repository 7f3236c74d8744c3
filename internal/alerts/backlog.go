package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/events"
)

const (
	// backlogEvents and backlogAge are what raises an alert; at half of both it is resolved, so that it does not come and go.
	backlogEvents = 1000
	backlogAge    = 5 * time.Minute
	// backlogSubject is the subject in the installation and in each project.
	backlogSubject = "outbox"
)

// outbox is what waits in the installation or in a project.
type outbox struct {
	project string
	waiting int64
	age     time.Duration
}

func (o outbox) over() bool { return o.waiting > backlogEvents || o.age > backlogAge }
func (o outbox) calm() bool { return 2*o.waiting <= backlogEvents && 2*o.age <= backlogAge }

// scanBacklog looks at the outbox of the installation and of the projects in it.
func scanBacklog(ctx context.Context, p *pass) error {
	stats, err := events.OutboxStats(ctx, p.tx)
	if err != nil {
		return err
	}
	outboxes := []outbox{{waiting: int64(stats.Waiting), age: stats.Age}}
	if stats.Waiting > 0 {
		projects, err := p.projectOutboxes(ctx)
		if err != nil {
			return err
		}
		outboxes = append(outboxes, projects...)
	}
	var keys []key
	for _, o := range outboxes {
		if o.over() {
			keys = append(keys, key{o.project, backlogSubject})
		}
	}
	current, err := p.current(ctx, keys)
	if err != nil {
		return err
	}
	var findings []finding
	for _, o := range outboxes {
		if o.over() {
			findings = append(findings, p.backlogFinding(o, current))
		}
	}
	if _, err := p.raise(ctx, current, findings); err != nil {
		return err
	}
	return p.resolve(ctx, whyNoBacklog(outboxes))
}

// projectOutboxes looks at the outbox of each project that has one. It steps from project to project along the index of what waits:
// an order by age would have to pass over all that does not wait any more.
func (p *pass) projectOutboxes(ctx context.Context) ([]outbox, error) {
	rows, err := p.tx.Query(ctx, `
		with recursive waiting as (
			(select project_id, created_at from events where fanned_out_at is null and poisoned_at is null order by project_id, seq limit 1)
			union all
			select next.project_id, next.created_at from waiting cross join lateral (
				select e.project_id, e.created_at from events e
				where e.fanned_out_at is null and e.poisoned_at is null and e.project_id > waiting.project_id
				order by e.project_id, e.seq limit 1) next
		)
		select project_id,
		       (select count(*) from (select from events e where e.project_id = waiting.project_id and e.fanned_out_at is null and e.poisoned_at is null limit $1) w),
		       extract(epoch from clock_timestamp() - created_at)::float8
		from waiting order by project_id`, events.OutboxLimit)
	if err != nil {
		return nil, fmt.Errorf("look at the outbox of projects: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (outbox, error) {
		var o outbox
		var seconds float64
		err := row.Scan(&o.project, &o.waiting, &seconds)
		o.age = time.Duration(seconds * float64(time.Second))
		return o, err
	})
}

func (p *pass) backlogFinding(o outbox, current map[key]Alert) finding {
	f := finding{key: key{o.project, backlogSubject}, count: 1, first: p.now, last: p.now}
	if a, counting := unresolved(current, f.key); counting {
		f.first, f.last = a.FirstAt, a.LastAt // One backlog happens once, however long it lasts.
	}
	f.about = bounded(o.waiting, events.OutboxLimit-1, "event")
	f.text = pick(o.waiting, "waits", "wait") + " for the fan-out, the oldest for " + span(o.age) + ". "
	if o.project == "" {
		f.text += "See that a node works and that the database keeps up."
	} else {
		f.text += "None is lost. If the number grows, ask an admin to look at the nodes."
	}
	return f
}

// whyNoBacklog finds the alerts whose outbox is calm. A project that is not among the outboxes has nothing waiting.
func whyNoBacklog(outboxes []outbox) func(context.Context, []Alert) (map[string]string, error) {
	calm := map[string]bool{}
	for _, o := range outboxes {
		calm[o.project] = o.calm()
	}
	return func(_ context.Context, alerts []Alert) (map[string]string, error) {
		why := map[string]string{}
		for _, a := range alerts {
			if isCalm, seen := calm[a.ProjectID]; isCalm || !seen {
				why[a.ID] = "the outbox has drained"
			}
		}
		return why, nil
	}
}
