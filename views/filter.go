package views

import "net/url"

// A filter is the query of a list page: a GET form writes it, the handler reads
// it back with …From, and every link of the page carries it on. An empty field
// filters nothing; After and Before are keyset cursors.

// TaskFilter is the query of the task list; an empty field filters nothing.
// After and Before are keyset cursors.
type TaskFilter struct {
	State, Kind, Endpoint, Event, Period, Query string
	After, Before                               string
}

// TaskFilterFrom reads what TasksURL wrote.
func TaskFilterFrom(q url.Values) TaskFilter {
	return TaskFilter{
		State: q.Get("state"), Kind: q.Get("kind"), Endpoint: q.Get("endpoint"), Event: q.Get("event"),
		Period: q.Get("period"), Query: q.Get("q"), After: q.Get("after"), Before: q.Get("before"),
	}
}

func (f TaskFilter) values() url.Values {
	return url.Values{
		"state": {f.State}, "kind": {f.Kind}, "endpoint": {f.Endpoint}, "event": {f.Event},
		"period": {f.Period}, "q": {f.Query}, "after": {f.After}, "before": {f.Before},
	}
}

// Page returns the same filter at another cursor; both empty is the first page.
func (f TaskFilter) Page(after, before string) TaskFilter {
	f.After, f.Before = after, before
	return f
}

func (f TaskFilter) withState(state string) TaskFilter {
	f.State = state
	return f.Page("", "")
}

func (f TaskFilter) narrowed() bool {
	return f.State != "" || f.Kind != "" || f.Endpoint != "" || f.Event != "" || f.Query != ""
}

// EventFilter is the query of the event list.
type EventFilter struct {
	Type, Subscriber, Outcome, Period, Query string
	After, Before                            string
}

// EventFilterFrom reads what EventsURL wrote.
func EventFilterFrom(q url.Values) EventFilter {
	return EventFilter{
		Type: q.Get("type"), Subscriber: q.Get("subscriber"), Outcome: q.Get("outcome"), Period: q.Get("period"),
		Query: q.Get("q"), After: q.Get("after"), Before: q.Get("before"),
	}
}

func (f EventFilter) values() url.Values {
	return url.Values{
		"type": {f.Type}, "subscriber": {f.Subscriber}, "outcome": {f.Outcome}, "period": {f.Period},
		"q": {f.Query}, "after": {f.After}, "before": {f.Before},
	}
}

// Page returns the same filter at another cursor; both empty is the first page.
func (f EventFilter) Page(after, before string) EventFilter {
	f.After, f.Before = after, before
	return f
}

func (f EventFilter) narrowed() bool {
	return f.Type != "" || f.Subscriber != "" || f.Outcome != "" || f.Query != ""
}

// EndpointFilter is the query of the endpoint list.
type EndpointFilter struct {
	Health, Query, After, Before string
}

// EndpointFilterFrom reads what EndpointsURL wrote.
func EndpointFilterFrom(q url.Values) EndpointFilter {
	return EndpointFilter{Health: q.Get("health"), Query: q.Get("q"), After: q.Get("after"), Before: q.Get("before")}
}

// Page returns the same filter at another cursor; both empty is the first page.
func (f EndpointFilter) Page(after, before string) EndpointFilter {
	f.After, f.Before = after, before
	return f
}

// AuditFilter is the query of the audit list.
type AuditFilter struct {
	Actor, Action, Query, After, Before string
}

// AuditFilterFrom reads what AuditURL wrote.
func AuditFilterFrom(q url.Values) AuditFilter {
	return AuditFilter{Actor: q.Get("actor"), Action: q.Get("action"), Query: q.Get("q"), After: q.Get("after"), Before: q.Get("before")}
}

func (f AuditFilter) values() url.Values {
	return url.Values{"actor": {f.Actor}, "action": {f.Action}, "q": {f.Query}, "after": {f.After}, "before": {f.Before}}
}

// Page returns the same filter at another cursor; both empty is the first page.
func (f AuditFilter) Page(after, before string) AuditFilter {
	f.After, f.Before = after, before
	return f
}
