package web

import (
	"github.com/labstack/echo/v4"

	"entrega/internal/tenant"
	"entrega/static"
	"entrega/views"
)

// layout reads what a page needs besides its own content: the projects to switch to, the navigation, and the sentence that
// answers the last action. A request for parts of a page gets only what those parts can show.
func (s *Server) layout(c echo.Context, title string, section views.Section) (views.Layout, error) {
	l := s.plainLayout(c, title)
	l.Section = section
	v := visitOf(c)
	parts := c.Request().Header.Get(views.FragmentHeader)
	if parts == "" {
		projects, err := tenant.ListProjectsOf(c.Request().Context(), s.pool, v.user.ID)
		if err != nil {
			return l, err
		}
		l.Projects = presentProjects(projects, v)
	}
	if parts == "" || wants(parts, "flash") {
		flash, err := s.told(c)
		if err != nil {
			return l, err
		}
		l.Flash = flash
	}
	l.Nav = navigation(v)
	if err := s.countAlerts(c.Request().Context(), v, l.Nav); err != nil {
		return l, err
	}
	if v.project.ID != "" {
		l.Stream = views.StreamURL(v.project.ID) + "?since=" + v.seen
	}
	return l, nil
}

// plainLayout is what can be said of a page without asking the database.
func (s *Server) plainLayout(c echo.Context, title string) views.Layout {
	v := visitOf(c)
	l := views.Layout{
		Title:   title,
		Assets:  views.Assets{CSS: static.URL("panel.css"), JS: static.URL("panel.js"), Icon: static.URL("icon.svg")},
		Now:     s.now(),
		Project: views.Project{ID: v.project.ID, Name: v.project.Name},
		Path:    c.Request().URL.RequestURI(),
	}
	if v.known() {
		l.User = presentUser(v)
		l.Nav = navigation(v)
	}
	return l
}
