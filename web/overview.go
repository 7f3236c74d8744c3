package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

const (
	// overviewSpan and overviewStep are the period of the first page and the width of a bar.
	overviewSpan = 24 * time.Hour
	overviewStep = 30 * time.Minute
	// attentionMost is how many endpoints in each bad state it lists.
	attentionMost = 10
	// waitingSample bounds the tasks that are looked at for the next one due.
	waitingSample = 10_000
)

// overview is everything the first page of a project tells.
type overview struct {
	since     time.Time
	sums      []jobs.Sum
	latency   jobs.Latency
	counts    jobs.TaskCounts
	nextDue   time.Time
	attention []webhooks.Endpoint
	strips    map[string][]webhooks.StripAttempt
	loads     map[string]load
	// hasEvent, hasEndpoint and hasKey tell how far a new project is.
	hasEvent, hasEndpoint, hasKey bool
}

// showOverview is the first page of a project.
func (s *Server) showOverview(c echo.Context) error {
	l, err := s.layout(c, "Overview", views.SectionOverview)
	if err != nil {
		return err
	}
	v := visitOf(c)
	o, err := s.readOverview(c.Request().Context(), v.project.ID, l.Now)
	if err != nil {
		return err
	}
	p := presentOverview(l, v, o, publishCommand(s.publicURL.String()))
	if p.Alerts, p.MoreAlerts, err = s.openAlerts(c.Request().Context(), v); err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.Overview(p))
}

func (s *Server) readOverview(ctx context.Context, project string, now time.Time) (o overview, err error) {
	o.since = now.Add(-overviewSpan).Truncate(overviewStep).Add(overviewStep)
	if o.sums, err = jobs.SumAttempts(ctx, s.pool, project, o.since, overviewStep); err != nil {
		return o, err
	}
	if o.latency, err = jobs.PublishToDelivered(ctx, s.pool, project, o.since); err != nil {
		return o, err
	}
	if o.counts, err = s.client.CountTasks(ctx, s.pool, project, jobs.TaskFilter{}); err != nil {
		return o, err
	}
	if o.nextDue, err = readNextDue(ctx, s.pool, project); err != nil {
		return o, err
	}
	if err := s.readAttention(ctx, project, &o); err != nil {
		return o, err
	}
	return o, readBeginnings(ctx, s.pool, project, &o)
}

// readAttention lists the endpoints that are not well, the disabled ones first.
func (s *Server) readAttention(ctx context.Context, project string, o *overview) error {
	for _, state := range []webhooks.State{webhooks.StateDisabled, webhooks.StateFailing} {
		list, err := s.endpoints.ListEndpoints(ctx, s.pool, project, webhooks.EndpointFilter{State: state}, store.Page{Limit: attentionMost})
		if err != nil {
			return err
		}
		o.attention = append(o.attention, list.Rows...)
	}
	ids := endpointIDs(o.attention)
	var err error
	if o.strips, err = webhooks.Strips(ctx, s.pool, project, ids); err != nil {
		return err
	}
	o.loads, err = readLoads(ctx, s.pool, project, ids)
	return err
}

// readNextDue reads when the next waiting retry is due; zero when none waits. Short waits stand among the available ones.
func readNextDue(ctx context.Context, db store.DB, project string) (time.Time, error) {
	var at *time.Time
	err := db.QueryRow(ctx, `
		select min(scheduled_at) from (
			(select scheduled_at from river_job where project_id = $1 and state = 'retryable' limit $2)
			union all
			(select scheduled_at from river_job where project_id = $1 and state = 'scheduled' and outcome in ('retry', 'snooze') limit $2)
			union all
			(select scheduled_at from river_job where project_id = $1 and state = 'available' and outcome in ('retry', 'snooze') and scheduled_at > now() limit $2)
		) w`, project, waitingSample).Scan(&at)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the next retry that is due: %w", err)
	}
	return orZero(at), nil
}

func readBeginnings(ctx context.Context, db store.DB, project string, o *overview) error {
	err := db.QueryRow(ctx, `
		select (select seq from events where project_id = $1 order by created_at desc, seq desc limit 1) is not null,
			exists (select from endpoints where project_id = $1 and deleted_at is null),
			exists (select from api_keys where project_id = $1 and revoked_at is null)`, project).
		Scan(&o.hasEvent, &o.hasEndpoint, &o.hasKey)
	if err != nil {
		return fmt.Errorf("read how far the project is: %w", err)
	}
	return nil
}
