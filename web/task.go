package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

const (
	// clicksShown is how many audit rows stand below a task or an endpoint.
	clicksShown = 20
	// attemptsShown is how many attempts a task's page lists, the newest.
	attemptsShown = 100
)

// story is everything the page of one task tells.
type story struct {
	task    jobs.Task
	records []jobs.Record
	// excerpt is the exchange of the chosen record; nil when nothing was sent, or when it is past its retention.
	excerpt *jobs.StoredExcerpt
	chosen  *jobs.Record
	// used is the policy of the last record, next the one that will decide; their Kind is empty when unknown.
	used, next jobs.Policy
	endpoint   *webhooks.Endpoint
	// endpointURL is also known of a deleted endpoint.
	endpointURL string
	event       *events.Event
	clicks      []tenant.AuditEntry
}

// showTask tells what happened to a task and what is next.
func (s *Server) showTask(c echo.Context) error {
	id, err := taskID(c)
	if err != nil {
		return err
	}
	v := visitOf(c)
	st, err := s.readStory(c.Request().Context(), v.project, id, c.QueryParam("attempt"))
	if err != nil {
		return err
	}
	l, err := s.layout(c, "Task "+c.Param("id"), views.SectionTasks)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.Task(presentTask(l, v, st)))
}

func (s *Server) readStory(ctx context.Context, project tenant.Project, id int64, attempt string) (st story, err error) {
	if st.task, err = s.client.TaskByID(ctx, s.pool, project.ID, id); err != nil {
		return st, err
	}
	if st.records, err = jobs.AttemptsOfTask(ctx, s.pool, project.ID, id); err != nil {
		return st, err
	}
	if err := s.readExchange(ctx, &st, attempt); err != nil {
		return st, err
	}
	if err := s.readSubjects(ctx, project.ID, &st); err != nil {
		return st, err
	}
	if err := s.readPolicies(ctx, project, &st); err != nil {
		return st, err
	}
	st.clicks, err = tenant.AuditOfSubject(ctx, s.pool, project.ID, "task", strconv.FormatInt(id, 10), clicksShown)
	return st, err
}

// readExchange chooses a record by its place in the chain, or else the last one. Only its excerpt is read: a task that was
// snoozed for days has thousands.
func (s *Server) readExchange(ctx context.Context, st *story, attempt string) error {
	if len(st.records) == 0 {
		return nil
	}
	st.chosen = &st.records[len(st.records)-1]
	if seq, err := strconv.Atoi(attempt); err == nil {
		for i := range st.records {
			if st.records[i].Seq == seq {
				st.chosen = &st.records[i]
			}
		}
	}
	list, err := jobs.ListAttempts(ctx, s.pool, st.task.ProjectID, st.task.ID, pageAfter(st.chosen.Seq-1))
	if err != nil || len(list.Rows) == 0 {
		return err
	}
	st.excerpt = list.Rows[0].Excerpt
	return nil
}

// pageAfter is the page of one attempt behind a place in the chain.
func pageAfter(seq int) store.Page {
	if seq < 1 {
		return store.Page{Limit: 1}
	}
	before := store.ListOf(store.Keyset[int]{Limit: 1, Direction: store.Next}, []int{seq, seq + 1}, func(seq int) int { return seq })
	return store.Page{Limit: 1, Cursor: before.Next}
}

// readSubjects reads the endpoint and the event of a task, where it has them and they are still there.
func (s *Server) readSubjects(ctx context.Context, project string, st *story) error {
	if id := st.task.EndpointID; id != "" {
		e, err := s.endpoints.EndpointByID(ctx, s.pool, project, id)
		switch {
		case err == nil:
			st.endpoint, st.endpointURL = &e, e.URL
		case !errors.Is(err, store.ErrNotFound):
			return err
		default:
			urls, err := webhooks.EndpointURLs(ctx, s.pool, project, []string{id})
			if err != nil {
				return err
			}
			st.endpointURL = urls[id]
		}
	}
	if id := st.task.EventID; id != "" {
		e, err := events.EventByID(ctx, s.pool, project, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err == nil {
			st.event = &e
		}
	}
	return nil
}

func (s *Server) readPolicies(ctx context.Context, project tenant.Project, st *story) error {
	profile := ""
	if st.task.Kind == webhooks.Deliver.Name {
		profile = project.Profile
	}
	if st.endpoint != nil && st.endpoint.Profile != "" {
		profile = st.endpoint.Profile
	}
	st.next, _ = s.client.Policies().ForProject(st.task.Kind, profile, project.ID)
	if len(st.records) == 0 {
		return nil
	}
	last := st.records[len(st.records)-1]
	used, err := jobs.PolicyByVersion(ctx, s.pool, last.Kind, last.PolicyProfile, last.PolicyVersion)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	st.used = used
	return nil
}
