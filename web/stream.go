package web

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

const (
	// streamsPerSession is how many pages of one browser may be told of changes; further ones ask by themselves.
	streamsPerSession = 6
	// streamsPerSessionHTTP1 leaves some of the six connections that a browser opens to one host over HTTP/1.1 for pages.
	streamsPerSessionHTTP1 = 4
	// heartbeatEvery keeps a quiet stream from being cut, and is how soon it ends with its session.
	heartbeatEvery = 15 * time.Second
)

// changedLine is the hint.
const changedLine = "data: changed\n\n"

// pulseMark stands for a pulse in a stream's address, so that a stream knows what its page has seen.
func pulseMark(pulse string) string {
	sum := sha256.Sum256([]byte(pulse))
	return hex.EncodeToString(sum[:8])
}

// stream sends a hint whenever something in the project changed: the line "data: changed", and never what it was. The page
// then fetches its own parts, with the rights of that moment.
func (s *Server) stream(c echo.Context) error {
	v, w := visitOf(c), c.Response()
	session := s.sessions.Token(c.Request().Context())
	most := streamsPerSession
	if c.Request().ProtoMajor < 2 {
		most = streamsPerSessionHTTP1
	}
	pulse, err := s.hints.pulse(c.Request().Context(), v.project.ID)
	if err != nil {
		return err
	}
	watcher, ok := s.hints.watch(v.project.ID, session, pulse, most)
	if !ok {
		return c.NoContent(http.StatusNoContent) // An EventSource takes this as the end; the page then asks by itself.
	}
	defer s.hints.leave(watcher)

	control := http.NewResponseController(w.Writer)
	// A stream outlives the server's limit for an answer. Where the connection has none to lift, this is no loss.
	_ = control.SetWriteDeadline(time.Time{})
	private(c)
	w.Header().Set(echo.HeaderContentType, "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)

	heartbeat := time.NewTicker(s.heartbeat)
	defer heartbeat.Stop()
	line := ": here\n\n"
	if since := c.QueryParam("since"); since != "" && since != pulseMark(pulse) {
		line = changedLine // Between the page and its stream, or while the stream was cut.
	}
	for {
		if _, err := io.WriteString(w, line); err != nil {
			return nil // The page is gone.
		}
		if err := control.Flush(); err != nil {
			return nil
		}
		select {
		case <-c.Request().Context().Done():
			return nil
		case <-s.hints.done:
			return nil
		case <-watcher.changed:
			line = changedLine
		case <-heartbeat.C:
			if over, err := s.sessionOver(c, session, v); over || err != nil {
				return err
			}
			line = ": still here\n\n"
		}
	}
}

// sessionOver tells whether the stream's session has ended meanwhile, or its user has left the project.
func (s *Server) sessionOver(c echo.Context, session string, v *visit) (bool, error) {
	ctx := c.Request().Context()
	_, alive, err := s.sessionStore.FindCtx(ctx, session)
	if err != nil || !alive {
		return !alive, err
	}
	_, err = tenant.ActorInProject(ctx, s.pool, v.user.ID, v.project.ID)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return false, err
}
