package web

import (
	"context"
	"time"

	"entrega/webhooks"
)

type listEndpointsInput struct {
	PageParams
	State      webhooks.State `query:"state" enum:"healthy,failing,paused,disabled" doc:"Only endpoints in this state." example:"failing"`
	Subscriber string         `query:"subscriber" doc:"Only endpoints of this subscriber." example:"acme"`
	Search     string         `query:"search" doc:"Only endpoints with this text in their URL or description." example:"shop"`
}

func (a *api) listEndpoints(ctx context.Context, c call, in *listEndpointsInput) (*listOutput[EndpointShown], error) {
	list, err := a.endpoints.ListEndpoints(ctx, a.pool, c.project(),
		webhooks.EndpointFilter{State: in.State, Subscriber: in.Subscriber, Search: in.Search}, in.page())
	if err != nil {
		return nil, err
	}
	return listOf(list, showEndpoint), nil
}

// EndpointInput names an endpoint.
type EndpointInput struct {
	ID string `path:"id" doc:"The endpoint's id." example:"endpoint_01jqz4x1f8e3v9m2c7d5b6a0kt"`
}

type endpointOutput struct{ Body EndpointShown }

// endpointRead is an endpoint with its health and its lane.
type endpointRead struct {
	EndpointShown
	Lane laneShown `json:"lane"`
}

type endpointReadOutput struct{ Body endpointRead }

// laneShown is how an endpoint's lane stands. The counts stop at webhooks.MaxLaneCount + 1.
type laneShown struct {
	InFlight    int        `json:"inFlight" doc:"Deliveries in workers' hands that may be on their way at this moment; at most maxInFlight, and 1 while the endpoint is failing." example:"1"`
	Outstanding int        `json:"outstanding" maximum:"10001" doc:"Deliveries in workers' hands or handed to them; at most about 256." example:"256"`
	Pending     int        `json:"pending" maximum:"10001" doc:"Deliveries that wait behind those, in order; 10001 means more than 10,000." example:"1204"`
	Later       int        `json:"later" maximum:"10001" doc:"Deliveries that wait for their time: that of a retry, or the end of a pause; 10001 means more than 10,000." example:"3"`
	OldestAt    *time.Time `json:"oldestAt" doc:"When the oldest of all these was made; null when there is none." example:"2026-03-01T11:58:00Z"`
	Holder      *string    `json:"holder" doc:"The node that works the lane; null when no live node does." example:"node_3f2a9c0d41be"`
	HeldUntil   *time.Time `json:"heldUntil" doc:"When the node's lease ends unless it is renewed." example:"2026-03-01T12:00:35Z"`
	PauseUntil  *time.Time `json:"pauseUntil" doc:"When the receiver wants to be asked again, by its Retry-After; null when nothing waits for that."`
}

func (a *api) getEndpoint(ctx context.Context, c call, in *EndpointInput) (*endpointReadOutput, error) {
	e, err := a.endpoints.EndpointByID(ctx, a.pool, c.project(), in.ID)
	if err != nil {
		return nil, err
	}
	l, err := a.endpoints.LaneOf(ctx, a.pool, e)
	if err != nil {
		return nil, err
	}
	return &endpointReadOutput{endpointRead{EndpointShown: showEndpoint(e), Lane: laneShown{InFlight: l.InFlight, Outstanding: l.Outstanding,
		Pending: l.Pending, Later: l.Later, OldestAt: instantOrNull(l.OldestAt), Holder: orNull(l.Holder),
		HeldUntil: instantOrNull(l.HeldUntil), PauseUntil: instantOrNull(l.PauseUntil)}}}, nil
}

func answerEndpoint(e webhooks.Endpoint, err error) (*endpointOutput, error) {
	if err != nil {
		return nil, err
	}
	return &endpointOutput{showEndpoint(e)}, nil
}
