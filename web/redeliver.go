package web

import (
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"entrega/internal/tenant"
	"entrega/views"
	"entrega/webhooks"
)

const (
	// confirmAbove is how many tasks one click may touch before a word must be typed.
	confirmAbove = 100
	// redeliverWord is that word.
	redeliverWord = "redeliver"
)

// showRedeliver counts what a redelivery would bring, and asks.
func (s *Server) showRedeliver(c echo.Context) error {
	return s.redeliverPage(c, http.StatusOK, c.QueryParams(), "")
}

// redeliverPage shows the preview for a form as it was filled in.
func (s *Server) redeliverPage(c echo.Context, status int, form url.Values, confirmProblem string) error {
	ctx, v, id := c.Request().Context(), visitOf(c), c.Param("id")
	e, err := s.endpoints.EndpointByID(ctx, s.pool, v.project.ID, id)
	if err != nil {
		return err
	}
	l, err := s.layout(c, "Redeliver to "+endpointName(e), views.SectionEndpoints)
	if err != nil {
		return err
	}
	props := views.RedeliverProps{Layout: l, ID: id, Name: endpointName(e), Scope: form.Get("scope"), Since: form.Get("since"),
		Until: form.Get("until"), Disabled: e.DisabledAt != nil, CanReactivate: v.can(tenant.PermReactivate), ConfirmProblem: confirmProblem}
	request, problem := redeliverRequest(form)
	if problem != "" {
		props.SinceProblem = problem
		return s.page(c, http.StatusUnprocessableEntity, views.Redeliver(props))
	}
	request.DryRun = true
	count, err := s.endpoints.Redeliver(ctx, v.actor, id, request)
	if err != nil {
		return err
	}
	props.Discarded, props.Missed = int(count.Deliveries), int(count.Missed)
	if count.Total() > confirmAbove {
		props.ConfirmWord = redeliverWord
	}
	return s.page(c, status, views.Redeliver(props))
}

// redeliverEndpoint starts the redelivery that the page showed. What the count was then is asked again here.
func (s *Server) redeliverEndpoint(c echo.Context) error {
	ctx, v, id, form := c.Request().Context(), visitOf(c), c.Param("id"), c.Request().PostForm
	request, problem := redeliverRequest(form)
	if problem != "" {
		return s.redeliverPage(c, http.StatusUnprocessableEntity, form, "")
	}
	preview := request
	preview.DryRun = true
	count, err := s.endpoints.Redeliver(ctx, v.actor, id, preview)
	if err != nil {
		return err
	}
	if count.Total() > confirmAbove && form.Get("confirm") != redeliverWord {
		return s.redeliverPage(c, http.StatusUnprocessableEntity, form, "Type the word "+redeliverWord+" to go on.")
	}
	if count, err = s.endpoints.Redeliver(ctx, v.actor, id, request); err != nil {
		return err
	}
	if count.BulkID == "" {
		return s.done(c, "There is nothing to redeliver.", views.EndpointURL(v.project.ID, id))
	}
	sentence := plural(int(count.Total()), "delivery is", "deliveries are") + " on the way again, the oldest first."
	if err := s.tell(c, views.Flash{Text: sentence}); err != nil {
		return err
	}
	return redirect(c, views.BulkRunURL(v.project.ID, count.BulkID))
}

// redeliverRequest reads scope and period of the form.
func redeliverRequest(form url.Values) (r webhooks.RedeliverRequest, problem string) {
	switch form.Get("scope") {
	case "", "all":
		r.Scope = webhooks.ScopeBoth
	case "discarded":
		r.Scope = webhooks.ScopeDiscarded
	case "missed":
		r.Scope = webhooks.ScopeMissed
	default:
		return r, "There is no such choice."
	}
	var sinceOK, untilOK bool
	r.Since, sinceOK = parseFormTime(form.Get("since"))
	r.Until, untilOK = parseFormTime(form.Get("until"))
	switch {
	case !sinceOK || !untilOK:
		return r, "Give the time as 2026-11-29T18:00, in UTC."
	case !r.Since.IsZero() && !r.Until.IsZero() && !r.Until.After(r.Since):
		return r, "The end must be later than the start."
	default:
		return r, ""
	}
}

// formTime is a time as forms write it, in UTC.
const formTime = "2006-01-02T15:04"

// parseFormTime reads what a datetime-local input sends; the empty text is no time.
func parseFormTime(text string) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	for _, layout := range []string{formTime, formTime + ":05"} {
		if t, err := time.ParseInLocation(layout, text, time.UTC); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
