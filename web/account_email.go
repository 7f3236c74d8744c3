package web

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// askNewAddress sends a link to the address that the visitor wants to move to.
func (s *Server) askNewAddress(c echo.Context) error {
	v, email := visitOf(c), c.Request().PostForm.Get("email")
	err := s.mailer.ConfirmAddress(c.Request().Context(), v.actor, v.user, email)
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return s.accountPage(c, http.StatusUnprocessableEntity, fieldProblems(invalid))
	}
	if err != nil {
		return err
	}
	if s.mailer.Captures() {
		return s.done(c, "This installation sends no mail: its admin finds the one with the link among the captured mails.", views.AccountURL())
	}
	return s.done(c, "A mail with a link is on its way to the new address. Until it is opened your account keeps its old one.", views.AccountURL())
}

// showConfirmAddress is what the link opens. Looking at it uses nothing up.
func (s *Server) showConfirmAddress(c echo.Context) error { return s.confirmAddressPage(c, nil) }

// confirmAddress uses the link.
func (s *Server) confirmAddress(c echo.Context) error {
	user, err := s.accounts.ChangeEmail(c.Request().Context(), c.Param("token"))
	if err != nil {
		return s.confirmAddressPage(c, err)
	}
	return s.done(c, "Your account has the address "+user.Email+" now.", views.AccountURL())
}

// confirmAddressPage shows the button, why it did not work, or that the link is spent.
func (s *Server) confirmAddressPage(c echo.Context, err error) error {
	p := views.ConfirmAddressProps{Layout: s.plainLayout(c, "Confirm your new address"), Token: c.Param("token")}
	status := http.StatusOK
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		p.Problem, status = conflict.Sentence, http.StatusConflict
	} else if err != nil {
		return err
	}
	link, err := s.accounts.Link(c.Request().Context(), tenant.LinkChangeEmail, p.Token)
	if errors.As(err, &conflict) {
		p.Spent = true
		return s.page(c, http.StatusGone, views.ConfirmAddress(p))
	}
	if err != nil {
		return err
	}
	p.Email = link.Detail.Email
	return s.page(c, status, views.ConfirmAddress(p))
}
