package web

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/webhooks"
)

const tagDeliveries = "Deliveries"

// mountDeliveries lists the calls about deliveries.
func (a *api) mountDeliveries() {
	register(a, operation{
		id: "list-deliveries", method: http.MethodGet, path: "/v1/deliveries", tag: tagDeliveries, needs: tenant.PermSee,
		summary: "List deliveries", description: "Newest first.",
		answers: map[int]string{http.StatusOK: "One page of deliveries."},
	}, a.listDeliveries)
	register(a, operation{
		id: "get-delivery", method: http.MethodGet, path: "/v1/deliveries/{id}", tag: tagDeliveries, needs: tenant.PermSee,
		summary: "Read a delivery", answers: map[int]string{http.StatusOK: "The delivery."},
	}, a.getDelivery)
	register(a, operation{
		id: "list-attempts", method: http.MethodGet, path: "/v1/deliveries/{id}/attempts", tag: tagDeliveries, needs: tenant.PermSeePayloads,
		summary:     "List its attempts",
		description: "Those of one delivery, in their order, each with what was answered and what was decided. Attempts are kept when the excerpts of the answers are not any more.",
		answers:     map[int]string{http.StatusOK: "One page of attempts."},
	}, a.listAttempts)
	register(a, operation{
		id: "retry-delivery", method: http.MethodPost, path: "/v1/deliveries/{id}/retry", tag: tagDeliveries, needs: tenant.PermRetry,
		summary:     "Retry a delivery now",
		description: "Makes one more attempt as soon as the endpoint's lane has room, also when the attempts of the policy are used up.",
		status:      http.StatusAccepted,
		answers:     map[int]string{http.StatusAccepted: "The delivery is queued."},
		conflicts: []conflict{{jobs.CodeAlreadyQueued, "the delivery is queued or an attempt is under way"},
			{jobs.CodeCompleted, "the delivery has succeeded; redeliver its event to send it once more"},
			{webhooks.CodeEndpointDisabled, "its endpoint is disabled or deleted"}},
	}, a.retryDelivery)
	register(a, operation{
		id: "cancel-delivery", method: http.MethodPost, path: "/v1/deliveries/{id}/cancel", tag: tagDeliveries, needs: tenant.PermCancel,
		summary:     "Cancel a delivery",
		description: "Stops it for good: at once where it waits, at the end of its attempt where one is under way.",
		answers:     map[int]string{http.StatusOK: "The delivery is cancelled, or will be when its attempt ends."},
		conflicts:   []conflict{{jobs.CodeCompleted, "the delivery is finished; there is nothing left to cancel"}},
	}, a.cancelDelivery)
}

// deliveryShown is one event on its way to one endpoint.
type deliveryShown struct {
	ID            int64          `json:"id" example:"1042"`
	EventID       string         `json:"eventId" example:"event_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	EndpointID    string         `json:"endpointId" example:"endpoint_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	Status        deliveryStatus `json:"status" enum:"pending,processing,retrying,delivered,exhausted,cancelled" doc:"pending: waits for its turn. processing: an attempt is under way. retrying: the last attempt failed or was asked to come back. delivered: done. exhausted: will not be tried again by itself. cancelled: stopped." example:"retrying"`
	Reason        *string        `json:"reason" doc:"With retrying: snoozed, when no attempt was spent. With exhausted: why, unless its attempts were used up (gone, rejected, blocked, horizon, endpoint_disabled, …). With cancelled: endpoint_disabled, unless a person cancelled it."`
	Attempt       int            `json:"attempt" doc:"The number of the last attempt, or of the one under way; 0 before the first." example:"2"`
	MaxAttempts   int            `json:"maxAttempts" doc:"How many attempts its policy gives." example:"18"`
	NextAttemptAt *time.Time     `json:"nextAttemptAt" doc:"When the next attempt is due; null when it is due already or none is to come." example:"2026-03-01T12:05:00Z"`
	ErrorType     *string        `json:"errorType" doc:"What the last attempt failed with; null when it succeeded or there was none." example:"HttpError"`
	CreatedAt     time.Time      `json:"createdAt" example:"2026-03-01T12:00:00.123456Z"`
}

func (a *api) showDelivery(t jobs.Task) deliveryShown {
	status, reason := deliveryStatusOf(t)
	shown := deliveryShown{ID: t.ID, EventID: t.EventID, EndpointID: t.EndpointID, Status: status, Reason: orNull(reason),
		Attempt: t.Attempt, MaxAttempts: t.Max, CreatedAt: t.CreatedAt.UTC()}
	if t.NextAttemptAt.After(a.now()) {
		shown.NextAttemptAt = instantOrNull(t.NextAttemptAt)
	}
	if t.Last != nil {
		shown.ErrorType = orNull(t.Last.ErrorType)
	}
	return shown
}

type deliveryOutput struct{ Body deliveryShown }

type listDeliveriesInput struct {
	PageParams
	PeriodParams
	EndpointID string         `query:"endpointId" doc:"Only deliveries to this endpoint." example:"endpoint_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	EventID    string         `query:"eventId" doc:"Only deliveries of this event." example:"event_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	Status     deliveryStatus `query:"status" enum:"pending,processing,retrying,delivered,exhausted,cancelled" doc:"Only deliveries with this status." example:"exhausted"`
	ErrorType  string         `query:"errorType" doc:"Only deliveries whose last attempt failed with this." example:"Timeout"`
}

func (a *api) listDeliveries(ctx context.Context, c call, in *listDeliveriesInput) (*listOutput[deliveryShown], error) {
	filter := jobs.TaskFilter{Kind: webhooks.Deliver.Name, EndpointID: in.EndpointID, EventID: in.EventID, ErrorType: in.ErrorType,
		Since: in.Since, Until: in.Until}
	filter.State, filter.OrState = in.Status.states()
	list, err := a.client.ListTasks(ctx, a.pool, c.project(), filter, in.page())
	if err != nil {
		return nil, err
	}
	return listOf(list, a.showDelivery), nil
}

// DeliveryInput names a delivery.
type DeliveryInput struct {
	ID string `path:"id" doc:"The delivery's number." example:"1042"`
}

func (a *api) getDelivery(ctx context.Context, c call, in *DeliveryInput) (*deliveryOutput, error) {
	task, err := a.deliveryByID(ctx, c, in.ID)
	if err != nil {
		return nil, err
	}
	return &deliveryOutput{a.showDelivery(task)}, nil
}

// deliveryByID finds a delivery of the key's project. Other kinds of tasks are not deliveries, and neither is what is no number.
func (a *api) deliveryByID(ctx context.Context, c call, text string) (jobs.Task, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return jobs.Task{}, store.ErrNotFound
	}
	task, err := a.client.TaskByID(ctx, a.pool, c.project(), id)
	if err != nil {
		return jobs.Task{}, err
	}
	if task.Kind != webhooks.Deliver.Name {
		return jobs.Task{}, store.ErrNotFound
	}
	return task, nil
}

func (a *api) retryDelivery(ctx context.Context, c call, in *DeliveryInput) (*deliveryOutput, error) {
	return a.actOnDelivery(ctx, c, in.ID, a.client.Retry, jobs.CodeRunning, jobs.CodeAlreadyQueued)
}

func (a *api) cancelDelivery(ctx context.Context, c call, in *DeliveryInput) (*deliveryOutput, error) {
	return a.actOnDelivery(ctx, c, in.ID, a.client.Cancel, jobs.CodeFinished, jobs.CodeCompleted)
}

// actOnDelivery retries or cancels. The API has fewer codes for refusals than the panel has sentences: code is told as told.
func (a *api) actOnDelivery(ctx context.Context, c call, text string,
	act func(context.Context, tenant.Actor, string, int64) (jobs.Task, error), code, told string) (*deliveryOutput, error) {
	task, err := a.deliveryByID(ctx, c, text)
	if err != nil {
		return nil, err
	}
	task, err = act(ctx, c.actor, c.project(), task.ID)
	if err != nil {
		return nil, recode(err, code, told)
	}
	return &deliveryOutput{a.showDelivery(task)}, nil
}
