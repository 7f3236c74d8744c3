package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// goneBatch is how many alerts one pass asks whether their cause is gone. What is left has its turn in the next pass.
const goneBatch = 500

// key names the subject of an alert within its kind.
type key struct{ project, subject string }

// finding is trouble that a scan has found. Its numbers are totals of the alert that stands for it.
type finding struct {
	key
	about, text         string
	count               int64
	first, last         time.Time
	endpointID, eventID string
	taskKind, taskState string
	// marker is the newest happening: an alert that a person has resolved is followed by a new one only for a newer one.
	// again says that there are happenings which no alert has told of, whatever their time.
	marker time.Time
	again  bool
}

// current reads the alerts whose cause was there at the last scan, those that a person has resolved included, and keeps people
// from changing them until the pass is over.
func (p *pass) current(ctx context.Context, keys []key) (map[key]Alert, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	projects, subjects := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		projects[i], subjects[i] = k.project, k.subject
	}
	rows, err := p.tx.Query(ctx, `
		select `+alertColumns+` from alerts
		where kind = $1 and holds and (project_id, subject) in (select * from unnest($2::text[], $3::text[]))
		for update`, string(p.rule.Kind), projects, subjects)
	if err != nil {
		return nil, fmt.Errorf("read the alerts there are: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Alert])
	if err != nil {
		return nil, fmt.Errorf("read the alerts there are: %w", err)
	}
	current := make(map[key]Alert, len(found))
	for _, a := range found {
		current[key{a.ProjectID, a.Subject}] = a
	}
	return current, nil
}

// unresolved is the alert of a key that goes on counting, if there is one.
func unresolved(current map[key]Alert, k key) (Alert, bool) {
	a, ok := current[k]
	return a, ok && a.State != StateResolved
}

// raise opens an alert for each finding, or brings the one up to date that stands for it. It returns the ids of those alerts;
// a finding that a person has resolved and that has nothing new has none.
func (p *pass) raise(ctx context.Context, current map[key]Alert, findings []finding) (map[key]string, error) {
	ids := make(map[key]string, len(findings))
	batch := &pgx.Batch{}
	for _, f := range findings {
		a, there := current[f.key]
		switch {
		case there && a.State != StateResolved:
			ids[f.key] = a.ID
			if f.changes(a) {
				p.queueUpdate(batch, a.ID, f)
			}
			continue
		case there && !f.again && !f.marker.After(a.Marker):
			continue
		case there:
			batch.Queue(`update alerts set holds = false where id = $1`, a.ID)
		}
		ids[f.key] = store.NewID("alert")
		p.queueInsert(batch, ids[f.key], f)
		p.raised++
	}
	if batch.Len() == 0 {
		return ids, nil
	}
	if err := p.tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("raise alerts: %w", err)
	}
	return ids, nil
}

// changes tells whether an alert says something else than the finding.
func (f finding) changes(a Alert) bool {
	return f.count != a.Count || f.about != a.About || f.text != a.Text || f.eventID != a.EventID || f.first.Before(a.FirstAt) ||
		f.last.After(a.LastAt) || f.marker.After(a.Marker)
}

func (p *pass) queueUpdate(batch *pgx.Batch, id string, f finding) {
	batch.Queue(`
		update alerts set count = @count, about = @about, text = @text, event_id = nullif(@event, ''),
			first_at = least(first_at, @first), last_at = greatest(last_at, @last), marker = greatest(marker, @marker)
		where id = @id`, pgx.StrictNamedArgs{"id": id, "count": f.count, "about": f.about, "text": f.text, "event": f.eventID,
		"first": f.first, "last": f.last, "marker": f.marker})
}

func (p *pass) queueInsert(batch *pgx.Batch, id string, f finding) {
	batch.Queue(`
		insert into alerts (id, project_id, kind, subject, about, text, count, first_at, last_at, marker, endpoint_id, event_id, task_kind, task_state)
		values (@id, @project, @kind, @subject, @about, @text, @count, @first, @last, @marker, nullif(@endpoint, ''), nullif(@event, ''),
			nullif(@task_kind, ''), nullif(@task_state, ''))`,
		pgx.StrictNamedArgs{"id": id, "project": f.project, "kind": string(p.rule.Kind), "subject": f.subject, "about": f.about, "text": f.text,
			"count": f.count, "first": f.first, "last": f.last, "marker": f.marker, "endpoint": f.endpointID, "event": f.eventID,
			"task_kind": f.taskKind, "task_state": f.taskState})
}

// resolve asks of the alerts of the rule whether their cause is gone. why answers the ids of those whose is, with the reason as
// the end of a sentence. An alert that a person has resolved is only let go, so that the cause may raise a new one.
func (p *pass) resolve(ctx context.Context, why func(ctx context.Context, alerts []Alert) (map[string]string, error)) error {
	rows, err := p.tx.Query(ctx, `select `+alertColumns+` from alerts where kind = $1 and holds and id > $2 order by id limit $3`,
		string(p.rule.Kind), p.progress.GoneAfter, goneBatch)
	if err != nil {
		return fmt.Errorf("read the alerts whose cause may be gone: %w", err)
	}
	held, err := pgx.CollectRows(rows, pgx.RowToStructByName[Alert])
	if err != nil {
		return fmt.Errorf("read the alerts whose cause may be gone: %w", err)
	}
	p.progress.GoneAfter = ""
	if len(held) == goneBatch {
		p.progress.GoneAfter = held[goneBatch-1].ID
	}
	if len(held) == 0 {
		return nil
	}
	gone, err := why(ctx, held)
	if err != nil || len(gone) == 0 {
		return err
	}
	return p.letGo(ctx, gone)
}

func (p *pass) letGo(ctx context.Context, gone map[string]string) error {
	ids, whys := make([]string, 0, len(gone)), make([]string, 0, len(gone))
	for id, why := range gone {
		ids, whys = append(ids, id), append(whys, why)
	}
	err := p.tx.QueryRow(ctx, `
		with gone as (
			update alerts a set holds = false, state = 'resolved',
				resolved_at = coalesce(a.resolved_at, @now), resolved_why = case when a.state = 'resolved' then a.resolved_why else g.why end
			from unnest(@ids::text[], @whys::text[]) as g (id, why) where a.id = g.id and a.holds
			returning a.resolved_by is null as by_itself)
		select count(*) filter (where by_itself) from gone`,
		pgx.StrictNamedArgs{"now": p.now, "ids": ids, "whys": whys}).Scan(&p.resolved)
	if err != nil {
		return fmt.Errorf("resolve alerts: %w", err)
	}
	return nil
}
