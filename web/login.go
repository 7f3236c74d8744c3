package web

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"entrega/internal/tenant"
	"entrega/views"
)

// showLogin asks who is there; who is logged in already goes on.
func (s *Server) showLogin(c echo.Context) error {
	next := nextPage(c.QueryParam("next"))
	if visitOf(c).known() {
		return redirect(c, next)
	}
	return s.page(c, http.StatusOK, views.Login(views.LoginProps{Layout: s.plainLayout(c, "Log in"), Next: next}))
}

// login lets a user in. An unknown address, a wrong password and an unconfirmed account get the same sentence in the same time.
func (s *Server) login(c echo.Context) error {
	form := c.Request().PostForm
	email, next := form.Get("email"), nextPage(form.Get("next"))
	user, err := s.accounts.Authenticate(c.Request().Context(), email, form.Get("password"), c.RealIP())
	props := views.LoginProps{Layout: s.plainLayout(c, "Log in"), Email: email, Next: next}
	var throttled *tenant.ThrottledError
	switch {
	case errors.Is(err, tenant.ErrWrongLogin):
		props.Problem = "The e-mail address or the password is wrong."
		return s.page(c, http.StatusUnprocessableEntity, views.Login(props))
	case errors.As(err, &throttled):
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(wholeSeconds(throttled.RetryAfter)))
		props.Problem = throttled.Error()
		return s.page(c, http.StatusTooManyRequests, views.Login(props))
	case err != nil:
		return err
	}
	if err := s.logIn(c, user); err != nil {
		return err
	}
	return redirect(c, next)
}

// logout ends the session, here and for every stream of it.
func (s *Server) logout(c echo.Context) error {
	if err := s.logOut(c); err != nil {
		return err
	}
	return redirect(c, views.LoginURL())
}

// nextPage is where a log-in leads: a page of ours, else the first one.
func nextPage(raw string) string {
	if to, ok := ownPath(raw); ok {
		return to
	}
	return views.HomeURL()
}
