package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// discardOverlap is how far each scan looks back over what it has seen: transactions commit late.
	discardOverlap = 2 * time.Minute
	// discardWide is how far a scan looks back once in a while: a node whose clock is wrong writes the past.
	discardWide  = 2 * time.Hour
	discardWides = time.Minute
	// discardBatch is how many tasks one transaction counts.
	discardBatch = 2000
	// testEventType is the type of the events that tests send. Whoever sent one looks at its result.
	testEventType = "entrega.test"
)

// discarded is a task that was not counted before, or not for this discard.
type discarded struct {
	ID         int64     `db:"id"`
	ProjectID  string    `db:"project_id"`
	Kind       string    `db:"kind"`
	EndpointID string    `db:"endpoint_id"`
	At         time.Time `db:"finalized_at"`
	// Reason is the recorded word; empty when it was not a worker that discarded the task.
	Reason string `db:"reason"`
	Test   bool   `db:"test"`
	// AlertID is the alert that counted an earlier discard of the task.
	AlertID string `db:"alert_id"`
}

// scanDiscarded counts tasks that were discarded, by workers or by River's rescuer, in groups of a kind and an endpoint. Runs of
// periodic jobs have a rule of their own.
func scanDiscarded(ctx context.Context, p *pass) error {
	since, wide := p.discardsSince()
	tasks, err := p.newDiscards(ctx, since)
	if err != nil {
		return err
	}
	if err := p.countDiscards(ctx, tasks); err != nil {
		return err
	}
	p.more = len(tasks) == discardBatch
	if !p.more {
		p.progress.Through = p.now
		if wide {
			p.progress.WideAt = p.now
		}
	} else if last := tasks[len(tasks)-1].At; last.Before(p.now) && last.After(p.progress.Through) {
		p.progress.Through = last
	}
	return p.resolve(ctx, p.whyNoDiscards)
}

// discardsSince is where the scan starts, and whether it is a wide one.
func (p *pass) discardsSince() (since time.Time, wide bool) {
	through := p.progress.Through
	switch {
	case through.IsZero():
		return p.now.Add(-discardQuiet), true
	case p.now.Sub(p.progress.WideAt) >= discardWides:
		return through.Add(-discardWide), true
	default:
		return through.Add(-discardOverlap), false
	}
}

// newDiscards walks River's index over finished tasks. What was counted is asked for row by row, in its index, so that the
// walk stays one along the index.
func (p *pass) newDiscards(ctx context.Context, since time.Time) ([]discarded, error) {
	rows, err := p.tx.Query(ctx, `
		select j.id, coalesce(j.project_id, '') as project_id, j.kind, coalesce(j.endpoint_id, '') as endpoint_id, j.finalized_at,
		       case when j.outcome = 'done' then coalesce(j.metadata ->> 'reason', '') else '' end as reason,
		       coalesce(j.metadata -> 'label' ->> 'event_type', '') = @test as test,
		       coalesce((select c.alert_id from alert_counted c where c.rule = @rule and c.ref = j.id), '') as alert_id
		from river_job j
		where j.state = 'discarded' and j.finalized_at >= @since and (j.project_id is not null or j.queue <> 'maintenance')
		  and (select c.at from alert_counted c where c.rule = @rule and c.ref = j.id) is distinct from j.finalized_at
		order by j.finalized_at limit @limit`,
		pgx.StrictNamedArgs{"rule": string(p.rule.Kind), "since": since, "limit": discardBatch, "test": testEventType})
	if err != nil {
		return nil, fmt.Errorf("find discarded tasks: %w", err)
	}
	tasks, err := pgx.CollectRows(rows, pgx.RowToStructByName[discarded])
	if err != nil {
		return nil, fmt.Errorf("find discarded tasks: %w", err)
	}
	return tasks, nil
}

func (t discarded) key() key {
	if t.EndpointID == "" {
		return key{t.ProjectID, t.Kind}
	}
	return key{t.ProjectID, t.Kind + "/" + t.EndpointID}
}

// wanted is false for what somebody chose: a test, deliveries to an endpoint that was deleted, and mails that were left out.
func (t discarded) wanted(endpoints map[string]endpoint) bool {
	e, found := endpoints[t.EndpointID]
	return !t.Test && !onPurpose(t.Reason) && (!found || e.exists())
}

// onPurpose tells the recorded words of mails that were left out as they should be.
func onPurpose(reason string) bool {
	switch reason {
	case "suppressed", "dropped_burst_cap", "already_confirmed", "recipient_erased":
		return true
	}
	return false
}

// countDiscards raises alerts for tasks and notes that they are counted, those that nobody needs to look at as well.
func (p *pass) countDiscards(ctx context.Context, tasks []discarded) error {
	if len(tasks) == 0 {
		return nil
	}
	ids := make([]string, 0, len(tasks))
	for _, t := range tasks {
		ids = append(ids, t.EndpointID)
	}
	endpoints, err := p.endpoints(ctx, ids)
	if err != nil {
		return err
	}
	var keys []key
	groups := map[key][]discarded{}
	for _, t := range tasks {
		if !t.wanted(endpoints) {
			continue
		}
		if groups[t.key()] == nil {
			keys = append(keys, t.key())
		}
		groups[t.key()] = append(groups[t.key()], t)
	}
	current, err := p.current(ctx, keys)
	if err != nil {
		return err
	}
	findings := make([]finding, 0, len(keys))
	for _, k := range keys {
		a, counting := unresolved(current, k)
		findings = append(findings, discardFinding(groups[k], endpoints[groups[k][0].EndpointID], a, counting))
	}
	alertIDs, err := p.raise(ctx, current, findings)
	if err != nil {
		return err
	}
	return p.noteDiscards(ctx, tasks, endpoints, alertIDs)
}

// discardFinding adds a group, which is in the order of time, to what its alert has counted. A task that the alert has counted
// is not counted again when it is retried and discarded once more.
func discardFinding(group []discarded, e endpoint, a Alert, counting bool) finding {
	first, last := group[0], group[len(group)-1]
	f := finding{key: first.key(), first: first.At, last: last.At, marker: last.At, again: true, endpointID: first.EndpointID,
		taskKind: first.Kind, taskState: "discarded"}
	if counting {
		f.count = a.Count
	}
	for _, t := range group {
		if !counting || t.AlertID != a.ID {
			f.count++
		}
	}
	why := pick(f.count, "because ", "the newest because ") + reasonWords(last.Reason)
	if f.endpointID == "" {
		f.about = first.Kind
		f.text = fmt.Sprintf("had %s discarded, %s. Look at %s and retry %s once the cause is mended.", plural(f.count, "task"), why,
			pick(f.count, "it", "them"), pick(f.count, "it", "them"))
		return f
	}
	f.about = hostOf(e.URL, f.endpointID)
	f.text = fmt.Sprintf("did not get %s: discarded, %s. Look at %s, and when the receiver works, retry or redeliver.",
		deliveries(first.Kind, f.count), why, pick(f.count, "it", "them"))
	return f
}

func deliveries(kind string, n int64) string {
	if kind == deliverKind {
		if n == 1 {
			return "1 delivery"
		}
		return number(n) + " deliveries"
	}
	return plural(n, kind+" task")
}

func (p *pass) noteDiscards(ctx context.Context, tasks []discarded, endpoints map[string]endpoint, alertIDs map[key]string) error {
	refs, ats := make([]int64, len(tasks)), make([]time.Time, len(tasks))
	alerts, undone := make([]string, len(tasks)), make([]bool, len(tasks))
	for i, t := range tasks {
		refs[i], ats[i] = t.ID, t.At
		if t.wanted(endpoints) {
			alerts[i], undone[i] = alertIDs[t.key()], true
		}
	}
	_, err := p.tx.Exec(ctx, `
		insert into alert_counted (rule, ref, at, alert_id, undone)
		select $1, t.* from unnest($2::bigint[], $3::timestamptz[], $4::text[], $5::bool[]) as t (ref, at, alert_id, undone)
		on conflict (rule, ref) do update set at = excluded.at, alert_id = excluded.alert_id, undone = excluded.undone, noted_at = now()`,
		string(p.rule.Kind), refs, ats, alerts, undone)
	if err != nil {
		return fmt.Errorf("note what is counted: %w", err)
	}
	return nil
}
