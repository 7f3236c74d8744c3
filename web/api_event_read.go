package web

import (
	"context"
	"time"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/jobs"
	"entrega/webhooks"
)

// PeriodParams bound lists by when their rows were made.
type PeriodParams struct {
	Since time.Time `query:"since" doc:"Only those made at or after this instant." example:"2026-03-01T00:00:00Z"`
	Until time.Time `query:"until" doc:"Only those made before this instant." example:"2026-03-02T00:00:00Z"`
}

type listEventsInput struct {
	PageParams
	PeriodParams
	Type       string `query:"type" doc:"Only events of this type." example:"order.created"`
	Subscriber string `query:"subscriber" doc:"Only events for this subscriber." example:"acme"`
}

func (a *api) listEvents(ctx context.Context, c call, in *listEventsInput) (*listOutput[EventShown], error) {
	list, err := events.ListEvents(ctx, a.pool, c.project(),
		events.Filter{Type: in.Type, Subscriber: in.Subscriber, Since: in.Since, Until: in.Until}, in.page())
	if err != nil {
		return nil, err
	}
	return listOf(list, showEvent), nil
}

// EventInput names an event.
type EventInput struct {
	ID string `path:"id" doc:"The event's id." example:"event_01jqz4x1f8e3v9m2c7d5b6a0kt"`
}

type eventOutput struct{ Body eventDetail }

func (a *api) getEvent(ctx context.Context, c call, in *EventInput) (*eventOutput, error) {
	event, err := events.EventByID(ctx, a.pool, c.project(), in.ID)
	if err != nil {
		return nil, err
	}
	deliveries, err := a.client.ListTasks(ctx, a.pool, c.project(),
		jobs.TaskFilter{Kind: webhooks.Deliver.Name, EventID: in.ID}, store.Page{Limit: store.MaxLimit})
	if err != nil {
		return nil, err
	}
	detail := eventDetail{EventShown: showEvent(event), Skipped: showSkipped(event.Skipped.Endpoints), Data: event.Data,
		Deliveries: make([]deliveryShown, len(deliveries.Rows))}
	for i, task := range deliveries.Rows {
		detail.Deliveries[i] = a.showDelivery(task)
	}
	return &eventOutput{detail}, nil
}
