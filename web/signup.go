package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// showSignUp asks for the address of a new account. Where nobody can sign up there is no such page.
func (s *Server) showSignUp(c echo.Context) error {
	if s.signUpClosed {
		return echo.ErrNotFound
	}
	if visitOf(c).known() {
		return redirect(c, views.HomeURL())
	}
	return s.signUpPage(c, http.StatusOK, views.SignUpProps{Sent: c.QueryParam("sent") != ""})
}

func (s *Server) signUpPage(c echo.Context, status int, p views.SignUpProps) error {
	p.Layout, p.OIDCName = s.plainLayout(c, "Sign up"), s.oidcName()
	p.SentNote = "Unless the address has an account already, a mail with a link is on its way to it. The link works for a day."
	if s.mailer.Captures() {
		p.SentNote = "Unless the address has an account already, a link is made that confirms it. This installation sends no mail: its admin hands the link to you. It works for a day."
	}
	return s.page(c, status, views.SignUp(p))
}

// signUp notes that somebody wants an account. The answer is the same whether the address has one or not.
func (s *Server) signUp(c echo.Context) error {
	if s.signUpClosed {
		return echo.ErrNotFound
	}
	ctx, email := c.Request().Context(), c.Request().PostForm.Get("email")
	user, err := s.accounts.SignUp(ctx, email, c.RealIP(), func(tx pgx.Tx, u tenant.User) error {
		if u.EmailConfirmedAt != nil {
			return nil
		}
		return s.mailer.ConfirmTx(ctx, tx, u)
	})
	var invalid *store.InvalidError
	var throttled *tenant.ThrottledError
	switch {
	case errors.As(err, &invalid):
		return s.signUpPage(c, http.StatusUnprocessableEntity, views.SignUpProps{Email: email, Problems: fieldProblems(invalid)})
	case errors.As(err, &throttled):
		c.Response().Header().Set(echo.HeaderRetryAfter, strconv.Itoa(wholeSeconds(throttled.RetryAfter)))
		return s.signUpPage(c, http.StatusTooManyRequests, views.SignUpProps{Email: email, Problems: map[string]string{"": throttled.Error()}})
	case err != nil:
		return err
	}
	if user.EmailConfirmedAt == nil && s.mailer.Captures() {
		if err := s.logConfirmation(ctx, user); err != nil {
			return err
		}
	}
	return redirect(c, views.SignUpSentURL())
}

// logConfirmation makes a link and writes it to the log, where whoever runs an installation without mail finds it. An admin can
// make another on the page System.
func (s *Server) logConfirmation(ctx context.Context, user tenant.User) error {
	link, err := s.confirmationLink(ctx, user.ID)
	if err != nil {
		return err
	}
	// A warning, for somebody must act on it, and logs of less are often off.
	s.log.WarnContext(ctx, "somebody signed up; hand this link to the owner of the address", "user_id", user.ID, "link", link)
	return nil
}

func (s *Server) confirmationLink(ctx context.Context, userID string) (string, error) {
	token, err := s.accounts.ConfirmationLink(ctx, userID)
	if err != nil {
		return "", err
	}
	return s.publicURL.String() + views.ConfirmURL(token), nil
}

// showConfirm is what a confirmation link opens. Looking at it uses nothing up.
func (s *Server) showConfirm(c echo.Context) error {
	_, err := s.accounts.Link(c.Request().Context(), tenant.LinkConfirmEmail, c.Param("token"))
	return s.confirmPage(c, err)
}

// confirm uses the link: the address is the user's, who has this password and is logged in from now on.
func (s *Server) confirm(c echo.Context) error {
	user, err := s.accounts.ConfirmEmail(c.Request().Context(), c.Param("token"), c.Request().PostForm.Get("password"))
	if err != nil {
		return s.confirmPage(c, err)
	}
	if err := s.logIn(c, user); err != nil {
		return err
	}
	return s.done(c, "Your address is confirmed. Create a project, or ask to join one.", views.ProjectsURL())
}

// confirmPage shows the form, what is wrong with it, or that the link is spent.
func (s *Server) confirmPage(c echo.Context, err error) error {
	p := views.ConfirmProps{Layout: s.plainLayout(c, "Confirm your e-mail"), Token: c.Param("token"), CanSignUp: !s.signUpClosed}
	status := http.StatusOK
	var conflict *store.ConflictError
	var invalid *store.InvalidError
	switch {
	case errors.As(err, &conflict):
		p.Spent = true
		return s.page(c, http.StatusGone, views.Confirm(p))
	case errors.As(err, &invalid):
		p.Problems, status = fieldProblems(invalid), http.StatusUnprocessableEntity
	case err != nil:
		return err
	}
	ctx := c.Request().Context()
	link, err := s.accounts.Link(ctx, tenant.LinkConfirmEmail, p.Token)
	if err != nil {
		return err
	}
	user, err := tenant.UserByID(ctx, s.pool, link.UserID)
	if err != nil {
		return err
	}
	p.Email = user.Email
	return s.page(c, status, views.Confirm(p))
}

// linkForAdmin makes a new confirmation link for somebody who waits, and shows it, this once.
func (s *Server) linkForAdmin(c echo.Context) error {
	ctx := c.Request().Context()
	user, err := tenant.UserByID(ctx, s.pool, c.Param("id"))
	if err != nil {
		return err
	}
	// Noted before it is made: whoever holds the link gets the account.
	if err := tenant.Audit(ctx, s.pool, visitOf(c).actor, "user.make_link", "user", user.ID, map[string]any{"email": user.Email}); err != nil {
		return err
	}
	link, err := s.confirmationLink(ctx, user.ID)
	if err != nil {
		return err
	}
	l, err := s.layout(c, "Confirmation link", views.SectionAdminSystem)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.ShownOnce(views.SecretProps{Layout: l, Title: "Confirmation link", Label: "Link for " + user.Email, Value: link,
		Note:    "Whoever opens it within a day chooses the password of this account. Hand it only to the owner of the address.",
		NextURL: views.AdminSystemURL(), NextLabel: "Back to System"}))
}
