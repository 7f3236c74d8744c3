package web

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"entrega/internal/alerts"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// alertsOnOverview is how many open alerts the first page of a project shows.
const alertsOnOverview = 3

// showAlerts lists the project's alerts of one state; an admin's list has those of the installation as well.
func (s *Server) showAlerts(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	l, err := s.layout(c, "Alerts", views.SectionAlerts)
	if err != nil {
		return err
	}
	state, filter := alertState(c.QueryParam("state"))
	view := alerts.ViewOf(v.actor, v.project.ID)
	counts, err := alerts.Count(ctx, s.pool, view)
	if err != nil {
		return err
	}
	list, err := alerts.List(ctx, s.pool, view, filter, pageOf(c.QueryParam("after"), c.QueryParam("before")))
	if err != nil {
		return err
	}
	redeliverable, err := readRedeliverable(ctx, s.pool, v, list.Rows)
	if err != nil {
		return err
	}
	p := views.AlertsProps{Layout: l, State: state, Open: counts.Open, Acknowledged: counts.Acknowledged, Resolved: counts.Resolved,
		Rows: presentAlerts(v, list.Rows, redeliverable), Pager: alertPager(v.project.ID, state, list)}
	return s.page(c, http.StatusOK, views.Alerts(p))
}

// alertState reads which alerts are asked for; the open ones when nothing is said, or nothing that there is.
func alertState(asked string) (string, alerts.Filter) {
	switch state := alerts.State(asked); state {
	case alerts.StateAcknowledged, alerts.StateResolved:
		return asked, alerts.Filter{State: state}
	case "all":
		return asked, alerts.Filter{}
	default:
		return string(alerts.StateOpen), alerts.Filter{State: alerts.StateOpen}
	}
}

// acknowledgeAlert says that the visitor takes an alert on.
func (s *Server) acknowledgeAlert(c echo.Context) error {
	v := visitOf(c)
	if _, err := alerts.Acknowledge(c.Request().Context(), s.pool, v.actor, v.project.ID, c.Param("id")); err != nil {
		return err
	}
	s.badge.Forget()
	return s.done(c, "The alert is acknowledged. It goes on counting, and resolves itself when its cause is gone.", views.AlertsURL(v.project.ID, ""))
}

// resolveAlert says that the visitor has done with an alert.
func (s *Server) resolveAlert(c echo.Context) error {
	v := visitOf(c)
	if _, err := alerts.Resolve(c.Request().Context(), s.pool, v.actor, v.project.ID, c.Param("id")); err != nil {
		return err
	}
	s.badge.Forget()
	return s.done(c, "The alert is resolved. It comes back when something new happens.", views.AlertsURL(v.project.ID, ""))
}

// openAlerts reads the newest open alerts for the first page of a project, and how many more there are.
func (s *Server) openAlerts(ctx context.Context, v *visit) (rows []views.AlertRow, more int, err error) {
	view := alerts.ViewOf(v.actor, v.project.ID)
	list, err := alerts.List(ctx, s.pool, view, alerts.Filter{State: alerts.StateOpen}, store.Page{Limit: alertsOnOverview})
	if err != nil {
		return nil, 0, err
	}
	redeliverable, err := readRedeliverable(ctx, s.pool, v, list.Rows)
	if err != nil {
		return nil, 0, err
	}
	if list.Next != "" {
		open, err := s.badge.Open(ctx, view)
		if err != nil {
			return nil, 0, err
		}
		more = max(open-len(list.Rows), 1)
	}
	return presentAlerts(v, list.Rows, redeliverable), more, nil
}

// countAlerts puts the number of open alerts into the navigation.
func (s *Server) countAlerts(ctx context.Context, v *visit, nav []views.NavItem) error {
	for i := range nav {
		if nav[i].Section != views.SectionAlerts {
			continue
		}
		open, err := s.badge.Open(ctx, alerts.ViewOf(v.actor, v.project.ID))
		if err != nil {
			return err
		}
		nav[i].Badge, nav[i].BadgeNote = open, "open alerts"
		if open == 1 {
			nav[i].BadgeNote = "open alert"
		}
	}
	return nil
}

// readRedeliverable counts what a redelivery would bring to the endpoints of alerts. A disabled endpoint must be reactivated
// first, and is left out.
func readRedeliverable(ctx context.Context, db store.DB, v *visit, list []alerts.Alert) (map[string]int, error) {
	var ids []string
	for _, a := range list {
		if a.EndpointID != "" && a.State != alerts.StateResolved && a.ProjectID == v.project.ID {
			ids = append(ids, a.EndpointID)
		}
	}
	if len(ids) == 0 || !v.can(tenant.PermRedeliver) {
		return nil, nil
	}
	rows, err := db.Query(ctx, `select id from endpoints where project_id = $1 and id = any($2) and disabled_at is null and deleted_at is null`, v.project.ID, ids)
	if err != nil {
		return nil, fmt.Errorf("find endpoints that take deliveries: %w", err)
	}
	enabled, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("find endpoints that take deliveries: %w", err)
	}
	loads, err := readLoads(ctx, db, v.project.ID, enabled)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int, len(loads))
	for id, l := range loads {
		counts[id] = l.redeliverable()
	}
	return counts, nil
}
