package web

import (
	"strconv"

	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
)

func presentBulkRun(l views.Layout, v *visit, b jobs.Bulk, f bulkFilter) views.BulkRunProps {
	p := views.BulkRunProps{
		Layout: l, ID: b.ID, Action: string(b.Action), State: bulkState(b.State), Words: filterWords(f.TaskFilter), Total: int(b.Total),
		Done: int(b.Done + b.Skipped), Succeeded: int(b.Done), Refused: int(b.Skipped), StartedAt: b.CreatedAt, FinishedAt: orZero(b.FinishedAt),
		By:    emailFor(v, b.ActorName),
		Tasks: views.TaskFilter{State: string(f.State), Kind: f.Kind, Endpoint: f.EndpointID, Event: f.EventID},
	}
	switch b.Action {
	case jobs.BulkRetry:
		p.CanCancel, p.Tasks.State = v.can(tenant.PermRetry), ""
	case jobs.BulkCancel:
		p.CanCancel, p.Tasks.State = v.can(tenant.PermCancel), string(jobs.StateCancelled)
	default:
		p.CanCancel, p.Tasks.State = v.can(tenant.PermRedeliver), ""
		if f.Scope != "" {
			p.Words = append(p.Words, views.Fact{Label: "Scope", Value: f.Scope})
		}
	}
	return p
}

func bulkState(s jobs.BulkState) string {
	if s == jobs.BulkQueued {
		return "waiting"
	}
	return string(s)
}

// filterWords say a filter to people.
func filterWords(f jobs.TaskFilter) []views.Fact {
	var facts []views.Fact
	add := func(label, value string) {
		if value != "" {
			facts = append(facts, views.Fact{Label: label, Value: value})
		}
	}
	add("State", string(f.State))
	add("Kind", f.Kind)
	add("Endpoint", f.EndpointID)
	add("Event", f.EventID)
	if f.ID != 0 {
		add("Task", strconv.FormatInt(f.ID, 10))
	}
	if !f.Since.IsZero() {
		add("Made since", f.Since.UTC().Format("2 Jan 2006, 15:04 UTC"))
	}
	if !f.Until.IsZero() {
		add("Made before", f.Until.UTC().Format("2 Jan 2006, 15:04 UTC"))
	}
	return facts
}
