package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// showAllAudit lists who did what in the whole installation.
func (s *Server) showAllAudit(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	q := views.AuditFilterFrom(c.QueryParams())
	l, err := s.layout(c, "Installation audit", views.SectionAdminAudit)
	if err != nil {
		return err
	}
	read := func(page store.Page) (store.List[tenant.AuditEntry], error) {
		return tenant.ListInstallationAudit(ctx, s.pool, v.actor, auditFilter(q), page)
	}
	matches := func(e tenant.AuditEntry) bool {
		return auditMatches(v, q)(e) || strings.Contains(strings.ToLower(actorWord(v, e)), strings.ToLower(strings.TrimSpace(q.Query)))
	}
	list, err := collect(pageOf(q.After, q.Before), q.Before != "", read, matches)
	if err != nil {
		return err
	}
	names, err := projectNames(ctx, s.pool, list.Rows)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.AdminAudit(presentAllAudit(l, v, q, list, names)))
}

// projectNames reads the names of the projects that entries belong to, by id.
func projectNames(ctx context.Context, db store.DB, entries []tenant.AuditEntry) (map[string]string, error) {
	ids := make([]string, 0, len(entries))
	for _, e := range entries {
		ids = append(ids, e.ProjectID)
	}
	rows, err := db.Query(ctx, `select id, name from projects where id = any($1)`, ids)
	if err != nil {
		return nil, fmt.Errorf("read names of projects: %w", err)
	}
	names := map[string]string{}
	var id, name string
	if _, err := pgx.ForEachRow(rows, []any{&id, &name}, func() error { names[id] = name; return nil }); err != nil {
		return nil, fmt.Errorf("read names of projects: %w", err)
	}
	return names, nil
}
