package web

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// visit is who makes a request, as what, and in which project. It lives as long as the request.
type visit struct {
	// user is zero for a stranger.
	user tenant.User
	// actor acts in project, or outside any when the route has none.
	actor   tenant.Actor
	project tenant.Project
	// seen marks the project's pulse from before the page was read, for its stream; empty where the answer opens none.
	seen string
}

const visitKey = "visit"

// visitOf returns the request's visit; a stranger's where the request came before any guard.
func visitOf(c echo.Context) *visit {
	if v, ok := c.Get(visitKey).(*visit); ok {
		return v
	}
	return &visit{}
}

func (v *visit) known() bool { return v.user.ID != "" }

// can asks what the page may offer. The domain asks again when it is done.
func (v *visit) can(p tenant.Permission) bool { return v.actor.Can(p) }

// guard lets in who may use the route, and leaves a visit for the handler.
func (s *Server) guard(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.loadSession(c); err != nil {
			return err
		}
		v := &visit{}
		c.Set(visitKey, v)
		if err := s.recognise(c, v); err != nil {
			return err
		}
		if r.access == anyone {
			return r.handle(c)
		}
		if !v.known() {
			return s.askToLogIn(c)
		}
		if err := s.admit(c, v, r); err != nil {
			return err
		}
		return r.handle(c)
	}
}

// recognise reads the session's user. A session of a user who is no more ends.
func (s *Server) recognise(c echo.Context, v *visit) error {
	ctx := c.Request().Context()
	id := s.sessions.GetString(ctx, tenant.SessionUserID)
	if id == "" {
		return nil
	}
	user, err := tenant.UserByID(ctx, s.pool, id)
	if errors.Is(err, store.ErrNotFound) {
		return s.logOut(c)
	}
	if err != nil {
		return err
	}
	v.user, v.actor = user, tenant.ActorOf(user)
	return nil
}

// admit checks the user against the route. A project that the user is not in does not exist, whatever the route needs.
func (s *Server) admit(c echo.Context, v *visit, r route) error {
	ctx := c.Request().Context()
	switch r.access {
	case inProject:
		id := c.Param("project")
		actor, err := tenant.ActorInProject(ctx, s.pool, v.user.ID, id)
		if err != nil {
			return err
		}
		if v.project, err = tenant.ProjectByID(ctx, s.pool, id); err != nil {
			return err
		}
		v.actor = actor
		if err := require(actor, r.needs); err != nil {
			return err
		}
		return s.markSeen(c, v, r)
	case installation:
		return require(v.actor, tenant.PermAdmin)
	default:
		return nil
	}
}

// require is Require, with an error of its own where no owner of a project could help.
func require(a tenant.Actor, p tenant.Permission) error {
	if p == tenant.PermAdmin && !a.Can(p) {
		return errAdminsOnly
	}
	return a.Require(p)
}

// markSeen takes the pulse for a page that will watch it. It comes before the page reads anything, so that nothing falls between.
func (s *Server) markSeen(c echo.Context, v *visit, r route) error {
	if r.long || c.Request().Method != http.MethodGet || c.Request().Header.Get(views.FragmentHeader) != "" {
		return nil
	}
	pulse, err := s.hints.pulse(c.Request().Context(), v.project.ID)
	v.seen = pulseMark(pulse)
	return err
}

// askToLogIn sends a stranger to the log-in page, and from there back to the page that was asked for. An action is not
// repeated after a log-in, so it leads to the first page.
func (s *Server) askToLogIn(c echo.Context) error {
	if c.Request().Header.Get("Accept") == "text/event-stream" {
		return c.NoContent(http.StatusNoContent) // This tells an EventSource to stop.
	}
	next := ""
	if m := c.Request().Method; m == http.MethodGet || m == http.MethodHead {
		next = c.Request().URL.RequestURI()
	}
	return redirect(c, views.LoginWithURL(next))
}
