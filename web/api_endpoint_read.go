package web

import (
	"context"

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

func (a *api) getEndpoint(ctx context.Context, c call, in *EndpointInput) (*endpointOutput, error) {
	return answerEndpoint(a.endpoints.EndpointByID(ctx, a.pool, c.project(), in.ID))
}

func answerEndpoint(e webhooks.Endpoint, err error) (*endpointOutput, error) {
	if err != nil {
		return nil, err
	}
	return &endpointOutput{showEndpoint(e)}, nil
}
