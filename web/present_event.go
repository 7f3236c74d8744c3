package web

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

func presentEvents(p *views.EventsProps, v *visit, list store.List[events.Event], fates map[string]fate) {
	for _, e := range list.Rows {
		p.Rows = append(p.Rows, views.EventRow{ID: e.ID, Type: e.Type, Subscriber: e.Subscriber, At: e.CreatedAt,
			Outcome: outcomeOf(e, fates[e.ID]), Summary: eventSummary(e, fates[e.ID]), Bytes: int64(e.DataBytes)})
	}
	if list.Prev != "" {
		p.Pager.NewerURL = views.EventsURL(v.project.ID, p.Filter.Page("", list.Prev))
	}
	if list.Next != "" {
		p.Pager.OlderURL = views.EventsURL(v.project.ID, p.Filter.Page(list.Next, ""))
	}
}

func presentEvent(l views.Layout, v *visit, e events.Event, f fate, tasks []jobs.Task, urls map[string]string) views.EventProps {
	redeliver := v.can(tenant.PermRedeliver)
	p := views.EventProps{
		Layout: l, ID: e.ID, Type: e.Type, Subscriber: e.Subscriber, PublishedAt: e.CreatedAt, OccurredAt: e.OccurredAt,
		FannedAt: e.ConsideredAt, ExpiresAt: e.ExpiresAt, Outcome: outcomeOf(e, f), Sentence: eventSentence(e, f),
		Payload:      presentPayload(v, e.Data, false),
		CanRedeliver: redeliver && !e.ConsideredAt.IsZero(), CanRequeue: redeliver && !e.PoisonedAt.IsZero(),
	}
	if p.Payload.Truncated {
		p.Payload.DownloadURL = views.EventPayloadURL(v.project.ID, e.ID)
	}
	if !e.PoisonedAt.IsZero() {
		p.PoisonReason = e.RelayError + "."
	}
	for _, name := range slices.Sorted(maps.Keys(e.Metadata)) {
		value := e.Metadata[name]
		if !v.can(tenant.PermSeePayloads) {
			value = masked
		}
		p.Metadata = append(p.Metadata, views.Header{Name: name, Value: value})
	}
	p.Considered = presentConsidered(v, e, tasks, urls)
	return p
}

// presentConsidered shows the newest task of each endpoint, and the endpoints that got none.
func presentConsidered(v *visit, e events.Event, tasks []jobs.Task, urls map[string]string) []views.Considered {
	var all []views.Considered
	seen := map[string]bool{}
	for _, t := range tasks {
		if seen[t.EndpointID] {
			continue
		}
		seen[t.EndpointID] = true
		row := presentTaskRow(t, v)
		all = append(all, views.Considered{EndpointID: t.EndpointID, Endpoint: hostOf(urls[t.EndpointID]), Task: &row})
	}
	for _, skipped := range e.Skipped.Endpoints {
		if !seen[skipped.ID] {
			all = append(all, views.Considered{EndpointID: skipped.ID, Endpoint: hostOf(urls[skipped.ID]), Reason: skipWords(webhooks.SkipReason(skipped.Reason))})
		}
	}
	return all
}

func skipWords(r webhooks.SkipReason) string {
	switch r {
	case webhooks.SkipType:
		return "it does not take this type"
	case webhooks.SkipSubscriber:
		return "it belongs to another subscriber"
	case webhooks.SkipDisabled:
		return "it was disabled; redeliver brings what it missed"
	case webhooks.SkipExpired:
		return "the event had expired"
	default:
		return spaced(string(r))
	}
}

// outcomeOf sums up how an event fared. Tasks are removed after a while; what is left of them counts.
func outcomeOf(e events.Event, f fate) views.Outcome {
	switch {
	case !e.PoisonedAt.IsZero():
		return views.OutcomePoisoned
	case e.ConsideredAt.IsZero():
		return views.OutcomeQueued
	case e.Deliveries == 0 && f.total() == 0:
		return views.OutcomeUnmatched
	case f.open > 0:
		return views.OutcomeUnderWay
	case f.discarded+f.cancelled > 0:
		return views.OutcomeFailed
	case f.total() < e.Deliveries:
		return views.OutcomeRemoved
	default:
		return views.OutcomeDelivered
	}
}

// eventSummary is the outcome in numbers.
func eventSummary(e events.Event, f fate) string {
	switch {
	case !e.PoisonedAt.IsZero():
		return "could not be fanned out"
	case e.ConsideredAt.IsZero():
		return "waits for its fan-out"
	case e.Deliveries == 0 && f.total() == 0:
		return "no endpoint takes it"
	case f.total() == 0:
		return removedWords(e.Deliveries)
	}
	text := fmt.Sprintf("%d of %d delivered", f.completed, f.total())
	if f.discarded > 0 {
		text += fmt.Sprintf(", %d discarded", f.discarded)
	}
	if f.cancelled > 0 {
		text += fmt.Sprintf(", %d cancelled", f.cancelled)
	}
	if n := e.Deliveries - f.total(); n > 0 {
		text += ", " + removedWords(n)
	}
	return text
}

func removedWords(n int) string { return plural(n, "task", "tasks") + " removed by retention" }

// eventSentence is the summary as the event's page says it.
func eventSentence(e events.Event, f fate) string {
	text := capital(eventSummary(e, f)) + "."
	if n := len(e.Skipped.Endpoints); n > 0 {
		text += " " + capital(plural(n, "endpoint was", "endpoints were")) + " passed over."
	}
	return text
}

func redeliveredSentence(r webhooks.Redelivered) string {
	switch n := len(r.TaskIDs); {
	case n > 0:
		return fmt.Sprintf("The event is on its way to %s again.", plural(n, "endpoint", "endpoints"))
	case len(r.Skipped) > 0:
		return "Nothing was sent: each endpoint that takes it is disabled, or has it in its queue already."
	default:
		return "Nothing was sent: no endpoint takes this event."
	}
}

// publishCommand is the line that makes a first event.
func publishCommand(base string) string {
	return "curl -X POST " + base + `/v1/events -H "Authorization: Bearer $ENTREGA_API_KEY" -H "Content-Type: application/json" \` + "\n" +
		`  -d '{"type": "order.created", "data": {"orderId": "SO-1"}}'`
}

func sameOptions(values []string) []views.Option {
	options := make([]views.Option, len(values))
	for i, value := range values {
		options[i] = views.Option{Value: value, Label: value}
	}
	return options
}

func eventColumns() []string {
	return []string{"id", "type", "subscriber", "outcome", "deliveries", "completed", "discarded", "cancelled", "bytes", "published_at"}
}

func eventCells(e events.Event, f fate) []string {
	return []string{e.ID, e.Type, e.Subscriber, string(outcomeOf(e, f)), strconv.Itoa(e.Deliveries), strconv.Itoa(f.completed),
		strconv.Itoa(f.discarded), strconv.Itoa(f.cancelled), strconv.Itoa(e.DataBytes), cellTime(e.CreatedAt)}
}
