package web

import (
	"context"
	"maps"
	"net/http"

	"entrega/webhooks"
)

// newEndpointBody are the settings of an endpoint to create.
type newEndpointBody struct {
	_              struct{}          `additionalProperties:"false"`
	URL            string            `json:"url" maxLength:"2048" format:"uri" doc:"Where events are sent by POST." example:"https://shop.example.com/hooks"`
	Description    string            `json:"description,omitempty" maxLength:"500" doc:"For people." example:"The shop's order desk"`
	Subscriber     string            `json:"subscriber,omitempty" maxLength:"128" doc:"The project's own customer; left out, it takes the events of all." example:"acme"`
	EventTypes     []string          `json:"eventTypes,omitempty" maxItems:"100" nullable:"false" doc:"The types it takes; none takes all." example:"order.created,order.paid"`
	Profile        string            `json:"profile,omitempty" doc:"The set of webhook rules; left out, the project's." example:"standard"`
	Headers        map[string]string `json:"headers,omitempty" maxProperties:"20" doc:"Own headers of each request, 4 KiB together. Hop-by-hop headers, Host, Content-Length, Idempotency-Key and webhook-* are refused." example:"{\"X-Tenant\":\"acme\"}"`
	MaxInFlight    int               `json:"maxInFlight,omitempty" minimum:"1" maximum:"64" default:"1" doc:"How many requests it gets at once." example:"1"`
	RatePerSecond  float64           `json:"ratePerSecond,omitempty" minimum:"0.01" maximum:"10000" doc:"How many requests it gets per second; left out, no bound." example:"5"`
	TimeoutSeconds int               `json:"timeoutSeconds,omitempty" minimum:"1" maximum:"30" doc:"How long it may take to answer; left out, the policy's timeout." example:"10"`
	Secret         string            `json:"secret,omitempty" pattern:"^whsec_" doc:"An own signing secret, whsec_ and the base64 of 24 to 64 bytes; left out, a new one is made." example:"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"`
}

type createEndpointInput struct{ IdempotentInput }

// createdEndpoint is an endpoint at its creation.
type createdEndpoint struct {
	EndpointShown
	Secret    *string `json:"secret" doc:"The whole signing secret, this once; null when duplicate." example:"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"`
	Duplicate bool    `json:"duplicate" doc:"The endpoint was there already: its Idempotency-Key was used before with the same content." example:"false"`
}

type createEndpointOutput struct {
	Location string `header:"Location" doc:"The endpoint's own address."`
	Body     createdEndpoint
}

func (a *api) createEndpoint(ctx context.Context, c call, _ *createEndpointInput) (*createEndpointOutput, error) {
	var body newEndpointBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	created, err := a.endpoints.CreateEndpoint(ctx, c.actor, webhooks.NewEndpoint{
		Settings: webhooks.Settings{URL: body.URL, Description: body.Description, Subscriber: body.Subscriber, EventTypes: body.EventTypes,
			Profile: body.Profile, Headers: body.Headers, MaxInFlight: body.MaxInFlight, RatePerSecond: body.RatePerSecond,
			TimeoutSeconds: body.TimeoutSeconds},
		Secret: body.Secret, IdempotencyKey: c.key})
	if err != nil {
		return nil, err
	}
	return &createEndpointOutput{Location: "/v1/endpoints/" + created.Endpoint.ID, Body: createdEndpoint{
		EndpointShown: showEndpoint(created.Endpoint), Secret: orNull(created.Secret), Duplicate: created.Duplicate}}, nil
}

// endpointChangeBody has a pointer for each setting, so that null can be told from nothing.
type endpointChangeBody struct {
	_              struct{}           `additionalProperties:"false"`
	URL            *string            `json:"url,omitempty" maxLength:"2048" format:"uri" example:"https://shop.example.com/hooks"`
	Description    *string            `json:"description,omitempty" nullable:"true" maxLength:"500" example:"The shop's order desk"`
	Subscriber     *string            `json:"subscriber,omitempty" nullable:"true" maxLength:"128" doc:"null takes the events of all." example:"acme"`
	EventTypes     *[]string          `json:"eventTypes,omitempty" nullable:"true" maxItems:"100" doc:"null or none takes all." example:"order.created,order.paid"`
	Profile        *string            `json:"profile,omitempty" nullable:"true" doc:"null is the project's." example:"standard"`
	Headers        *map[string]string `json:"headers,omitempty" nullable:"true" maxProperties:"20" doc:"null is none." example:"{\"X-Tenant\":\"acme\"}"`
	MaxInFlight    *int               `json:"maxInFlight,omitempty" nullable:"true" minimum:"1" maximum:"64" doc:"null is 1." example:"4"`
	RatePerSecond  *float64           `json:"ratePerSecond,omitempty" nullable:"true" minimum:"0.01" maximum:"10000" doc:"null is no bound." example:"5"`
	TimeoutSeconds *int               `json:"timeoutSeconds,omitempty" nullable:"true" minimum:"1" maximum:"30" doc:"null is the policy's timeout." example:"10"`
}

func (a *api) updateEndpoint(ctx context.Context, c call, in *EndpointInput) (*endpointOutput, error) {
	var body endpointChangeBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if body.Headers != nil {
		before, err := a.endpoints.EndpointByID(ctx, a.pool, c.project(), in.ID)
		if err != nil {
			return nil, err
		}
		unmask(*body.Headers, before.Headers)
	}
	return answerEndpoint(a.endpoints.UpdateEndpoint(ctx, c.actor, in.ID, webhooks.Change{URL: body.URL, Description: body.Description,
		Subscriber: body.Subscriber, EventTypes: body.EventTypes, Profile: body.Profile, Headers: body.Headers,
		MaxInFlight: body.MaxInFlight, RatePerSecond: body.RatePerSecond, TimeoutSeconds: body.TimeoutSeconds}))
}

// unmask puts the stored value back where a caller sends what it was shown of it, so that reading an endpoint and sending it
// back with one setting changed does not lose its credentials.
func unmask(given, stored map[string]string) {
	shown := webhooks.MaskHeaders(stored)
	for name, value := range maps.Clone(given) {
		canonical := http.CanonicalHeaderKey(name)
		if shown[canonical] == value && value != "" {
			given[name] = stored[canonical]
		}
	}
}

func (a *api) deleteEndpoint(ctx context.Context, c call, in *EndpointInput) (*struct{}, error) {
	return nil, a.endpoints.DeleteEndpoint(ctx, c.actor, in.ID)
}
