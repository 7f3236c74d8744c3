package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
)

// bulkAction reads which action a page is about. Each needs what the same action on one task needs.
func bulkAction(c echo.Context) (jobs.BulkAction, error) {
	action := jobs.BulkAction(c.QueryParam("action"))
	switch action {
	case jobs.BulkRetry:
		return action, visitOf(c).actor.Require(tenant.PermRetry)
	case jobs.BulkCancel:
		return action, visitOf(c).actor.Require(tenant.PermCancel)
	default:
		return "", store.ErrNotFound
	}
}

// showBulk counts what an action on all matching tasks would touch, and asks.
func (s *Server) showBulk(c echo.Context) error { return s.bulkPage(c, http.StatusOK, "") }

func (s *Server) bulkPage(c echo.Context, status int, confirmProblem string) error {
	ctx, v := c.Request().Context(), visitOf(c)
	action, err := bulkAction(c)
	if err != nil {
		return err
	}
	q := views.TaskFilterFrom(c.QueryParams())
	l, err := s.layout(c, capital(string(action))+" tasks", views.SectionTasks)
	if err != nil {
		return err
	}
	f, _, err := s.taskFilter(ctx, v.project.ID, q)
	if err != nil {
		return err
	}
	p := views.BulkProps{Layout: l, Action: string(action), Filter: q, ConfirmProblem: confirmProblem}
	if f != nil {
		n, err := s.client.CountBulk(ctx, s.pool, v.project.ID, action, *f)
		var invalid *store.InvalidError
		if errors.As(err, &invalid) {
			p.Left = append(p.Left, views.Fact{Label: "State", Value: firstSentence(invalid)})
		} else if err != nil {
			return err
		}
		p.Count = int(n)
		p.Words = filterWords(*f)
	}
	if p.Count > confirmAbove {
		p.ConfirmWord = string(action)
	}
	return s.page(c, status, views.Bulk(p))
}

// startBulk starts the action that the page showed, as one background task.
func (s *Server) startBulk(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	action, err := bulkAction(c)
	if err != nil {
		return err
	}
	f, note, err := s.taskFilter(ctx, v.project.ID, views.TaskFilterFrom(c.QueryParams()))
	if err != nil {
		return err
	}
	if f == nil {
		return store.Invalid("q", note)
	}
	n, err := s.client.CountBulk(ctx, s.pool, v.project.ID, action, *f)
	if err != nil {
		return err
	}
	if n > confirmAbove && c.Request().PostForm.Get("confirm") != string(action) {
		return s.bulkPage(c, http.StatusUnprocessableEntity, fmt.Sprintf("Type the word %s to go on.", action))
	}
	bulk, err := s.client.StartBulk(ctx, v.actor, v.project.ID, action, *f)
	if err != nil {
		return err
	}
	return redirect(c, views.BulkRunURL(v.project.ID, bulk.ID))
}

// showBulkRun shows how far a bulk action came.
func (s *Server) showBulkRun(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	bulk, err := jobs.BulkByID(ctx, s.pool, v.project.ID, c.Param("id"))
	if err != nil {
		return err
	}
	var f bulkFilter
	if err := json.Unmarshal(bulk.Filter, &f); err != nil {
		return fmt.Errorf("read the filter of a bulk action: %w", err)
	}
	l, err := s.layout(c, capital(string(bulk.Action))+" tasks", views.SectionTasks)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.BulkRun(presentBulkRun(l, v, bulk, f)))
}

// cancelBulk stops a bulk action; what it did stays done.
func (s *Server) cancelBulk(c echo.Context) error {
	v, id := visitOf(c), c.Param("id")
	bulk, err := s.client.CancelBulk(c.Request().Context(), v.actor, v.project.ID, id)
	if err != nil {
		return err
	}
	return s.done(c, fmt.Sprintf("Stopped after %d of %d. What was done stays done.", bulk.Done, bulk.Total), views.BulkRunURL(v.project.ID, id))
}

// bulkFilter is what a stored bulk action was about: tasks by filter, or the redelivery of one endpoint.
type bulkFilter struct {
	jobs.TaskFilter
	Scope string `json:"scope"`
}
