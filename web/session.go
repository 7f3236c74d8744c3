package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"

	"entrega/internal/tenant"
	"entrega/views"
)

const (
	sessionIdle     = 12 * time.Hour
	sessionLifetime = 14 * 24 * time.Hour
	// sessionTouch is how exactly idleness is measured: a session in use is written this often at most.
	sessionTouch = time.Minute
	// maxUserAgent bounds what is kept of a browser's name.
	maxUserAgent = 200
)

// The keys of a session's values beside those of package tenant.
const (
	sessionSeen        = "seen" // unix seconds of the last touch
	sessionFlash       = "flash"
	sessionFlashFailed = "flash_failed"
)

// newSessions sets up the session manager. With https the cookie's name starts with __Host-, which makes browsers insist on
// Secure, on Path=/ and on no Domain, so that no neighbouring host can set it.
func newSessions(store scs.CtxStore, secure bool) *scs.SessionManager {
	m := scs.New()
	m.Store = store
	m.IdleTimeout = sessionIdle
	m.Lifetime = sessionLifetime
	m.Cookie.Name = "entrega"
	if secure {
		m.Cookie.Name = "__Host-entrega"
	}
	m.Cookie.Secure = secure
	m.Cookie.HttpOnly = true
	m.Cookie.SameSite = http.SameSiteLaxMode
	m.Cookie.Path = "/"
	m.Cookie.Persist = true
	return m
}

// loadSession puts the request's session into its context. A request that a page makes by itself, without its reader, does
// not count as use.
func (s *Server) loadSession(c echo.Context) error {
	c.Response().Header().Add(echo.HeaderVary, "Cookie")
	token := ""
	if cookie, err := c.Cookie(s.sessions.Cookie.Name); err == nil {
		token = cookie.Value
	}
	ctx, err := s.sessions.Load(c.Request().Context(), token)
	if err != nil {
		return fmt.Errorf("load the session: %w", err)
	}
	c.SetRequest(c.Request().WithContext(ctx))
	if s.sessions.GetString(ctx, tenant.SessionUserID) == "" || byItself(c.Request()) {
		return nil
	}
	now := time.Now().Unix() // The session's own clock is the machine's: scs and the store read it too.
	if now-s.sessions.GetInt64(ctx, sessionSeen) < int64(sessionTouch/time.Second) {
		return nil
	}
	s.sessions.Put(ctx, sessionSeen, now)
	return s.saveSession(c)
}

// byItself tells the requests that a page's script makes while nobody may be looking.
func byItself(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get(views.FragmentHeader) != "" || r.Header.Get("Accept") == "text/event-stream"
}

// saveSession stores the session and sends its cookie. It must come before the answer begins.
func (s *Server) saveSession(c echo.Context) error {
	ctx := c.Request().Context()
	token, expiry, err := s.sessions.Commit(ctx)
	if err != nil {
		return fmt.Errorf("save the session: %w", err)
	}
	c.Response().Header().Del(echo.HeaderSetCookie) // There is no other cookie than this one.
	s.sessions.WriteSessionCookie(ctx, c.Response(), token, expiry)
	return nil
}

// logIn makes the session the user's. Its token is a new one, so that nobody who planted the old one shares the session.
func (s *Server) logIn(c echo.Context, user tenant.User) error {
	ctx := c.Request().Context()
	if err := s.sessions.RenewToken(ctx); err != nil {
		return fmt.Errorf("renew the session: %w", err)
	}
	if err := s.sessions.Clear(ctx); err != nil {
		return fmt.Errorf("clear the session: %w", err)
	}
	s.sessions.Put(ctx, tenant.SessionUserID, user.ID)
	s.sessions.Put(ctx, tenant.SessionUserAgent, firstRunes(c.Request().UserAgent(), maxUserAgent))
	s.sessions.Put(ctx, tenant.SessionAddress, c.RealIP())
	s.sessions.Put(ctx, sessionSeen, time.Now().Unix())
	return s.saveSession(c)
}

// logOut ends the session and takes the cookie back.
func (s *Server) logOut(c echo.Context) error {
	ctx := c.Request().Context()
	if err := s.sessions.Destroy(ctx); err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	c.Response().Header().Del(echo.HeaderSetCookie)
	s.sessions.WriteSessionCookie(ctx, c.Response(), "", time.Time{})
	return nil
}

// tell keeps a sentence for the page that answers the action.
func (s *Server) tell(c echo.Context, flash views.Flash) error {
	ctx := c.Request().Context()
	s.sessions.Put(ctx, sessionFlash, flash.Text)
	s.sessions.Put(ctx, sessionFlashFailed, flash.Failed)
	return s.saveSession(c)
}

// told takes the kept sentence, once.
func (s *Server) told(c echo.Context) (views.Flash, error) {
	ctx := c.Request().Context()
	flash := views.Flash{Text: s.sessions.GetString(ctx, sessionFlash), Failed: s.sessions.GetBool(ctx, sessionFlashFailed)}
	if flash.Text == "" {
		return views.Flash{}, nil
	}
	s.sessions.Remove(ctx, sessionFlash)
	s.sessions.Remove(ctx, sessionFlashFailed)
	return flash, s.saveSession(c)
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}
