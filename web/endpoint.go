package web

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

// deliveriesShown is how many of an endpoint's deliveries its page lists.
const deliveriesShown = 15

// endpointDetail is everything the page of one endpoint tells.
type endpointDetail struct {
	endpoint   webhooks.Endpoint
	policy     jobs.Policy
	stats      webhooks.Stats
	load       load
	secrets    []webhooks.SecretInfo
	deliveries []jobs.Task
	clicks     []tenant.AuditEntry
}

// showEndpoint tells how one endpoint is doing.
func (s *Server) showEndpoint(c echo.Context) error {
	ctx, v, id := c.Request().Context(), visitOf(c), c.Param("id")
	e, err := s.endpoints.EndpointByID(ctx, s.pool, v.project.ID, id)
	if err != nil {
		return err
	}
	d, err := s.readEndpoint(ctx, v, e)
	if err != nil {
		return err
	}
	l, err := s.layout(c, endpointName(e), views.SectionEndpoints)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.Endpoint(presentEndpoint(l, v, d)))
}

func (s *Server) readEndpoint(ctx context.Context, v *visit, e webhooks.Endpoint) (d endpointDetail, err error) {
	d.endpoint = e
	profile := e.Profile
	if profile == "" {
		profile = v.project.Profile
	}
	d.policy, _ = s.client.Policies().ForProject(webhooks.Deliver.Name, profile, v.project.ID)
	if d.stats, err = s.endpoints.StatsOf(ctx, s.pool, e, v.project.Profile); err != nil {
		return d, err
	}
	loads, err := readLoads(ctx, s.pool, v.project.ID, []string{e.ID})
	if err != nil {
		return d, err
	}
	d.load = loads[e.ID]
	if d.secrets, err = s.endpoints.ListSecrets(ctx, s.pool, v.project.ID, e.ID); err != nil {
		return d, err
	}
	list, err := s.client.ListTasks(ctx, s.pool, v.project.ID, jobs.TaskFilter{EndpointID: e.ID}, store.Page{Limit: deliveriesShown})
	if err != nil {
		return d, err
	}
	d.deliveries = list.Rows
	d.clicks, err = tenant.AuditOfSubject(ctx, s.pool, v.project.ID, "endpoint", e.ID, clicksShown)
	return d, err
}
