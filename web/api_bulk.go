package web

import (
	"context"
	"net/http"
	"time"

	"entrega/internal/tenant"
	"entrega/jobs"
)

// mountBulks lists the calls about background tasks that act on many deliveries.
func (a *api) mountBulks() {
	register(a, operation{
		id: "get-bulk", method: http.MethodGet, path: "/v1/bulks/{id}", tag: tagDeliveries, needs: tenant.PermSee,
		summary:     "Read a bulk task",
		description: "How far a redelivery of an endpoint is, which answers the id of its bulk task.",
		answers:     map[int]string{http.StatusOK: "The bulk task."},
	}, a.getBulk)
}

// bulkShown is one action on many deliveries.
type bulkShown struct {
	ID         string          `json:"id" example:"bulk_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	Action     jobs.BulkAction `json:"action" enum:"retry,cancel,redeliver" example:"redeliver"`
	State      jobs.BulkState  `json:"state" enum:"queued,running,completed,cancelled" example:"running"`
	Total      int64           `json:"total" doc:"How many there were at the start." example:"12"`
	Done       int64           `json:"done" doc:"How many were acted on." example:"8"`
	Skipped    int64           `json:"skipped" doc:"How many were passed over: they had changed meanwhile." example:"0"`
	CreatedAt  time.Time       `json:"createdAt" example:"2026-03-01T12:00:00.123456Z"`
	FinishedAt *time.Time      `json:"finishedAt" doc:"null until it is done."`
}

type bulkInput struct {
	ID string `path:"id" doc:"The bulk task's id." example:"bulk_01jqz4x1f8e3v9m2c7d5b6a0kt"`
}

type bulkOutput struct{ Body bulkShown }

func (a *api) getBulk(ctx context.Context, c call, in *bulkInput) (*bulkOutput, error) {
	b, err := jobs.BulkByID(ctx, a.pool, c.project(), in.ID)
	if err != nil {
		return nil, err
	}
	return &bulkOutput{bulkShown{ID: b.ID, Action: b.Action, State: b.State, Total: b.Total, Done: b.Done, Skipped: b.Skipped,
		CreatedAt: b.CreatedAt.UTC(), FinishedAt: utc(b.FinishedAt)}}, nil
}
