// Package webhooks sends.
package webhooks

import (
	"context"
	"net/http"

	"entrega/internal/egress"
	"entrega/jobs"
)

// Send makes one attempt.
func Send(ctx context.Context, job *jobs.Job[string]) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, job.Args, nil)
	if err != nil {
		return err
	}
	return egress.RoundTrip(request)
}
