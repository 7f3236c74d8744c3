package web

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/jobs"
	"entrega/views"
)

// showPeriodic lists the jobs that run by the clock. They are of the installation, and the same in every project.
func (s *Server) showPeriodic(c echo.Context) error {
	l, err := s.layout(c, "Periodic", views.SectionPeriodic)
	if err != nil {
		return err
	}
	// A job that has never run has none here.
	runs := map[string]jobs.PeriodicRun{}
	for _, p := range s.periodic {
		run, found, err := jobs.LastRun(c.Request().Context(), s.pool, p)
		if err != nil {
			return err
		}
		if found {
			runs[p.Name] = run
		}
	}
	leadsSince, err := jobs.LeadsSince(c.Request().Context(), s.pool)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.Periodic(presentPeriodic(l, visitOf(c), s.periodic, runs, leadsSince, s.now())))
}

// runPeriodic queues a run now.
func (s *Server) runPeriodic(c echo.Context) error {
	v, name := visitOf(c), c.Param("id")
	i := slices.IndexFunc(s.periodic, func(p jobs.Periodic) bool { return p.Name == name })
	if i < 0 {
		return store.ErrNotFound
	}
	if err := s.client.RunPeriodic(c.Request().Context(), v.actor, s.periodic[i]); err != nil {
		return err
	}
	return s.done(c, "A run of "+name+" is queued. The node that is free first takes it.", views.PeriodicURL(v.project.ID))
}
