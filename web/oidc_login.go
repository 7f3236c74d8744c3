package web

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// exchangeLife is how long somebody may take at the identity provider.
const exchangeLife = 10 * time.Minute

// The keys of a session's values while its browser is at the identity provider.
const (
	sessionState    = "oidc_state"
	sessionNonce    = "oidc_nonce"
	sessionVerifier = "oidc_verifier"
	sessionNext     = "oidc_next"
)

// maxProviderError bounds what is logged of a failure: it may hold what the provider answered.
const maxProviderError = 500

var (
	errOtherBrowser = errors.New("the log-in was not begun in this browser, or too long ago")
	errNoAccount    = errors.New("nobody has an account for the address, and nobody can sign up")
)

// oidcName is what the log-in page calls the identity provider, "" where there is none.
func (s *Server) oidcName() string { return s.provider.name() }

// beginOIDC sends the browser to the identity provider. What it must bring back waits in the session.
func (s *Server) beginOIDC(c echo.Context) error {
	next := nextPage(c.QueryParam("next"))
	switch {
	case s.provider == nil:
		return echo.ErrNotFound
	case visitOf(c).known():
		return redirect(c, next)
	}
	ctx, e := c.Request().Context(), newExchange()
	to, err := s.provider.begin(ctx, e)
	if err != nil {
		return s.refuseOIDC(c, err, next)
	}
	for key, value := range map[string]string{sessionState: e.state, sessionNonce: e.nonce, sessionVerifier: e.verifier, sessionNext: next} {
		s.sessions.Put(ctx, key, value)
	}
	s.sessions.SetDeadline(ctx, time.Now().Add(exchangeLife))
	if err := s.saveSession(c); err != nil {
		return err
	}
	return redirect(c, to)
}

// endOIDC is where the identity provider sends the browser back to. What waited in the session is used up, whatever comes of it.
func (s *Server) endOIDC(c echo.Context) error {
	if s.provider == nil {
		return echo.ErrNotFound
	}
	ctx := c.Request().Context()
	e := exchange{state: s.sessions.PopString(ctx, sessionState), nonce: s.sessions.PopString(ctx, sessionNonce), verifier: s.sessions.PopString(ctx, sessionVerifier)}
	next := nextPage(s.sessions.PopString(ctx, sessionNext))
	if e.state == "" {
		if visitOf(c).known() { // The page was loaded again after the log-in.
			return redirect(c, next)
		}
		return s.refuseOIDC(c, errOtherBrowser, next)
	}
	if err := s.saveSession(c); err != nil {
		return err
	}
	user, err := s.endExchange(ctx, c, e)
	if err != nil {
		return s.refuseOIDC(c, err, next)
	}
	if err := s.logIn(c, user); err != nil {
		return err
	}
	return redirect(c, next)
}

// endExchange checks what the browser brought back, and returns the user whom the provider vouches for.
func (s *Server) endExchange(ctx context.Context, c echo.Context, e exchange) (tenant.User, error) {
	if subtle.ConstantTimeCompare([]byte(c.QueryParam("state")), []byte(e.state)) != 1 {
		return tenant.User{}, errOtherBrowser
	}
	// RFC 9207: a provider that names itself must be the one that was asked.
	if iss := c.QueryParam("iss"); iss != "" && iss != s.provider.settings.Issuer {
		return tenant.User{}, errOtherBrowser
	}
	if c.QueryParam("error") != "" || c.QueryParam("code") == "" {
		return tenant.User{}, errProviderRefused
	}
	email, err := s.provider.end(ctx, e, c.QueryParam("code"))
	if err != nil {
		return tenant.User{}, err
	}
	if s.signUpClosed {
		if _, err := tenant.UserByEmail(ctx, s.pool, email); errors.Is(err, store.ErrNotFound) {
			return tenant.User{}, errNoAccount
		} else if err != nil {
			return tenant.User{}, err
		}
	}
	return s.accounts.LogInVerified(ctx, email, s.provider.settings.Issuer)
}

// refuseOIDC shows the log-in page with what went wrong, and leaves the details to the log.
func (s *Server) refuseOIDC(c echo.Context, err error, next string) error {
	name := s.provider.name()
	var invalid *store.InvalidError
	var sentence string
	status := http.StatusForbidden
	switch {
	case errors.Is(err, errProviderSilent):
		sentence, status = name+" does not answer as it should right now. Try again in a moment.", http.StatusServiceUnavailable
	case errors.Is(err, errProviderRefused):
		sentence = name + " did not let you in. Begin again, or ask whoever runs it."
	case errors.Is(err, errTokenRefused):
		sentence = "The answer of " + name + " cannot be trusted, so you were not logged in. Begin again."
	case errors.Is(err, errEmailNotVerified):
		sentence = name + " does not say that your e-mail address is verified. Verify it there, then begin again."
	case errors.Is(err, errOtherBrowser):
		sentence = "This log-in was begun in another browser, or too long ago. Begin again."
	case errors.Is(err, errNoAccount):
		sentence = "There is no account for your address here. Ask the admin of this installation for one."
	case errors.As(err, &invalid):
		sentence = name + " names an e-mail address that cannot be used here: " + firstSentence(invalid)
	default:
		return err
	}
	s.log.WarnContext(c.Request().Context(), "a log-in by the identity provider failed", "request_id", requestIDOf(c), "error", firstRunes(err.Error(), maxProviderError))
	return s.loginPage(c, status, views.LoginProps{Problem: sentence, Next: next})
}
