package web

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// readyTimeout is how long the database may take to answer before this node counts as not ready.
const readyTimeout = 2 * time.Second

// livez says that the process serves requests.
func (s *Server) livez(c echo.Context) error { return c.String(http.StatusOK, "ok\n") }

// readyz says that requests can be served: the database answers and the server is not closing.
func (s *Server) readyz(c echo.Context) error {
	if s.closing.Load() {
		return c.String(http.StatusServiceUnavailable, "closing\n")
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
	defer cancel()
	if err := s.pool.Ping(ctx); err != nil {
		s.log.WarnContext(ctx, "not ready: the database does not answer", "error", err)
		return c.String(http.StatusServiceUnavailable, "the database does not answer\n")
	}
	return c.String(http.StatusOK, "ok\n")
}
