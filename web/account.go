package web

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// showAccount lists where the visitor is logged in.
func (s *Server) showAccount(c echo.Context) error { return s.accountPage(c, http.StatusOK, nil) }

func (s *Server) accountPage(c echo.Context, status int, problems map[string]string) error {
	ctx, v := c.Request().Context(), visitOf(c)
	l, err := s.layout(c, "Account", "")
	if err != nil {
		return err
	}
	sessions, err := tenant.ListSessions(ctx, s.pool, v.user.ID)
	if err != nil {
		return err
	}
	own := tenant.SessionID(s.sessions.Token(ctx))
	p := presentAccount(l, v.user, s.oidcName(), sessions, own, problems)
	if problems["email"] != "" {
		p.NewEmail = c.Request().PostForm.Get("email")
	}
	return s.page(c, status, views.Account(p))
}

// changePassword sets the visitor's own password; every other session ends.
func (s *Server) changePassword(c echo.Context) error {
	ctx, v, form := c.Request().Context(), visitOf(c), c.Request().PostForm
	err := s.accounts.ChangePassword(ctx, v.user, form.Get("current"), form.Get("password"), c.RealIP(), s.sessions.Token(ctx))
	var invalid *store.InvalidError
	var throttled *tenant.ThrottledError
	switch {
	case errors.As(err, &invalid):
		problems := fieldProblems(invalid)
		if sentence := problems["currentPassword"]; sentence != "" {
			problems["current"] = sentence
		}
		return s.accountPage(c, http.StatusUnprocessableEntity, problems)
	case errors.As(err, &throttled):
		return s.accountPage(c, http.StatusTooManyRequests, map[string]string{"": throttled.Error()})
	case err != nil:
		return err
	}
	return s.done(c, "The password was changed. Every other session was logged out.", views.AccountURL())
}

// revokeSession logs one of the visitor's other sessions out.
func (s *Server) revokeSession(c echo.Context) error {
	if err := tenant.RevokeSession(c.Request().Context(), s.pool, visitOf(c).actor, c.Param("id")); err != nil {
		return err
	}
	return s.done(c, "That session was logged out.", views.AccountURL())
}

// revokeOtherSessions logs every session out but this one.
func (s *Server) revokeOtherSessions(c echo.Context) error {
	ctx := c.Request().Context()
	n, err := tenant.RevokeOtherSessions(ctx, s.pool, visitOf(c).actor, s.sessions.Token(ctx))
	if err != nil {
		return err
	}
	return s.done(c, plural(int(n), "other session was", "other sessions were")+" logged out.", views.AccountURL())
}
