package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"go.jetify.com/typeid"

	"entrega/internal/events"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/webhooks"
)

const (
	// seedDetailed is how far back excerpts and lists of skipped endpoints go: they have a shorter retention than the rest.
	seedDetailed = 3 * 24 * time.Hour
	// seedBurst is the most events that one fan-out takes.
	seedBurst = 8
	// seedPoisoned and seedClicked: one event in so many was given up, and one task in so many was retried by a person.
	seedPoisoned, seedClicked = 20_000, 500
)

// seedRows is what one transaction stores.
type seedRows struct {
	events, missed, audit [][]any
	tasks                 []jobs.Seed
	outcomes              []seedOutcome
	poisoned              []seedEvent // that the relay gave up
}

// seedEvent is one event on its way to its endpoints.
type seedEvent struct {
	project, id, typ, subscriber string
	data                         []byte
	at                           time.Time
}

// happen adds a burst of events of one project, with the tasks that came of them. Time goes on with the number of tasks.
func (f *filling) happen(ctx context.Context, b *seedRows) error {
	at := f.since.Add(time.Duration(float64(seedPeriod) * float64(f.taskCount) / float64(f.options.tasks)))
	p := f.anyProject()
	burst := make([]seedEvent, 1+f.random.IntN(seedBurst))
	args := events.FanoutArgs{ProjectID: p.id}
	for i := range burst {
		burst[i] = f.newEvent(p, at.Add(time.Duration(i)*time.Millisecond))
		args.EventIDs = append(args.EventIDs, burst[i].id)
	}
	fanout, err := jobs.NewSeed(ctx, f.seeder, events.Fanout, args,
		jobs.Insert{ProjectID: p.id, Label: map[string]string{"subject": fmt.Sprintf("%d events", len(burst))}}, at)
	if err != nil {
		return err
	}
	fanout.Play = func(_ int, at time.Time) (jobs.Evidence, error) {
		return jobs.Evidence{StartedAt: at, FinishedAt: at.Add(5 * time.Millisecond)}, nil
	}
	f.add(b, p, fanout)
	for _, ev := range burst {
		if f.random.IntN(seedPoisoned) == 0 {
			f.addEvent(b, ev)
			b.poisoned = append(b.poisoned, ev)
			continue
		}
		if err := f.fanOut(ctx, b, p, ev); err != nil {
			return err
		}
	}
	return nil
}

// fillOutbox adds events that the relay has not come to yet.
func (f *filling) fillOutbox(b *seedRows) {
	for range seedBurst {
		p := f.anyProject()
		f.addEvent(b, f.newEvent(p, f.now.Add(-time.Second)))
	}
}

func (f *filling) addEvent(b *seedRows, ev seedEvent) {
	b.events = append(b.events, []any{ev.project, ev.id, ev.typ, ev.subscriber, ev.data, ev.at})
	f.eventCount++
}

func (f *filling) anyProject() *seedProject {
	x := f.random.Float64()
	for _, p := range f.projects {
		if x -= p.weight; x < 0 {
			return p
		}
	}
	return f.projects[len(f.projects)-1]
}

func (f *filling) newEvent(p *seedProject, at time.Time) seedEvent {
	order := f.random.IntN(1_000_000)
	return seedEvent{project: p.id, id: idAt("event", at, f.random), typ: seedTypes[f.random.IntN(len(seedTypes))], at: at,
		subscriber: p.subscribers[f.random.IntN(len(p.subscribers))],
		data: fmt.Appendf(nil, `{"orderId":"SO-%d","total":"%d.90","currency":"EUR","customer":{"id":"C-%d","country":"PT"},"lines":[{"sku":"A-%d","quantity":%d}]}`,
			order, 10+order%400, order%5000, order%900, 1+order%4)}
}

// fanOut makes an event's deliveries, and notes who got none and why.
func (f *filling) fanOut(ctx context.Context, b *seedRows, p *seedProject, ev seedEvent) error {
	skipped := events.Skipped{Counts: map[string]int{}}
	skip := func(e *seedEndpoint, reason webhooks.SkipReason) {
		skipped.Counts[string(reason)]++
		if f.now.Sub(ev.at) < seedDetailed {
			skipped.Endpoints = append(skipped.Endpoints, events.SkippedEndpoint{ID: e.id, Reason: string(reason)})
		}
	}
	deliveries := 0
	for _, e := range p.endpoints {
		switch {
		case !e.takes(ev.typ):
			skip(e, webhooks.SkipType)
		case e.subscriber != "" && e.subscriber != ev.subscriber:
			skip(e, webhooks.SkipSubscriber)
		case !e.disabledAt.IsZero() && ev.at.After(e.disabledAt):
			skip(e, webhooks.SkipDisabled)
			b.missed = append(b.missed, []any{e.id, p.id, ev.id})
		case f.taskCount >= f.options.tasks:
			// The number that was asked for is reached.
		default:
			deliveries++
			if err := f.deliver(ctx, b, p, e, ev); err != nil {
				return err
			}
		}
	}
	f.addEvent(b, ev)
	b.outcomes = append(b.outcomes, seedOutcome{seedEvent: ev, deliveries: deliveries, skipped: skipped})
	return nil
}

// deliver makes one delivery. While its endpoint fails or is paused, most of them wait in the table for their lane.
func (f *filling) deliver(ctx context.Context, b *seedRows, p *seedProject, e *seedEndpoint, ev seedEvent) error {
	failing := !e.failingSince.IsZero() && e.disabledAt.IsZero() && ev.at.After(e.failingSince)
	paused := !e.pausedAt.IsZero() && ev.at.After(e.pausedAt)
	waits := paused || failing && f.random.IntN(4) > 0
	task, err := jobs.NewSeed(ctx, f.seeder, webhooks.Deliver, webhooks.DeliverArgs{ProjectID: p.id, EventID: ev.id, EndpointID: e.id},
		jobs.Insert{ProjectID: p.id, EndpointID: e.id, EventID: ev.id, Pending: waits, Label: map[string]string{"event_type": ev.typ, "host": e.host}},
		ev.at.Add(20*time.Millisecond))
	if err != nil {
		return err
	}
	if waits {
		f.add(b, p, task)
		return nil
	}
	task.Profile = e.profile
	due := f.options.tasks - f.taskCount
	switch {
	case due < 200 && f.options.tasks > 1000 && due%4 == 0:
		task.Running = true
	case due < 200 && f.options.tasks > 1000:
		// It is due, and has not had its turn.
	default:
		play := f.newPlay(e, ev)
		if task.Play = play.attempt; f.random.IntN(1000) < 2 {
			play.failures, task.CancelledAt = always, ev.at.Add(time.Hour)
		}
	}
	f.add(b, p, task)
	return nil
}

// add takes a task in, and now and then a person's click on it.
func (f *filling) add(b *seedRows, p *seedProject, t jobs.Seed) {
	b.tasks = append(b.tasks, t)
	if f.taskCount++; f.taskCount%seedClicked == 0 {
		b.audit = append(b.audit, []any{f.now.Add(-time.Minute), p.id, string(tenant.ActorUser), f.ownerID, f.options.owner, "task.retry", "task", fmt.Sprint(t.ID()),
			json.RawMessage(`{"was": "retryable", "attempt": 1}`)})
	}
}

var seedEventColumns = []string{"project_id", "id", "type", "subscriber", "data", "created_at"}

// seedOutcome is what the fan-out of an event came to.
type seedOutcome struct {
	seedEvent
	deliveries int
	skipped    events.Skipped
}

// writeOutcomesTx takes events out of the outbox, in which all of them are, that were considered, and marks those that were given up.
func (b *seedRows) writeOutcomesTx(ctx context.Context, tx pgx.Tx) error {
	var projects, ids []string
	var at []time.Time
	var deliveries []int
	var skipped []*string
	for _, o := range b.outcomes {
		var text *string
		if len(o.skipped.Counts) > 0 {
			raw, _ := json.Marshal(o.skipped) // Counts and names are always JSON.
			text = new(string(raw))
		}
		projects, ids, at = append(projects, o.project), append(ids, o.id), append(at, o.at)
		deliveries, skipped = append(deliveries, o.deliveries), append(skipped, text)
	}
	var poisonedProjects, poisoned []string
	for _, o := range b.poisoned {
		poisonedProjects, poisoned = append(poisonedProjects, o.project), append(poisoned, o.id)
	}
	batch := &pgx.Batch{}
	batch.Queue(`
		with done as (
			delete from event_outbox w
			using unnest($1::text[], $2::text[], $3::timestamptz[], $4::int[], $5::text[]) as o (project, id, at, deliveries, skipped)
			join events e on e.project_id = o.project and e.id = o.id
			where w.seq = e.seq returning w.seq, o.at, o.deliveries, o.skipped
		)
		insert into event_outcomes (seq, fanned_out_at, considered_at, deliveries, skipped)
		select seq, at + interval '5 ms', at + interval '20 ms', deliveries, skipped::jsonb from done`, projects, ids, at, deliveries, skipped)
	batch.Queue(`
		update event_outbox w set relay_failures = 5, relay_error = 'insert webhook.fanout: connection reset', poisoned_at = published_at + interval '15 minutes'
		from unnest($1::text[], $2::text[]) as o (project, id) join events e on e.project_id = o.project and e.id = o.id
		where w.seq = e.seq`, poisonedProjects, poisoned)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("fill what came of events: %w", err)
	}
	return nil
}

func (b *seedRows) writeTx(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"events"}, seedEventColumns, pgx.CopyFromRows(b.events)); err != nil {
		return fmt.Errorf("fill events: %w", err)
	}
	if err := b.writeOutcomesTx(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"audit_log"}, []string{"at", "project_id", "actor_kind", "actor_id", "actor_name", "action", "subject_kind", "subject_id", "detail"},
		pgx.CopyFromRows(b.audit)); err != nil {
		return fmt.Errorf("fill the audit log: %w", err)
	}
	endpoints, projects, ids := make([]string, len(b.missed)), make([]string, len(b.missed)), make([]string, len(b.missed))
	for i, m := range b.missed {
		endpoints[i], projects[i], ids[i] = m[0].(string), m[1].(string), m[2].(string)
	}
	_, err := tx.Exec(ctx, `
		insert into missed_events (endpoint_id, event_seq, project_id, event_id, missed_at)
		select m.endpoint_id, e.seq, e.project_id, e.id, e.created_at
		from unnest($1::text[], $2::text[], $3::text[]) as m (endpoint_id, project_id, event_id)
		join events e on e.project_id = m.project_id and e.id = m.event_id`, endpoints, projects, ids)
	if err != nil {
		return fmt.Errorf("fill missed events: %w", err)
	}
	return nil
}

// idAt is an id as store.NewID would have made it at an instant: a UUIDv7 (RFC 9562, section 5.7) behind its prefix.
func idAt(prefix string, at time.Time, r *rand.Rand) string {
	var b [16]byte
	ms, x, y := at.UnixMilli(), r.Uint64(), r.Uint64()
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	for i := range 2 {
		b[6+i] = byte(x >> (8 * i))
	}
	for i := range 8 {
		b[8+i] = byte(y >> (8 * i))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return typeid.Must(typeid.FromUUIDBytesWithPrefix(prefix, b[:])).String()
}
