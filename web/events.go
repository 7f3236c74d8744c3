package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// showEvents lists the project's events with how each fared.
func (s *Server) showEvents(c echo.Context) error {
	return s.eventsPage(c, http.StatusOK, views.TestEvent{Type: "order.created", Data: `{"orderId": "SO-1"}`})
}

// eventsPage shows the list, with the form for a test event as it was filled in.
func (s *Server) eventsPage(c echo.Context, status int, test views.TestEvent) error {
	ctx, v := c.Request().Context(), visitOf(c)
	q := views.EventFilterFrom(c.QueryParams())
	l, err := s.layout(c, "Events", views.SectionEvents)
	if err != nil {
		return err
	}
	list, fates, err := s.listEvents(ctx, v.project.ID, q, pageOf(q.After, q.Before))
	if err != nil {
		return err
	}
	p := views.EventsProps{Layout: l, Filter: q, Test: test, Periods: periods(), CanExport: true, CanPublish: v.can(tenant.PermPublish)}
	if err := s.eventChoices(ctx, c.Request(), v.project.ID, &p); err != nil {
		return err
	}
	p.PublishCommand = publishCommand(s.publicURL.String())
	presentEvents(&p, v, list, fates)
	return s.page(c, status, views.Events(p))
}

// eventChoices are what the filters offer. A refresh of the rows does without.
func (s *Server) eventChoices(ctx context.Context, r *http.Request, project string, p *views.EventsProps) error {
	if r.Header.Get(views.FragmentHeader) != "" {
		return nil
	}
	types, err := recentTypes(ctx, s.pool, project)
	if err != nil {
		return err
	}
	subscribers, err := recentSubscribers(ctx, s.pool, project)
	p.Types, p.Subscribers = sameOptions(types), sameOptions(subscribers)
	return err
}

// listEvents reads one page of events and the fates of each. The outcome is not a column, so it narrows what was read.
func (s *Server) listEvents(ctx context.Context, project string, q views.EventFilter, page store.Page) (store.List[events.Event], map[string]fate, error) {
	f := events.Filter{Type: q.Type, Subscriber: q.Subscriber, Since: since(s.now(), q.Period), IDPrefix: strings.TrimSpace(q.Query),
		Poisoned: q.Outcome == string(views.OutcomePoisoned)}
	fates := map[string]fate{}
	read := func(page store.Page) (store.List[events.Event], error) {
		list, err := events.ListEvents(ctx, s.pool, project, f, page)
		if err != nil {
			return list, err
		}
		ids := make([]string, len(list.Rows))
		for i, e := range list.Rows {
			ids[i] = e.ID
		}
		return list, readFates(ctx, s.pool, project, ids, fates)
	}
	keep := func(e events.Event) bool { return q.Outcome == "" || string(outcomeOf(e, fates[e.ID])) == q.Outcome }
	list, err := collect(page, q.Before != "", read, keep)
	return list, fates, err
}

// publishTest publishes an event that a person typed.
func (s *Server) publishTest(c echo.Context) error {
	ctx, v, form := c.Request().Context(), visitOf(c), c.Request().PostForm
	n := events.New{Type: strings.TrimSpace(form.Get("type")), Subscriber: strings.TrimSpace(form.Get("subscriber")), Data: []byte(form.Get("data"))}
	var published events.Published
	err := store.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		var err error
		if published, err = events.Publish(ctx, tx, v.project.ID, n); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, v.actor, "event.publish_test", "event", published.ID, map[string]any{"type": n.Type})
	})
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return s.eventsPage(c, http.StatusUnprocessableEntity,
			views.TestEvent{Type: n.Type, Subscriber: n.Subscriber, Data: string(n.Data), Problems: fieldProblems(invalid)})
	}
	if err != nil {
		return err
	}
	return s.done(c, "The event was published. Its deliveries appear here as they are made.", views.EventURL(v.project.ID, published.ID))
}

// exportEvents streams every event that matches as CSV, without payloads.
func (s *Server) exportEvents(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	q := views.EventFilterFrom(c.QueryParams())
	return s.exportCSV(c, "events", eventColumns(), func(t table) error {
		page := store.Page{Limit: store.MaxLimit}
		for {
			list, fates, err := s.listEvents(ctx, v.project.ID, q, page)
			if err != nil {
				return err
			}
			for _, e := range list.Rows {
				if err := t.row(eventCells(e, fates[e.ID])...); err != nil {
					return err
				}
			}
			if page.Cursor = list.Next; page.Cursor == "" {
				return nil
			}
		}
	})
}

// recentSubscribers lists the subscribers that a project's events named lately.
func recentSubscribers(ctx context.Context, db store.DB, project string) ([]string, error) {
	return recentWords(ctx, db, project, `
		select distinct subscriber from (
			select subscriber from events where project_id = $1 order by created_at desc, seq desc limit $2) e
		where subscriber is not null order by 1 limit $3`)
}

const (
	// recentEvents is how far back the choices of a filter look.
	recentEvents = 1000
	// choicesMost is how many of them a page offers.
	choicesMost = 100
)

// recentWords runs a statement with the project and these bounds.
func recentWords(ctx context.Context, db store.DB, project, sql string) ([]string, error) {
	rows, err := db.Query(ctx, sql, project, recentEvents, choicesMost)
	if err != nil {
		return nil, fmt.Errorf("read the choices of a filter: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("read the choices of a filter: %w", err)
	}
	return slices.Clip(found), nil
}
