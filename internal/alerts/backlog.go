package alerts

import (
	"context"
	"time"

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
		projects, err := events.OutboxByProject(ctx, p.tx)
		if err != nil {
			return err
		}
		for _, o := range projects {
			outboxes = append(outboxes, outbox{project: o.ProjectID, waiting: int64(o.Waiting), age: o.Age})
		}
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
