package web

import (
	"net/http"
	"time"

	"entrega/internal/tenant"
	"entrega/webhooks"
)

const tagEndpoints = "Endpoints"

// mountEndpoints lists the calls about endpoints.
func (a *api) mountEndpoints() {
	register(a, operation{
		id: "create-endpoint", method: http.MethodPost, path: "/v1/endpoints", tag: tagEndpoints, needs: tenant.PermManageEndpoints,
		summary: "Create an endpoint",
		description: "Answers the whole signing `secret`, this once. The same `Idempotency-Key` with the same content answers the first endpoint with `duplicate: true`, for as long as that endpoint exists, " +
			"and with `secret: null`: it is stored sealed and shown to nobody again. Rotate it if it was lost on the way.",
		body: newEndpointBody{}, status: http.StatusCreated,
		answers:   map[int]string{http.StatusCreated: "The endpoint, and its secret."},
		conflicts: []conflict{{"idempotency_mismatch", "the key was used before with other settings"}},
	}, a.createEndpoint)
	register(a, operation{
		id: "list-endpoints", method: http.MethodGet, path: "/v1/endpoints", tag: tagEndpoints, needs: tenant.PermSee,
		summary: "List endpoints", description: "Newest first.", answers: map[int]string{http.StatusOK: "One page of endpoints."},
	}, a.listEndpoints)
	register(a, operation{
		id: "get-endpoint", method: http.MethodGet, path: "/v1/endpoints/{id}", tag: tagEndpoints, needs: tenant.PermSee,
		summary: "Read an endpoint", description: "With its health, and how its lane stands: what is in flight, what waits, and which node works it.",
		answers: map[int]string{http.StatusOK: "The endpoint."},
	}, a.getEndpoint)
	register(a, operation{
		id: "update-endpoint", method: http.MethodPatch, path: "/v1/endpoints/{id}", tag: tagEndpoints, needs: tenant.PermManageEndpoints,
		summary: "Change an endpoint",
		description: "Changes the members that are given and leaves the others. null gives one its default. `headers` and `eventTypes` are replaced as a whole; a header whose value is given back as it was answered, hidden, keeps its value. " +
			"Attempts that start after the answer go by the new settings.",
		body: endpointChangeBody{}, answers: map[int]string{http.StatusOK: "The endpoint as it is now."},
	}, a.updateEndpoint)
	register(a, operation{
		id: "delete-endpoint", method: http.MethodDelete, path: "/v1/endpoints/{id}", tag: tagEndpoints, needs: tenant.PermManageEndpoints,
		summary:     "Delete an endpoint",
		description: "Takes it away for good, with its secrets. Deliveries that still wait end with reason `endpoint_disabled`; past ones stay readable.",
		status:      http.StatusNoContent, answers: map[int]string{http.StatusNoContent: "The endpoint is gone."},
	}, a.deleteEndpoint)
	a.mountEndpointActions()
}

// EndpointShown is an endpoint with its health.
type EndpointShown struct {
	ID             string            `json:"id" example:"endpoint_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	URL            string            `json:"url" example:"https://shop.example.com/hooks"`
	Description    string            `json:"description" example:"The shop's order desk"`
	Subscriber     *string           `json:"subscriber" doc:"The project's own customer; null takes the events of all." example:"acme"`
	EventTypes     []string          `json:"eventTypes" nullable:"false" doc:"The types it takes; none takes all." example:"order.created,order.paid"`
	Profile        *string           `json:"profile" doc:"The set of webhook rules; null is the project's." example:"standard"`
	Headers        map[string]string `json:"headers" doc:"Its own headers. Values that look like credentials read (hidden)." example:"{\"X-Tenant\":\"acme\"}"`
	MaxInFlight    int               `json:"maxInFlight" doc:"How many requests it gets at once." example:"1"`
	RatePerSecond  *float64          `json:"ratePerSecond" doc:"How many requests it gets per second; null is no bound." example:"5"`
	TimeoutSeconds *int              `json:"timeoutSeconds" doc:"How long it may take to answer; null is the policy's timeout." example:"10"`
	Health         healthShown       `json:"health"`
	CreatedAt      time.Time         `json:"createdAt" example:"2026-03-01T12:00:00.123456Z"`
	UpdatedAt      time.Time         `json:"updatedAt" example:"2026-03-01T12:00:00.123456Z"`
}

// healthShown is how an endpoint is doing.
type healthShown struct {
	State          webhooks.State `json:"state" enum:"healthy,failing,paused,disabled" doc:"The gravest that holds." example:"healthy"`
	FailingSince   *time.Time     `json:"failingSince" doc:"The first of an unbroken row of failures; null when the last attempt succeeded."`
	FailuresInARow int            `json:"failuresInARow" example:"0"`
	LastSuccessAt  *time.Time     `json:"lastSuccessAt" example:"2026-03-01T11:58:00Z"`
	LastFailureAt  *time.Time     `json:"lastFailureAt"`
	PauseUntil     *time.Time     `json:"pauseUntil" doc:"When its receiver wants to be asked again, by Retry-After."`
	PausedAt       *time.Time     `json:"pausedAt" doc:"Since when a person holds its deliveries back."`
	DisabledAt     *time.Time     `json:"disabledAt" doc:"Since when it gets nothing."`
	DisabledReason *string        `json:"disabledReason" doc:"gone, failing, failures_in_a_row or manual."`
	DisabledDetail *string        `json:"disabledDetail" doc:"The reason in a sentence."`
}

func showEndpoint(e webhooks.Endpoint) EndpointShown {
	shown := EndpointShown{ID: e.ID, URL: e.URL, Description: e.Description, Subscriber: orNull(e.Subscriber), EventTypes: e.EventTypes,
		Profile: orNull(e.Profile), Headers: webhooks.MaskHeaders(e.Headers), MaxInFlight: e.MaxInFlight, RatePerSecond: orNull(e.RatePerSecond),
		TimeoutSeconds: orNull(e.TimeoutSeconds), CreatedAt: e.CreatedAt.UTC(), UpdatedAt: e.UpdatedAt.UTC(),
		Health: healthShown{State: e.State(), FailingSince: utc(e.FailingSince), FailuresInARow: e.FailuresInARow,
			LastSuccessAt: utc(e.LastSuccessAt), LastFailureAt: utc(e.LastFailureAt), PauseUntil: utc(e.PauseUntil), PausedAt: utc(e.PausedAt),
			DisabledAt: utc(e.DisabledAt), DisabledReason: orNull(string(e.DisabledReason)), DisabledDetail: orNull(e.DisabledDetail)}}
	if shown.EventTypes == nil {
		shown.EventTypes = []string{}
	}
	return shown
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	return instantOrNull(*t)
}
