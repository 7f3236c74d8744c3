package web

import (
	"context"
	"net/http"
	"time"

	"entrega/webhooks"
)

// redeliverBody narrows a redelivery.
type redeliverBody struct {
	_      struct{}       `additionalProperties:"false"`
	Since  time.Time      `json:"since,omitzero" doc:"Only what was made or missed at or after this instant." example:"2026-03-01T00:00:00Z"`
	Until  time.Time      `json:"until,omitzero" doc:"Only what was made or missed before this instant." example:"2026-03-02T00:00:00Z"`
	Scope  webhooks.Scope `json:"scope,omitempty" enum:"discarded,missed,both" default:"both" doc:"discarded: deliveries that ended without success. missed: events published while the endpoint was disabled." example:"discarded"`
	DryRun bool           `json:"dryRun,omitempty" doc:"Only count." example:"false"`
}

// redeliveryShown is what a redelivery is about.
type redeliveryShown struct {
	Count      int64   `json:"count" doc:"How many deliveries come of it." example:"12"`
	Deliveries int64   `json:"deliveries" doc:"Those to try again." example:"10"`
	Missed     int64   `json:"missed" doc:"Those of missed events." example:"2"`
	BulkID     *string `json:"bulkId" doc:"The background task that does it; null when none was started." example:"bulk_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	Duplicate  bool    `json:"duplicate" doc:"The Idempotency-Key was used before: this is what was started then." example:"false"`
}

type redeliveryOutput struct {
	Status int
	Body   redeliveryShown
}

func (a *api) redeliverEndpoint(ctx context.Context, c call, in *endpointActionInput) (*redeliveryOutput, error) {
	var body redeliverBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	count, err := a.endpoints.Redeliver(ctx, c.actor, in.ID,
		webhooks.RedeliverRequest{Since: body.Since, Until: body.Until, Scope: body.Scope, DryRun: body.DryRun, IdempotencyKey: c.key})
	if err != nil {
		return nil, err
	}
	status := http.StatusAccepted
	if count.BulkID == "" {
		status = http.StatusOK
	}
	return &redeliveryOutput{Status: status, Body: redeliveryShown{Count: count.Total(), Deliveries: count.Deliveries,
		Missed: count.Missed, BulkID: orNull(count.BulkID), Duplicate: count.Duplicate}}, nil
}
