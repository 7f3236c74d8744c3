package web

import (
	"context"
	"fmt"

	"entrega/internal/store"
)

// maxNamedEndpoints bounds what one transaction looks at.
const maxNamedEndpoints = 200

// redeliverEventBody names where to; it may be left out.
type redeliverEventBody struct {
	_           struct{}  `additionalProperties:"false"`
	EndpointIDs *[]string `json:"endpointIds,omitempty" minItems:"1" maxItems:"200" nullable:"false" doc:"The endpoints to deliver to; left out, all that take the event now." example:"endpoint_01jqz4x1f8e3v9m2c7d5b6a0kt"`
}

type redeliverEventInput struct {
	EventInput
	IdempotentInput
}

// redeliveredShown answers an event's redelivery.
type redeliveredShown struct {
	DeliveryIDs []int64        `json:"deliveryIds" nullable:"false" doc:"The deliveries that are on their way now." example:"[1042]"`
	Skipped     []skippedShown `json:"skipped" nullable:"false" doc:"The endpoints that got none, because they are disabled or have it queued already."`
	Duplicate   bool           `json:"duplicate" doc:"The Idempotency-Key was used before: this is what was done then." example:"false"`
}

type redeliverEventOutput struct{ Body redeliveredShown }

func (a *api) redeliverEvent(ctx context.Context, c call, in *redeliverEventInput) (*redeliverEventOutput, error) {
	var body redeliverEventBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	ids, err := body.ids()
	if err != nil {
		return nil, err
	}
	done, err := a.endpoints.RedeliverEventOnce(ctx, c.actor, in.ID, c.key, ids...)
	if err != nil {
		return nil, err
	}
	shown := redeliveredShown{DeliveryIDs: done.TaskIDs, Skipped: showSkipped(done.Skipped), Duplicate: done.Duplicate}
	if shown.DeliveryIDs == nil {
		shown.DeliveryIDs = []int64{}
	}
	return &redeliverEventOutput{shown}, nil
}

// ids are the named endpoints. An empty list is refused: nobody who sends one means all.
func (b redeliverEventBody) ids() ([]string, error) {
	switch {
	case b.EndpointIDs == nil:
		return nil, nil
	case len(*b.EndpointIDs) == 0 || len(*b.EndpointIDs) > maxNamedEndpoints:
		return nil, store.Invalid("endpointIds", fmt.Sprintf("Name 1 to %d endpoints, or leave this out for all.", maxNamedEndpoints))
	default:
		return *b.EndpointIDs, nil
	}
}
