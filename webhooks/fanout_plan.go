package webhooks

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/events"
	"entrega/jobs"
)

// fanoutPlan is what becomes of some events: deliveries, and what to note beside each event.
type fanoutPlan struct {
	deliveries []jobs.Item[DeliverArgs]
	outcomes   []fanoutOutcome
	missed     []missedEvent
}

// startFew is how many deliveries at most start at once to an endpoint whose lane nobody works: their workers get it.
const startFew = 4

// fanoutOutcome is what is noted beside one event.
type fanoutOutcome struct {
	seq        int64
	deliveries int
	skipped    events.Skipped
}

// missedEvent is an event that an endpoint would have got, had it not been disabled.
type missedEvent struct {
	endpointID, eventID string
	seq                 int64
}

// planFanout considers every endpoint for every event, the events in the order of their publishing.
func planFanout(project string, found []fanoutEvent, endpoints []fanoutEndpoint, now time.Time) fanoutPlan {
	var plan fanoutPlan
	for _, ev := range found {
		outcome := fanoutOutcome{seq: ev.Seq}
		// The missed ones come first in the list, which may be cut: they are the ones to act on.
		var disabled, others []events.SkippedEndpoint
		for i := range endpoints {
			ep := &endpoints[i]
			reason := ep.skip(ev, now)
			skipped := events.SkippedEndpoint{ID: ep.ID, Reason: string(reason)}
			switch reason {
			case "":
				item := ep.delivery(project, ev, jobs.TriggerSchedule, now)
				item.Here = len(found) <= fewEvents && ep.Here && (ep.Holder != "" || ep.Queued <= startFew)
				plan.deliveries = append(plan.deliveries, item)
				outcome.deliveries++
				continue
			case SkipDisabled:
				plan.missed = append(plan.missed, missedEvent{endpointID: ep.ID, eventID: ev.ID, seq: ev.Seq})
				disabled = append(disabled, skipped)
			default:
				others = append(others, skipped)
			}
			outcome.skipped = counted(outcome.skipped, reason)
		}
		all := append(disabled, others...)
		outcome.skipped.Endpoints = all[:min(len(all), maxSkippedListed)]
		plan.outcomes = append(plan.outcomes, outcome)
	}
	return plan
}

func counted(s events.Skipped, reason SkipReason) events.Skipped {
	if s.Counts == nil {
		s.Counts = map[string]int{}
	}
	s.Counts[string(reason)]++
	return s
}

// write takes the events out of the outbox, keeps what came of them, and what was missed.
func (p fanoutPlan) write(batch *pgx.Batch, project string) error {
	var seqs []int64
	var deliveries []int
	var skipped []*string
	for _, o := range p.outcomes {
		raw, err := skippedJSON(o.skipped)
		if err != nil {
			return err
		}
		seqs, deliveries, skipped = append(seqs, o.seq), append(deliveries, o.deliveries), append(skipped, raw)
	}
	batch.Queue(`
		with done as (
			delete from event_outbox where seq = any($2) and project_id = $1 returning seq, fanned_out_at
		)
		insert into event_outcomes (seq, fanned_out_at, considered_at, deliveries, skipped)
		select done.seq, done.fanned_out_at, now(), o.deliveries, o.skipped::jsonb
		from unnest($2::bigint[], $3::integer[], $4::text[]) as o (seq, deliveries, skipped) join done on done.seq = o.seq`, project, seqs, deliveries, skipped)
	p.writeMissed(batch, project)
	return nil
}

func (p fanoutPlan) writeMissed(batch *pgx.Batch, project string) {
	if len(p.missed) == 0 {
		return
	}
	var endpoints, ids []string
	var seqs []int64
	for _, m := range p.missed {
		endpoints, ids, seqs = append(endpoints, m.endpointID), append(ids, m.eventID), append(seqs, m.seq)
	}
	batch.Queue(`
		insert into missed_events (endpoint_id, event_seq, project_id, event_id)
		select m.endpoint_id, m.seq, $1, m.event_id from unnest($2::text[], $3::bigint[], $4::text[]) as m (endpoint_id, seq, event_id)
		on conflict do nothing`, project, endpoints, seqs, ids)
}

// skippedJSON is NULL when nobody was passed over.
func skippedJSON(s events.Skipped) (*string, error) {
	if len(s.Counts) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode skipped endpoints: %w", err)
	}
	text := string(raw)
	return &text, nil
}
