package web

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"entrega/internal/events"
	"entrega/internal/tenant"
	"entrega/webhooks"
)

const tagEvents = "Events"

// mountEvents lists the calls about events.
func (a *api) mountEvents() {
	register(a, operation{
		id: "publish-event", method: http.MethodPost, path: "/v1/events", tag: tagEvents, needs: tenant.PermPublish, proves: true,
		summary: "Publish an event",
		description: "Stores an event and delivers it to every endpoint that takes its type and subscriber. `data` is kept and sent byte for byte as it stands in the body. " +
			"The same `id` or `Idempotency-Key` with the same content answers the first event with `duplicate: true`, for as long as that event is kept.",
		body: publishBody{}, bodyBytes: events.MaxDataBytes, status: http.StatusAccepted,
		answers:   map[int]string{http.StatusAccepted: "The event is stored and will be delivered."},
		conflicts: []conflict{{events.CodeMismatch, "the id or key was used before with other content"}},
	}, a.publishEvent)
	register(a, operation{
		id: "publish-events", method: http.MethodPost, path: "/v1/events/batch", tag: tagEvents, needs: tenant.PermPublish,
		summary: "Publish many events",
		description: "Each event answers for itself, in the order given: one that is refused does not hold back the others. Give events an `id` to be able to send a batch again safely; " +
			"with an `Idempotency-Key`, the events without an id are told apart by their place in the batch.",
		body: publishBatchBody{}, bodyBytes: batchBytes, status: http.StatusAccepted,
		answers: map[int]string{http.StatusAccepted: "Each event was looked at; `refused` counts those that were not stored."},
	}, a.publishEvents)
	register(a, operation{
		id: "list-events", method: http.MethodGet, path: "/v1/events", tag: tagEvents, needs: tenant.PermSee,
		summary: "List events", description: "Newest first, without their data.",
		answers: map[int]string{http.StatusOK: "One page of events."},
	}, a.listEvents)
	register(a, operation{
		id: "get-event", method: http.MethodGet, path: "/v1/events/{id}", tag: tagEvents, needs: tenant.PermSeePayloads,
		summary:     "Read an event",
		description: "With its data byte for byte, its deliveries, and the endpoints that got none with the reason for each.",
		answers:     map[int]string{http.StatusOK: "The event."},
	}, a.getEvent)
	register(a, operation{
		id: "redeliver-event", method: http.MethodPost, path: "/v1/events/{id}/redeliver", tag: tagEvents, needs: tenant.PermRedeliver,
		summary: "Redeliver an event",
		description: "Delivers an event once more, to the named endpoints or to all that take it now. A delivery that ended without success is tried again; where one succeeded, or there was none, a new one is made. " +
			"Receivers see the same `webhook-id`.",
		body: redeliverEventBody{}, bodyOptional: true, status: http.StatusAccepted,
		answers:   map[int]string{http.StatusAccepted: "The deliveries are on their way."},
		conflicts: []conflict{{webhooks.CodeEndpointDisabled, "a named endpoint is disabled"}, {events.CodeMismatch, "the Idempotency-Key was used before for another request"}},
	}, a.redeliverEvent)
}

// eventState says how far the fan-out of an event is.
type eventState string

const (
	eventWaiting   eventState = "waiting"
	eventFannedOut eventState = "fanned_out"
	eventPoisoned  eventState = "poisoned"
)

// EventShown is an event without its data.
type EventShown struct {
	ID            string            `json:"id" doc:"The webhook-id that receivers get." example:"event_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	Type          string            `json:"type" example:"order.created"`
	Subscriber    *string           `json:"subscriber" doc:"The project's own customer whom it concerns; null for all." example:"acme"`
	OccurredAt    *time.Time        `json:"occurredAt" doc:"When it happened, as its publisher says." example:"2026-03-01T12:00:00Z"`
	ExpiresAt     *time.Time        `json:"expiresAt" doc:"When attempts to deliver it end." example:"2026-03-08T12:00:00Z"`
	Metadata      map[string]string `json:"metadata" doc:"Facts for people and searches; not sent to receivers." example:"{\"source\":\"shop\"}"`
	CreatedAt     time.Time         `json:"createdAt" doc:"When it was published." example:"2026-03-01T12:00:00.123456Z"`
	DataBytes     int               `json:"dataBytes" doc:"The size of its data." example:"27"`
	State         eventState        `json:"state" enum:"waiting,fanned_out,poisoned" doc:"waiting for its fan-out, fanned_out to its endpoints, or poisoned: the fan-out failed again and again and needs a person." example:"fanned_out"`
	DeliveryCount int               `json:"deliveryCount" doc:"How many deliveries its fan-out made." example:"2"`
	SkippedCounts map[string]int    `json:"skippedCounts" doc:"How many endpoints got none, by reason." example:"{\"type_not_subscribed\":1}"`
}

func showEvent(e events.Event) EventShown {
	shown := EventShown{ID: e.ID, Type: e.Type, Subscriber: orNull(e.Subscriber), OccurredAt: instantOrNull(e.OccurredAt),
		ExpiresAt: instantOrNull(e.ExpiresAt), Metadata: e.Metadata, CreatedAt: e.CreatedAt.UTC(), DataBytes: e.DataBytes,
		State: eventStateOf(e), DeliveryCount: e.Deliveries, SkippedCounts: e.Skipped.Counts}
	if shown.Metadata == nil {
		shown.Metadata = map[string]string{}
	}
	if shown.SkippedCounts == nil {
		shown.SkippedCounts = map[string]int{}
	}
	return shown
}

func eventStateOf(e events.Event) eventState {
	switch {
	case !e.PoisonedAt.IsZero():
		return eventPoisoned
	case e.ConsideredAt.IsZero():
		return eventWaiting
	default:
		return eventFannedOut
	}
}

// eventDetail is an event with everything. Data is its last member: see writeJSON.
type eventDetail struct {
	EventShown
	Deliveries []deliveryShown `json:"deliveries" nullable:"false" doc:"Its deliveries, newest first, 200 at most."`
	Skipped    []skippedShown  `json:"skipped" nullable:"false" doc:"The endpoints that got no delivery, 200 at most."`
	Data       json.RawMessage `json:"data" doc:"The data byte for byte as published." example:"{\"orderId\":\"SO-1042\"}"`
}

// skippedShown is an endpoint that got no delivery.
type skippedShown struct {
	EndpointID string `json:"endpointId" example:"endpoint_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	Reason     string `json:"reason" doc:"type_not_subscribed, other_subscriber, endpoint_disabled, event_expired, or, of a redelivery, already_queued." example:"type_not_subscribed"`
}

func showSkipped(skipped []events.SkippedEndpoint) []skippedShown {
	shown := make([]skippedShown, len(skipped))
	for i, s := range skipped {
		shown[i] = skippedShown{EndpointID: s.ID, Reason: s.Reason}
	}
	return shown
}

// writeJSON keeps the data as it is, blanks included, where encoding/json would close them up.
func (e eventDetail) writeJSON(w io.Writer) error {
	data := e.Data
	e.Data = nil
	text, err := encoded(e)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{text[:len(text)-len("null}\n")], data, []byte("}\n")} {
		_, _ = w.Write(part) // Whoever it is for may be gone.
	}
	return nil
}

// instantOrNull is nil for the zero time.
func instantOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
