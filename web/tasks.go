package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

// showTasks lists the project's tasks under a filter, with the counts of every state.
func (s *Server) showTasks(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	filter := views.TaskFilterFrom(c.QueryParams())
	l, err := s.layout(c, "Tasks", views.SectionTasks)
	if err != nil {
		return err
	}
	f, note, err := s.taskFilter(ctx, v.project.ID, filter)
	if err != nil {
		return err
	}
	props := views.TasksProps{Layout: l, Filter: filter, SearchNote: note}
	counts, list := jobs.TaskCounts{}, store.List[jobs.Task]{}
	if f != nil {
		if counts, err = s.client.CountTasks(ctx, s.pool, v.project.ID, *f); err != nil {
			return err
		}
		if list, err = s.client.ListTasks(ctx, s.pool, v.project.ID, *f, pageOf(filter.After, filter.Before)); err != nil {
			return err
		}
	}
	if props.Kinds, props.Endpoints, err = s.taskChoices(ctx, v.project.ID); err != nil {
		return err
	}
	presentTasks(&props, v, counts, list)
	return s.page(c, http.StatusOK, views.Tasks(props))
}

// taskFilter reads the query of a task page. A search is an id where it looks like one; a nil filter says that nothing can
// match, and the note how the search was read.
func (s *Server) taskFilter(ctx context.Context, project string, q views.TaskFilter) (f *jobs.TaskFilter, note string, err error) {
	f = &jobs.TaskFilter{Kind: q.Kind, EndpointID: q.Endpoint, EventID: q.Event, Since: since(s.now(), q.Period)}
	if q.State != "" {
		f.State = jobs.TaskState(q.State)
		if !slices.Contains(jobs.TaskStates(), f.State) {
			return nil, "There is no such state.", nil
		}
	}
	search := strings.TrimSpace(q.Query)
	if search == "" {
		return f, "", nil
	}
	if id, err := strconv.ParseInt(strings.TrimPrefix(search, "#"), 10, 64); err == nil {
		_, err := s.client.TaskByID(ctx, s.pool, project, id)
		if err == nil {
			f.ID = id
			return f, "", nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, "", err
		}
	}
	return s.searchTasks(ctx, project, f, search)
}

// searchTasks narrows a filter by what the search names: an event, or else an endpoint.
func (s *Server) searchTasks(ctx context.Context, project string, f *jobs.TaskFilter, search string) (*jobs.TaskFilter, string, error) {
	_, err := events.PayloadByID(ctx, s.pool, project, search)
	if err == nil {
		f.EventID = search
		return f, "", nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return nil, "", err
	}
	if strings.HasPrefix(search, "endpoint_") {
		f.EndpointID = search
		return f, "", nil
	}
	found, err := s.endpoints.ListEndpoints(ctx, s.pool, project, webhooks.EndpointFilter{Search: search}, store.Page{Limit: 2})
	switch {
	case err != nil:
		return nil, "", err
	case len(found.Rows) == 0:
		return nil, "No task, event or endpoint has this id, and no endpoint has it in its address or description.", nil
	case len(found.Rows) > 1:
		f.EndpointID = found.Rows[0].ID
		return f, "More than one endpoint has this in its address or description. These are the tasks of " + endpointName(found.Rows[0]) + ".", nil
	default:
		f.EndpointID = found.Rows[0].ID
		return f, "Tasks of the endpoint " + endpointName(found.Rows[0]) + ".", nil
	}
}

// taskChoices are what the filters offer: every kind there is, and the newest endpoints.
func (s *Server) taskChoices(ctx context.Context, project string) (kinds, endpoints []views.Option, err error) {
	for _, p := range s.client.Policies().All() {
		if p.Kind != "periodic" && !slices.ContainsFunc(kinds, func(o views.Option) bool { return o.Value == p.Kind }) {
			kinds = append(kinds, views.Option{Value: p.Kind, Label: p.Kind})
		}
	}
	list, err := s.endpoints.ListEndpoints(ctx, s.pool, project, webhooks.EndpointFilter{}, store.Page{Limit: store.MaxLimit})
	if err != nil {
		return nil, nil, err
	}
	for _, e := range list.Rows {
		endpoints = append(endpoints, views.Option{Value: e.ID, Label: endpointName(e)})
	}
	return kinds, endpoints, nil
}

// retryTask makes one more attempt now.
func (s *Server) retryTask(c echo.Context) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	v := visitOf(c)
	if _, err := s.client.Retry(c.Request().Context(), v.actor, v.project.ID, id); err != nil {
		return err
	}
	return s.done(c, fmt.Sprintf("Task %d will be tried again now.", id), views.TaskURL(v.project.ID, c.Param("id")))
}

// cancelTask stops a task.
func (s *Server) cancelTask(c echo.Context) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	v := visitOf(c)
	task, err := s.client.Cancel(c.Request().Context(), v.actor, v.project.ID, id)
	if err != nil {
		return err
	}
	sentence := fmt.Sprintf("Task %d was cancelled.", id)
	if task.State == jobs.StateRunning {
		sentence = fmt.Sprintf("Task %d will be cancelled when its attempt ends.", id)
	}
	return s.done(c, sentence, views.TaskURL(v.project.ID, c.Param("id")))
}

// taskID reads the route's task number; what is no number names no task.
func taskID(c echo.Context) (int64, error) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, store.ErrNotFound
	}
	return id, nil
}

// exportTasks streams every task that matches as CSV.
func (s *Server) exportTasks(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	f, _, err := s.taskFilter(ctx, v.project.ID, views.TaskFilterFrom(c.QueryParams()))
	if err != nil {
		return err
	}
	return s.exportCSV(c, "tasks", taskColumns(), func(t table) error {
		if f == nil {
			return nil
		}
		page := store.Page{Limit: store.MaxLimit}
		for {
			list, err := s.client.ListTasks(ctx, s.pool, v.project.ID, *f, page)
			if err != nil {
				return err
			}
			for _, task := range list.Rows {
				if err := t.row(taskCells(task)...); err != nil {
					return err
				}
			}
			if page.Cursor = list.Next; page.Cursor == "" {
				return nil
			}
		}
	})
}

// pageOf is the page at one of a filter's cursors.
func pageOf(after, before string) store.Page {
	if after == "" {
		after = before
	}
	return store.Page{Cursor: after}
}

// periods are the choices of a list's period; the empty one has no bound.
func periods() []views.Option {
	return []views.Option{{Value: "", Label: "All time"}, {Value: "1h", Label: "Last hour"}, {Value: "24h", Label: "Last 24 hours"},
		{Value: "7d", Label: "Last 7 days"}, {Value: "30d", Label: "Last 30 days"}}
}

// since is where a period starts; zero for one that has no bound or is unknown.
func since(now time.Time, period string) time.Time {
	switch period {
	case "1h":
		return now.Add(-time.Hour)
	case "24h":
		return now.Add(-24 * time.Hour)
	case "7d":
		return now.AddDate(0, 0, -7)
	case "30d":
		return now.AddDate(0, 0, -30)
	default:
		return time.Time{}
	}
}
