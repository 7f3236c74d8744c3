package web

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

// showHealth tells how well retrying works.
func (s *Server) showHealth(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	l, err := s.layout(c, "Retry health", views.SectionHealth)
	if err != nil {
		return err
	}
	period := c.QueryParam("period")
	from := since(l.Now, period)
	if from.IsZero() {
		period, from = "24h", since(l.Now, "24h")
	}
	sums, err := jobs.TotalAttempts(ctx, s.pool, v.project.ID, from)
	if err != nil {
		return err
	}
	worst, err := s.readWorst(ctx, v.project.ID, from)
	if err != nil {
		return err
	}
	due, err := jobs.RetriesDue(ctx, s.pool, v.project.ID, l.Now.Add(overviewSpan))
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.RetryHealth(presentHealth(l, period, sums, worst, due, s.client.Policies(), v.project.ID)))
}

// worst are endpoints with many failures.
type worst struct {
	endpoints []jobs.EndpointFailures
	names     map[string]string
	strips    map[string][]webhooks.StripAttempt
}

// worstMost is how many of them are listed.
const worstMost = 10

func (s *Server) readWorst(ctx context.Context, project string, from time.Time) (w worst, err error) {
	if w.endpoints, err = jobs.WorstEndpoints(ctx, s.pool, project, from, worstMost); err != nil {
		return w, err
	}
	ids := make([]string, len(w.endpoints))
	for i, e := range w.endpoints {
		ids[i] = e.EndpointID
	}
	if w.names, err = webhooks.EndpointURLs(ctx, s.pool, project, ids); err != nil {
		return w, err
	}
	w.strips, err = webhooks.Strips(ctx, s.pool, project, ids)
	return w, err
}
