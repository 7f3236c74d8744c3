package web

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"entrega/views"
)

// page answers with a page, or with the parts of it that the request names. It is drawn before the answer begins, so that an
// error on the way is answered as one.
func (s *Server) page(c echo.Context, status int, page templ.Component) error {
	var b bytes.Buffer
	if err := views.Render(c.Request().Context(), &b, page, c.Request().Header.Get(views.FragmentHeader)); err != nil {
		return fmt.Errorf("draw a page: %w", err)
	}
	private(c)
	c.Response().Header().Add(echo.HeaderVary, views.FragmentHeader)
	return c.HTMLBlob(status, b.Bytes())
}

// private keeps an answer out of every cache: it may hold payloads, and must be gone after a log-out.
func private(c echo.Context) { c.Response().Header().Set(echo.HeaderCacheControl, "no-store") }

// redirect answers with 303: whatever was sent, the browser asks for the page there.
func redirect(c echo.Context, to string) error {
	private(c)
	return c.Redirect(http.StatusSeeOther, to)
}

// done answers an action that succeeded: back to the page it came from, which then says the sentence.
func (s *Server) done(c echo.Context, sentence, fallback string) error {
	if err := s.tell(c, views.Flash{Text: sentence}); err != nil {
		return err
	}
	return redirect(c, back(c, fallback))
}

// back is the page that a form came from, else the fallback.
func back(c echo.Context, fallback string) string {
	if to, ok := ownPath(c.Request().PostFormValue("return")); ok {
		return to
	}
	return fallback
}

// ownPath says whether an address that came with a request is a page of ours: a path, which no browser can read as another
// site (such as //evil.example or /\evil.example).
func ownPath(raw string) (string, bool) {
	if !strings.HasPrefix(raw, "/") || strings.HasPrefix(raw, "//") || strings.ContainsAny(raw, "\\") ||
		strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", false
	}
	u, err := url.Parse(raw)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil {
		return "", false
	}
	return raw, true
}

// broken ends an answer that has begun and cannot be finished. The server then closes the connection without the end of the
// body, which the receiver sees.
func (s *Server) broken(c echo.Context, err error) error {
	if err == nil || !c.Response().Committed {
		return err
	}
	s.log.WarnContext(c.Request().Context(), "an answer broke off", "request_id", requestIDOf(c), "route", c.Path(), "error", err)
	panic(http.ErrAbortHandler)
}
