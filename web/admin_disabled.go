package web

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/views"
	"entrega/webhooks"
)

// showDisabled lists every disabled endpoint of the installation.
func (s *Server) showDisabled(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	l, err := s.layout(c, "Disabled endpoints", views.SectionAdminDisabled)
	if err != nil {
		return err
	}
	list, err := s.endpoints.ListDisabledEndpoints(ctx, s.pool, v.actor, pageOf(c.QueryParam("after"), c.QueryParam("before")))
	if err != nil {
		return err
	}
	facts, err := readDisabled(ctx, s.pool, list.Rows)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.AdminDisabled(presentDisabled(l, list, facts)))
}

// disabledFacts are what the list needs beside the endpoint itself.
type disabledFacts struct {
	project string
	missed  int
}

// readDisabled reads the names of the endpoints' projects, and how much each endpoint missed, at most countMost.
func readDisabled(ctx context.Context, db store.DB, endpoints []webhooks.Endpoint) (map[string]disabledFacts, error) {
	rows, err := db.Query(ctx, `
		select e.id, p.name, (select count(*) from (
			select from missed_events m where m.endpoint_id = e.id and m.redelivered_at is null limit $2) m)
		from endpoints e
		join projects p on p.id = e.project_id
		where e.id = any($1)`, endpointIDs(endpoints), countMost)
	if err != nil {
		return nil, fmt.Errorf("read what disabled endpoints missed: %w", err)
	}
	facts := make(map[string]disabledFacts, len(endpoints))
	var id string
	var f disabledFacts
	if _, err := pgx.ForEachRow(rows, []any{&id, &f.project, &f.missed}, func() error { facts[id] = f; return nil }); err != nil {
		return nil, fmt.Errorf("read what disabled endpoints missed: %w", err)
	}
	return facts, nil
}

// reactivateDisabled enables a disabled endpoint of any project.
func (s *Server) reactivateDisabled(c echo.Context) error {
	actor := visitOf(c).actor.In(c.Param("project"))
	e, err := s.endpoints.Reactivate(c.Request().Context(), actor, c.Param("id"), c.Request().PostForm.Get("reason"))
	if err != nil {
		return err
	}
	return s.done(c, endpointName(e)+" is active again. What it missed can now be redelivered from its page.", views.AdminDisabledURL())
}
