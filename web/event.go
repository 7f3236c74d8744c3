package web

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

// showEvent tells what was published and what became of it.
func (s *Server) showEvent(c echo.Context) error {
	ctx, v, id := c.Request().Context(), visitOf(c), c.Param("id")
	e, err := events.EventByID(ctx, s.pool, v.project.ID, id)
	if err != nil {
		return err
	}
	fates := map[string]fate{}
	if err := readFates(ctx, s.pool, v.project.ID, []string{id}, fates); err != nil {
		return err
	}
	tasks, err := s.client.ListTasks(ctx, s.pool, v.project.ID, jobs.TaskFilter{EventID: id, Kind: webhooks.Deliver.Name}, store.Page{Limit: store.MaxLimit})
	if err != nil {
		return err
	}
	urls, err := webhooks.EndpointURLs(ctx, s.pool, v.project.ID, consideredIDs(e, tasks.Rows))
	if err != nil {
		return err
	}
	l, err := s.layout(c, e.Type, views.SectionEvents)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.Event(presentEvent(l, v, e, fates[id], tasks.Rows, urls)))
}

func consideredIDs(e events.Event, tasks []jobs.Task) []string {
	var ids []string
	for _, t := range tasks {
		ids = append(ids, t.EndpointID)
	}
	for _, skipped := range e.Skipped.Endpoints {
		ids = append(ids, skipped.ID)
	}
	return ids
}

// downloadPayload sends the bytes that were published.
func (s *Server) downloadPayload(c echo.Context) error {
	data, err := events.PayloadByID(c.Request().Context(), s.pool, visitOf(c).project.ID, c.Param("id"))
	if err != nil {
		return err
	}
	private(c)
	c.Response().Header().Set(echo.HeaderContentDisposition, fmt.Sprintf(`attachment; filename="%s.json"`, c.Param("id")))
	return c.Blob(http.StatusOK, "application/json", data)
}

// redeliverEvent sends an event again to every endpoint that takes it.
func (s *Server) redeliverEvent(c echo.Context) error {
	v, id := visitOf(c), c.Param("id")
	done, err := s.endpoints.RedeliverEvent(c.Request().Context(), v.actor, id)
	if err != nil {
		return err
	}
	return s.done(c, redeliveredSentence(done), views.EventURL(v.project.ID, id))
}

// requeueEvent gives a poisoned event back to the relay.
func (s *Server) requeueEvent(c echo.Context) error {
	v, id := visitOf(c), c.Param("id")
	if _, err := events.Requeue(c.Request().Context(), s.pool, v.actor, v.project.ID, id); err != nil {
		return err
	}
	return s.done(c, "The event is in the queue again.", views.EventURL(v.project.ID, id))
}

// fate counts an event's deliveries by how they stand.
type fate struct {
	open, completed, discarded, cancelled int
}

func (f fate) total() int { return f.open + f.completed + f.discarded + f.cancelled }

// readFates adds the fates of events to a map.
func readFates(ctx context.Context, db store.DB, project string, ids []string, fates map[string]fate) error {
	rows, err := db.Query(ctx, `
		select event_id,
			count(*) filter (where state not in ('completed', 'discarded', 'cancelled')),
			count(*) filter (where state = 'completed'),
			count(*) filter (where state = 'discarded'),
			count(*) filter (where state = 'cancelled')
		from (
			select event_id, state from river_job where project_id = $1 and event_id = any($2) and kind = $3 and state <> 'running'
			union all
			select event_id, state from river_job where project_id = $1 and event_id = any($2) and kind = $3 and state = 'running'
		) as d group by event_id`, project, ids, webhooks.Deliver.Name)
	if err != nil {
		return fmt.Errorf("read how events fared: %w", err)
	}
	var id string
	var f fate
	if _, err := pgx.ForEachRow(rows, []any{&id, &f.open, &f.completed, &f.discarded, &f.cancelled}, func() error { fates[id] = f; return nil }); err != nil {
		return fmt.Errorf("read how events fared: %w", err)
	}
	return nil
}
