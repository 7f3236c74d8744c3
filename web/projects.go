package web

import (
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"entrega/internal/alerts"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// home leads to the project of who has just one, else to the list.
func (s *Server) home(c echo.Context) error {
	projects, err := tenant.ListProjectsOf(c.Request().Context(), s.pool, visitOf(c).user.ID)
	if err != nil {
		return err
	}
	if len(projects) == 1 {
		return redirect(c, views.OverviewURL(projects[0].ID))
	}
	return redirect(c, views.ProjectsURL())
}

func (s *Server) showProjects(c echo.Context) error {
	return s.projectsPage(c, http.StatusOK, views.ProjectsProps{})
}

// projectsPage shows the projects of the visitor, with the forms as they were filled in.
func (s *Server) projectsPage(c echo.Context, status int, props views.ProjectsProps) error {
	ctx, v := c.Request().Context(), visitOf(c)
	var err error
	if props.Layout, err = s.layout(c, "Projects", ""); err != nil {
		return err
	}
	projects, err := tenant.ListProjectsOf(ctx, s.pool, v.user.ID)
	if err != nil {
		return err
	}
	last, err := lastEvents(ctx, s.pool, projectIDs(projects))
	if err != nil {
		return err
	}
	open, err := alerts.CountOpenOf(ctx, s.pool, projectIDs(projects))
	if err != nil {
		return err
	}
	requests, err := tenant.ListAccessRequestsOf(ctx, s.pool, v.user.ID)
	if err != nil {
		return err
	}
	presentProjectList(&props, projects, last, open, requests)
	return s.page(c, status, views.Projects(props))
}

// createProject makes a project with the visitor as its owner.
func (s *Server) createProject(c echo.Context) error {
	v, name := visitOf(c), c.Request().PostForm.Get("name")
	project, err := tenant.CreateProject(c.Request().Context(), s.pool, v.actor, tenant.NewProject{Name: name, OwnerID: v.user.ID})
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return s.projectsPage(c, http.StatusUnprocessableEntity, views.ProjectsProps{Name: name, NameProblem: invalid.Sentence("name")})
	}
	if err != nil {
		return err
	}
	if err := s.tell(c, views.Flash{Text: "Project " + project.Name + " was created. You are its owner."}); err != nil {
		return err
	}
	return redirect(c, views.OverviewURL(project.ID))
}

// requestAccess asks the owners of a project to let the visitor in. A project that does not exist is told at its field: who
// has an id was given it.
func (s *Server) requestAccess(c echo.Context) error {
	v, form := visitOf(c), c.Request().PostForm
	project := form.Get("project")
	_, err := tenant.RequestAccess(c.Request().Context(), s.pool, v.actor, project, form.Get("reason"),
		func(tx pgx.Tx, r tenant.AccessRequest) error {
			return s.mailer.NotifyOwnersTx(c.Request().Context(), tx, r, s.publicURL.String()+views.TeamURL(project))
		})
	var invalid *store.InvalidError
	var conflict *store.ConflictError
	problem := ""
	switch {
	case errors.Is(err, store.ErrNotFound):
		problem = "There is no project with this id."
	case errors.As(err, &conflict):
		problem = conflict.Sentence
	case errors.As(err, &invalid):
		problem = firstSentence(invalid)
	case err != nil:
		return err
	default:
		return s.done(c, "Your request waits for an owner of the project to decide.", views.ProjectsURL())
	}
	return s.projectsPage(c, http.StatusUnprocessableEntity, views.ProjectsProps{RequestProject: project, RequestProblem: problem})
}
