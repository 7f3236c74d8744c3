package web

import (
	"context"
	"net/http"

	"entrega/internal/events"
	"entrega/internal/tenant"
	"entrega/webhooks"
)

// mountEndpointActions lists what can be done with an endpoint besides changing its settings.
func (a *api) mountEndpointActions() {
	disabled := conflict{webhooks.CodeEndpointDisabled, "the endpoint is disabled; reactivate it first"}
	mismatch := conflict{events.CodeMismatch, "the Idempotency-Key was used before for another request"}
	register(a, operation{
		id: "test-endpoint", method: http.MethodPost, path: "/v1/endpoints/{id}/test", tag: tagEndpoints, needs: tenant.PermSendTest,
		summary:     "Send a test",
		description: "Publishes an event of type `" + webhooks.TestEventType + "` and delivers it to this endpoint alone, once, whatever types it takes.",
		status:      http.StatusAccepted, answers: map[int]string{http.StatusAccepted: "The test is on its way."},
		conflicts: []conflict{disabled, mismatch},
	}, a.testEndpoint)
	register(a, operation{
		id: "rotate-secret", method: http.MethodPost, path: "/v1/endpoints/{id}/rotate-secret", tag: tagEndpoints, needs: tenant.PermManageEndpoints,
		summary:     "Rotate the signing secret",
		description: "Answers the whole new secret, this once. The old one signs beside it until the overlap ends, so that receivers can change over without losing a message.",
		body:        rotateSecretBody{}, bodyOptional: true,
		answers:   map[int]string{http.StatusOK: "The new secret."},
		conflicts: []conflict{{"too_many_secrets", "too many secrets of this endpoint sign already; rotate with an overlap of 0 hours, which ends them all"}, mismatch},
	}, a.rotateSecret)
	register(a, operation{
		id: "disable-endpoint", method: http.MethodPost, path: "/v1/endpoints/{id}/disable", tag: tagEndpoints, needs: tenant.PermManageEndpoints,
		summary:     "Disable an endpoint",
		description: "Stops all deliveries. What it misses meanwhile can be redelivered after it is reactivated. One that is disabled already keeps its first reason.",
		body:        reasonBody{}, bodyOptional: true, answers: map[int]string{http.StatusOK: "The endpoint as it is now."},
	}, a.disableEndpoint)
	register(a, operation{
		id: "reactivate-endpoint", method: http.MethodPost, path: "/v1/endpoints/{id}/reactivate", tag: tagEndpoints, needs: tenant.PermReactivate,
		summary:     "Reactivate an endpoint",
		description: "Enables a disabled endpoint; its row of failures starts anew. What it missed comes with a redelivery.",
		body:        reasonBody{}, bodyOptional: true, answers: map[int]string{http.StatusOK: "The endpoint as it is now."},
		conflicts: []conflict{{webhooks.CodeNotDisabled, "the endpoint is not disabled"}},
	}, a.reactivateEndpoint)
	register(a, operation{
		id: "redeliver-endpoint", method: http.MethodPost, path: "/v1/endpoints/{id}/redeliver", tag: tagEndpoints, needs: tenant.PermRedeliver,
		summary: "Redeliver to an endpoint",
		description: "Starts a background task that tries the discarded deliveries again, those that ended because the endpoint was disabled among them, and brings the events that it missed while it was disabled; oldest first. " +
			"With `dryRun` it only counts.",
		body: redeliverBody{}, bodyOptional: true, status: http.StatusAccepted,
		answers:   map[int]string{http.StatusAccepted: "The task is queued.", http.StatusOK: "Nothing was started: it was a dry run, or there is nothing to redeliver."},
		conflicts: []conflict{disabled, mismatch},
	}, a.redeliverEndpoint)
}

type endpointActionInput struct {
	EndpointInput
	IdempotentInput
}

// testShown is a test on its way.
type testShown struct {
	EventID    string `json:"eventId" example:"event_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	DeliveryID int64  `json:"deliveryId" example:"1042"`
	Duplicate  bool   `json:"duplicate" doc:"The Idempotency-Key was used before: this is the test of then." example:"false"`
}

type testOutput struct{ Body testShown }

func (a *api) testEndpoint(ctx context.Context, c call, in *endpointActionInput) (*testOutput, error) {
	test, err := a.endpoints.SendTestOnce(ctx, c.actor, in.ID, c.key)
	if err != nil {
		return nil, err
	}
	return &testOutput{testShown{EventID: test.EventID, DeliveryID: test.TaskID, Duplicate: test.Duplicate}}, nil
}

// rotateSecretBody asks for a new secret.
type rotateSecretBody struct {
	_            struct{} `additionalProperties:"false"`
	OverlapHours *int     `json:"overlapHours,omitempty" minimum:"0" maximum:"168" default:"24" doc:"How long the old secrets go on signing." example:"24"`
	Secret       string   `json:"secret,omitempty" pattern:"^whsec_" doc:"An own secret, whsec_ and the base64 of 24 to 64 bytes; left out, a new one is made." example:"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"`
}

// secretShown is a new secret.
type secretShown struct {
	Secret    *string `json:"secret" doc:"The whole signing secret, this once; null when duplicate." example:"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"`
	Duplicate bool    `json:"duplicate" doc:"The Idempotency-Key was used before: nothing was rotated this time." example:"false"`
}

type secretOutput struct{ Body secretShown }

func (a *api) rotateSecret(ctx context.Context, c call, in *endpointActionInput) (*secretOutput, error) {
	var body rotateSecretBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	secret, err := a.endpoints.RotateSecret(ctx, c.actor, in.ID, webhooks.Rotation{OverlapHours: body.OverlapHours, Secret: body.Secret, IdempotencyKey: c.key})
	if err != nil {
		return nil, err
	}
	return &secretOutput{secretShown{Secret: orNull(secret), Duplicate: secret == ""}}, nil
}

// reasonBody says why, for the audit log.
type reasonBody struct {
	_      struct{} `additionalProperties:"false"`
	Reason string   `json:"reason,omitempty" maxLength:"500" doc:"Why, for the audit log and the panel." example:"The receiver moves to another host"`
}

func (a *api) disableEndpoint(ctx context.Context, c call, in *EndpointInput) (*endpointOutput, error) {
	return a.changeState(ctx, c, in.ID, a.endpoints.Disable)
}

func (a *api) reactivateEndpoint(ctx context.Context, c call, in *EndpointInput) (*endpointOutput, error) {
	return a.changeState(ctx, c, in.ID, a.endpoints.Reactivate)
}

func (a *api) changeState(ctx context.Context, c call, id string,
	change func(ctx context.Context, actor tenant.Actor, id, reason string) (webhooks.Endpoint, error)) (*endpointOutput, error) {
	var body reasonBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	return answerEndpoint(change(ctx, c.actor, id, body.Reason))
}
