package web

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// showAudit lists who did what in the project.
func (s *Server) showAudit(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	q := views.AuditFilterFrom(c.QueryParams())
	l, err := s.layout(c, "Audit", views.SectionAudit)
	if err != nil {
		return err
	}
	f := auditFilter(q)
	read := func(page store.Page) (store.List[tenant.AuditEntry], error) {
		return tenant.ListAudit(ctx, s.pool, v.project.ID, f, page)
	}
	list, err := collect(pageOf(q.After, q.Before), q.Before != "", read, auditMatches(v, q))
	if err != nil {
		return err
	}
	actors, err := s.auditActors(ctx, v)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.Audit(presentAudit(l, v, q, list, actors)))
}

// auditFilter is what the log's own statement knows of the query: an actor as kind:id, and an action.
func auditFilter(q views.AuditFilter) tenant.AuditFilter {
	kind, id, _ := strings.Cut(q.Actor, ":")
	return tenant.AuditFilter{Action: q.Action, ActorKind: tenant.ActorKind(kind), ActorID: id}
}

// auditMatches is the search, over subject and reason.
func auditMatches(v *visit, q views.AuditFilter) func(tenant.AuditEntry) bool {
	search := strings.ToLower(strings.TrimSpace(q.Query))
	return func(e tenant.AuditEntry) bool {
		return search == "" || strings.Contains(strings.ToLower(e.SubjectKind+" "+e.SubjectID+" "+auditNote(v, e)), search)
	}
}

// auditActors offers everybody who can act in the project now, and Entrega itself.
func (s *Server) auditActors(ctx context.Context, v *visit) ([]views.Option, error) {
	members, err := tenant.ListMembers(ctx, s.pool, v.project.ID)
	if err != nil {
		return nil, err
	}
	keys, err := tenant.ListAPIKeys(ctx, s.pool, v.project.ID)
	if err != nil {
		return nil, err
	}
	return presentActors(v, members, keys), nil
}

// exportAudit streams the log of the filter as CSV.
func (s *Server) exportAudit(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	q := views.AuditFilterFrom(c.QueryParams())
	matches := auditMatches(v, q)
	return s.exportCSV(c, "audit", auditColumns(), func(t table) error {
		return tenant.EachAudit(ctx, s.pool, v.project.ID, auditFilter(q), func(e tenant.AuditEntry) error {
			if !matches(e) {
				return nil
			}
			return t.row(strconv.FormatInt(e.ID, 10), cellTime(e.At), string(e.ActorKind), e.ActorID, actorWord(v, e), e.Action,
				e.SubjectKind, e.SubjectID, auditNote(v, e))
		})
	})
}

func auditColumns() []string {
	return []string{"id", "at", "actor_kind", "actor_id", "actor", "action", "subject_kind", "subject", "reason"}
}
