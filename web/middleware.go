package web

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho"

	"entrega/internal/store"
	"entrega/static"
	"entrega/views"
)

const (
	// requestTimeout ends what a page asks of the database.
	requestTimeout = 30 * time.Second
	// formBytes bounds a form: an event's data of 256 KiB may take three times that in a form.
	formBytes = 1 << 20
	// gzipFrom is the size below which compression saves less than it costs.
	gzipFrom = 1 << 10
)

// contentSecurityPolicy lets a page load nothing but our own files (4-panel.md, "Assets").
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// use installs what every request passes, the outermost first.
func (s *Server) use() {
	s.echo.Use(
		requestID,
		s.logAccess,
		s.recovering,
		securityHeaders,
		s.refuseCrossing,
		readForm,
		refuseNoText,
		middleware.GzipWithConfig(middleware.GzipConfig{MinLength: gzipFrom, Skipper: uncompressed}),
		otelecho.Middleware("entrega", otelecho.WithSkipper(untraced)),
		answering, // What the router refuses: the tracing would answer it, and the log after that a second time.
	)
}

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// requestID names the request in the log, on error pages and in the answer. A well-formed id of the caller is kept.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(echo.HeaderXRequestID)
		if !requestIDPattern.MatchString(id) {
			id = store.NewID("req")
		}
		c.Response().Header().Set(echo.HeaderXRequestID, id)
		return next(c)
	}
}

func requestIDOf(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// logAccess writes one line per request, when it is answered. It names the route and never the path, query or address: they
// may hold tokens. Errors of the server are added by whoever turns them into an answer. Events that were taken are the rule and are
// logged for debugging only: the event says it as well.
func (s *Server) logAccess(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		started := time.Now()
		if err := next(c); err != nil {
			c.Error(err)
		}
		r, w := c.Request(), c.Response()
		if strings.HasPrefix(r.URL.Path, static.Prefix) && w.Status < 400 {
			return nil
		}
		level := slog.LevelInfo
		if w.Status < 300 && r.Method == http.MethodPost && (c.Path() == "/v1/events" || c.Path() == "/v1/events/batch") {
			level = slog.LevelDebug
		}
		if !s.log.Enabled(r.Context(), level) {
			return nil
		}
		attrs := []any{"request_id", requestIDOf(c), "method", r.Method, "route", c.Path(), "status", w.Status,
			"ms", time.Since(started).Milliseconds(), "bytes", w.Size}
		if v := visitOf(c); v.known() {
			attrs = append(attrs, "user_id", v.user.ID, "project_id", v.project.ID)
		}
		s.log.Log(r.Context(), level, "request", attrs...)
		return nil
	}
}

// recovering turns a panic into an error, which is logged with its stack and answered like any other.
func (s *Server) recovering(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler {
				panic(p)
			}
			s.log.ErrorContext(c.Request().Context(), "a handler panicked", "request_id", requestIDOf(c), "panic", fmt.Sprint(p),
				"stack", string(debug.Stack()))
			err = errPanicked
		}()
		return next(c)
	}
}

// answering turns an error into its answer while the request still has its session and its time: what is around it puts the
// first request back.
func answering(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			c.Error(err)
		}
		return nil
	}
}

func securityHeaders(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		return next(c)
	}
}

// refuseCrossing refuses what another site makes a browser send. The API is not concerned: no browser sends its keys by itself.
func (s *Server) refuseCrossing(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if isAPI(c.Request()) {
			return next(c)
		}
		if err := s.crossing.Check(c.Request()); err != nil {
			return errCrossing
		}
		return next(c)
	}
}

// readForm reads a posted form before its handler does, so that one which is too large or malformed is refused, not half read.
func readForm(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if isAPI(r) || r.Method == http.MethodGet || r.Method == http.MethodHead {
			return next(c)
		}
		r.Body = http.MaxBytesReader(c.Response(), r.Body, formBytes)
		if err := r.ParseForm(); err != nil {
			return fmt.Errorf("%w: %w", errBadForm, err)
		}
		return next(c)
	}
}

// refuseNoText refuses what no text column can be compared with, in the address and in the form; checkAddress says the same of
// the API. It comes after readForm.
func refuseNoText(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if isAPI(r) {
			return next(c)
		}
		if err := checkAddress(r.URL); err != nil {
			return err
		}
		for name, values := range r.PostForm {
			if slices.ContainsFunc(values, func(v string) bool { return !isText(v) }) {
				return store.Invalid(strings.ToValidUTF8(name, "\uFFFD"), "Give UTF-8 text without NUL characters.")
			}
		}
		return next(c)
	}
}

func withTimeout(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), requestTimeout)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}

func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/v1" }

// uncompressed are answers that are compressed already or must leave at once.
func uncompressed(c echo.Context) bool {
	r := c.Request()
	return isAPI(r) || strings.HasPrefix(r.URL.Path, static.Prefix) || strings.HasSuffix(r.URL.Path, "/stream") || r.Method == http.MethodHead
}

// untraced are requests whose path holds a token, and those that say nothing.
func untraced(c echo.Context) bool {
	path := c.Request().URL.Path
	for _, prefix := range []string{"/setup/", "/confirm/", views.OIDCLoginURL(), static.Prefix, "/livez", "/readyz"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return strings.HasSuffix(path, "/stream")
}
