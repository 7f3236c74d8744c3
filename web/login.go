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
	return s.loginPage(c, http.StatusOK, views.LoginProps{Next: next})
}

func (s *Server) loginPage(c echo.Context, status int, p views.LoginProps) error {
	p.Layout, p.OIDCName, p.CanSignUp = s.plainLayout(c, "Log in"), s.oidcName(), !s.signUpClosed
	return s.page(c, status, views.Login(p))
}

// login lets a user in. An unknown address, a wrong password and an unconfirmed account get the same sentence in the same time.
func (s *Server) login(c echo.Context) error {
	form := c.Request().PostForm
	email, next := form.Get("email"), nextPage(form.Get("next"))
	user, err := s.accounts.Authenticate(c.Request().Context(), email, form.Get("password"), c.RealIP())
	props := views.LoginProps{Email: email, Next: next}
	var throttled *tenant.ThrottledError
	switch {
	case errors.Is(err, tenant.ErrWrongLogin):
		props.Problem = "The e-mail address or the password is wrong."
		return s.loginPage(c, http.StatusUnprocessableEntity, props)
	case errors.As(err, &throttled):
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(wholeSeconds(throttled.RetryAfter)))
		props.Problem = throttled.Error()
		return s.loginPage(c, http.StatusTooManyRequests, props)
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
