package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"entrega/internal/alerts"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// showAllProjects lists every project of the installation.
func (s *Server) showAllProjects(c echo.Context) error {
	return s.allProjectsPage(c, http.StatusOK, views.AdminProjectsProps{Owner: visitOf(c).user.Email})
}

// allProjectsPage shows the list, with the form for a new project as it was filled in.
func (s *Server) allProjectsPage(c echo.Context, status int, p views.AdminProjectsProps) error {
	ctx, v := c.Request().Context(), visitOf(c)
	var err error
	if p.Layout, err = s.layout(c, "All projects", views.SectionAdminProjects); err != nil {
		return err
	}
	p.Query = strings.TrimSpace(c.QueryParam("q"))
	list, err := tenant.ListProjects(ctx, s.pool, v.actor, p.Query, pageOf(c.QueryParam("after"), c.QueryParam("before")))
	if err != nil {
		return err
	}
	figures, err := readProjectFigures(ctx, s.pool, list.Rows)
	if err != nil {
		return err
	}
	presentAllProjects(&p, list, figures)
	return s.page(c, status, views.AdminProjects(p))
}

// createProjectFor makes a project for somebody who has an account.
func (s *Server) createProjectFor(c echo.Context) error {
	ctx, form := c.Request().Context(), c.Request().PostForm
	p := views.AdminProjectsProps{Name: form.Get("name"), Owner: form.Get("owner")}
	project, err := s.createFor(ctx, visitOf(c).actor, p.Name, p.Owner)
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		p.Problems = fieldProblems(invalid)
		return s.allProjectsPage(c, http.StatusUnprocessableEntity, p)
	}
	if err != nil {
		return err
	}
	if err := s.tell(c, views.Flash{Text: "Project " + project.Name + " was created. Its owner is " + p.Owner + "."}); err != nil {
		return err
	}
	return redirect(c, views.OverviewURL(project.ID))
}

func (s *Server) createFor(ctx context.Context, actor tenant.Actor, name, email string) (tenant.Project, error) {
	owner, err := tenant.UserByEmail(ctx, s.pool, email)
	if errors.Is(err, store.ErrNotFound) || err == nil && owner.EmailConfirmedAt == nil {
		return tenant.Project{}, store.Invalid("owner", "Nobody with this e-mail address has an account here yet.")
	}
	if err != nil {
		return tenant.Project{}, err
	}
	return tenant.CreateProject(ctx, s.pool, actor, tenant.NewProject{Name: name, OwnerID: owner.ID})
}

// projectFigures are what the admin's list tells of one project.
type projectFigures struct {
	endpoints, disabled int
	openAlerts          int
	lastEvent           time.Time
}

// readProjectFigures takes a few lookups along indexes per project of a page.
func readProjectFigures(ctx context.Context, db store.DB, projects []tenant.ProjectSummary) (map[string]projectFigures, error) {
	ids := make([]string, len(projects))
	for i, p := range projects {
		ids[i] = p.ID
	}
	open, err := alerts.CountOpenOf(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, `
		select p.id, e.total, e.disabled, (select created_at from events where project_id = p.id order by created_at desc, seq desc limit 1)
		from unnest($1::text[]) as p (id)
		cross join lateral (
			select count(*) as total, count(*) filter (where disabled_at is not null) as disabled
			from endpoints where project_id = p.id and deleted_at is null
		) e`, ids)
	if err != nil {
		return nil, fmt.Errorf("read the figures of projects: %w", err)
	}
	figures := make(map[string]projectFigures, len(ids))
	var id string
	var f projectFigures
	var last *time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &f.endpoints, &f.disabled, &last}, func() error {
		f.lastEvent, f.openAlerts = orZero(last), open[id]
		figures[id] = f
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the figures of projects: %w", err)
	}
	return figures, nil
}
