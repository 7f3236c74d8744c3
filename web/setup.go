package web

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// showSetUp is what the one-time link of a first start opens. Looking at it uses nothing up.
func (s *Server) showSetUp(c echo.Context) error {
	_, err := s.accounts.Link(c.Request().Context(), tenant.LinkSetUp, c.Param("token"))
	return s.setUpPage(c, err, views.SetUpProps{})
}

// setUp makes the first admin and logs them in.
func (s *Server) setUp(c echo.Context) error {
	form := c.Request().PostForm
	user, err := s.accounts.SetUp(c.Request().Context(), c.Param("token"), form.Get("email"), form.Get("password"))
	if err != nil {
		return s.setUpPage(c, err, views.SetUpProps{Email: form.Get("email")})
	}
	if err := s.logIn(c, user); err != nil {
		return err
	}
	if err := s.tell(c, views.Flash{Text: "You are the admin of this installation. Create a first project to go on."}); err != nil {
		return err
	}
	return redirect(c, views.ProjectsURL())
}

// setUpPage shows the form, what is wrong with it, or that the link is spent.
func (s *Server) setUpPage(c echo.Context, err error, p views.SetUpProps) error {
	p.Layout, p.Token = s.plainLayout(c, "Set up"), c.Param("token")
	hasAdmin, failed := tenant.AdminExists(c.Request().Context(), s.pool)
	if failed != nil {
		return failed
	}
	if hasAdmin {
		p.HasAdmin = true
		return s.page(c, http.StatusGone, views.SetUp(p))
	}
	var conflict *store.ConflictError
	var invalid *store.InvalidError
	switch {
	case err == nil:
		return s.page(c, http.StatusOK, views.SetUp(p))
	case errors.As(err, &conflict):
		p.Spent = true
		return s.page(c, http.StatusGone, views.SetUp(p))
	case errors.As(err, &invalid):
		p.Problems = fieldProblems(invalid)
		return s.page(c, http.StatusUnprocessableEntity, views.SetUp(p))
	default:
		return err
	}
}
