package web

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
	"entrega/webhooks"
)

// showEndpoints lists the project's endpoints with their health.
func (s *Server) showEndpoints(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	filter := views.EndpointFilterFrom(c.QueryParams())
	l, err := s.layout(c, "Endpoints", views.SectionEndpoints)
	if err != nil {
		return err
	}
	list, err := s.listEndpoints(ctx, v, filter)
	if err != nil {
		return err
	}
	ids := endpointIDs(list.Rows)
	strips, err := webhooks.Strips(ctx, s.pool, v.project.ID, ids)
	if err != nil {
		return err
	}
	loads, err := readLoads(ctx, s.pool, v.project.ID, ids)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.Endpoints(presentEndpoints(l, v, filter, list, strips, loads)))
}

// listEndpoints narrows by what the list's statement knows, and then by the rest of the health. A search that finds nothing
// in addresses and descriptions may name a subscriber.
func (s *Server) listEndpoints(ctx context.Context, v *visit, q views.EndpointFilter) (store.List[webhooks.Endpoint], error) {
	search := strings.TrimSpace(q.Query)
	f := webhooks.EndpointFilter{State: endpointState(views.Health(q.Health)), Search: search}
	now := s.now()
	read := func(page store.Page) (store.List[webhooks.Endpoint], error) {
		return s.endpoints.ListEndpoints(ctx, s.pool, v.project.ID, f, page)
	}
	keep := func(e webhooks.Endpoint) bool {
		return (q.Health == "" || healthOf(e, now) == views.Health(q.Health)) && (f.Search == "" || mayFind(v, e, f.Search))
	}
	list, err := collect(pageOf(q.After, q.Before), q.Before != "", read, keep)
	if err != nil || search == "" || len(list.Rows) > 0 || q.After != "" || q.Before != "" {
		return list, err
	}
	f.Search, f.Subscriber = "", search
	return collect(store.Page{}, false, read, keep)
}

// mayFind keeps viewers from guessing at masked addresses by searching for them: they find hosts and descriptions.
func mayFind(v *visit, e webhooks.Endpoint, search string) bool {
	if v.can(tenant.PermSeePayloads) {
		return true
	}
	return strings.Contains(strings.ToLower(hostOf(e.URL)+" "+e.Description), strings.ToLower(search))
}

// endpointState is the part of a health that the list's statement knows.
func endpointState(h views.Health) webhooks.State {
	switch h {
	case views.Disabled:
		return webhooks.StateDisabled
	case views.Paused:
		return webhooks.StatePaused
	case views.Failing:
		return webhooks.StateFailing
	case views.Healthy, views.Unused:
		return webhooks.StateHealthy
	default:
		return ""
	}
}

// action runs one change of an endpoint and answers with its sentence.
func (s *Server) action(c echo.Context, change func(ctx context.Context, actor tenant.Actor, id string) (sentence string, err error)) error {
	v, id := visitOf(c), c.Param("id")
	sentence, err := change(c.Request().Context(), v.actor, id)
	if err != nil {
		return err
	}
	return s.done(c, sentence, views.EndpointURL(v.project.ID, id))
}

// testEndpoint sends a test event to one endpoint.
func (s *Server) testEndpoint(c echo.Context) error {
	return s.action(c, func(ctx context.Context, actor tenant.Actor, id string) (string, error) {
		test, err := s.endpoints.SendTest(ctx, actor, id)
		return "A test is on its way as task " + taskNumber(test.TaskID) + ". It is tried once.", err
	})
}

// pauseEndpoint holds deliveries back.
func (s *Server) pauseEndpoint(c echo.Context) error {
	return s.action(c, func(ctx context.Context, actor tenant.Actor, id string) (string, error) {
		_, err := s.endpoints.Pause(ctx, actor, id)
		return "The endpoint is paused. Its deliveries wait until it is resumed.", err
	})
}

// resumeEndpoint lets deliveries go on.
func (s *Server) resumeEndpoint(c echo.Context) error {
	return s.action(c, func(ctx context.Context, actor tenant.Actor, id string) (string, error) {
		_, err := s.endpoints.Unpause(ctx, actor, id)
		return "The endpoint is resumed. Its deliveries go on.", err
	})
}

// disableEndpoint stops all deliveries, with a reason for those who come later.
func (s *Server) disableEndpoint(c echo.Context) error {
	return s.action(c, func(ctx context.Context, actor tenant.Actor, id string) (string, error) {
		_, err := s.endpoints.Disable(ctx, actor, id, c.Request().PostForm.Get("reason"))
		return "The endpoint is disabled. Nothing is sent to it until it is reactivated.", err
	})
}

// reactivateEndpoint enables a disabled endpoint.
func (s *Server) reactivateEndpoint(c echo.Context) error {
	return s.action(c, func(ctx context.Context, actor tenant.Actor, id string) (string, error) {
		_, err := s.endpoints.Reactivate(ctx, actor, id, c.Request().PostForm.Get("reason"))
		return "The endpoint is active again. What it missed can now be redelivered.", err
	})
}

// deleteEndpoint takes an endpoint away for good.
func (s *Server) deleteEndpoint(c echo.Context) error {
	v := visitOf(c)
	if err := s.endpoints.DeleteEndpoint(c.Request().Context(), v.actor, c.Param("id")); err != nil {
		return err
	}
	if err := s.tell(c, views.Flash{Text: "The endpoint was deleted. Its past deliveries stay."}); err != nil {
		return err
	}
	return redirect(c, views.EndpointsURL(v.project.ID, views.EndpointFilter{}))
}

func endpointIDs(endpoints []webhooks.Endpoint) []string {
	ids := make([]string, len(endpoints))
	for i, e := range endpoints {
		ids[i] = e.ID
	}
	return ids
}
