package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/views"
	"entrega/webhooks"
)

// showNewEndpoint shows the empty form.
func (s *Server) showNewEndpoint(c echo.Context) error {
	return s.endpointForm(c, http.StatusOK, views.EndpointFormProps{MaxInFlight: "1"}, nil)
}

// showEditEndpoint shows the form with what is stored.
func (s *Server) showEditEndpoint(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	e, err := s.endpoints.EndpointByID(ctx, s.pool, v.project.ID, c.Param("id"))
	if err != nil {
		return err
	}
	return s.endpointForm(c, http.StatusOK, filledForm(e), e.EventTypes)
}

// endpointForm shows the form; chosen are the event types to tick.
func (s *Server) endpointForm(c echo.Context, status int, p views.EndpointFormProps, chosen []string) error {
	ctx, v := c.Request().Context(), visitOf(c)
	title := "New endpoint"
	if p.ID != "" {
		title = "Edit " + p.Name
	}
	var err error
	if p.Layout, err = s.layout(c, title, views.SectionEndpoints); err != nil {
		return err
	}
	known, err := recentTypes(ctx, s.pool, v.project.ID)
	if err != nil {
		return err
	}
	presentChoices(&p, known, chosen)
	p.Profiles = profileChoices(s.client.Policies().Profiles(webhooks.Deliver.Name, v.project.ID), v.project.Profile)
	return s.page(c, status, views.EndpointForm(p))
}

// createEndpoint makes an endpoint and shows its secret, this once.
func (s *Server) createEndpoint(c echo.Context) error {
	ctx, v, form := c.Request().Context(), visitOf(c), c.Request().PostForm
	settings, bad := readSettings(form, nil)
	var created webhooks.Created
	err := bad.OrNil()
	if err == nil {
		created, err = s.endpoints.CreateEndpoint(ctx, v.actor, webhooks.NewEndpoint{Settings: settings})
	}
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return s.endpointForm(c, http.StatusUnprocessableEntity, refusedForm("", "", form, invalid), settings.EventTypes)
	}
	if err != nil {
		return err
	}
	l, err := s.layout(c, "Endpoint created", views.SectionEndpoints)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.ShownOnce(views.SecretProps{
		Layout: l, Title: "Endpoint created", Label: "Signing secret of " + endpointName(created.Endpoint), Value: created.Secret,
		Note:    "The receiver verifies each delivery with it, as Standard Webhooks says: any library of that standard takes it as it is.",
		NextURL: views.EndpointURL(v.project.ID, created.Endpoint.ID), NextLabel: "Go to the endpoint",
	}))
}

// editEndpoint changes an endpoint's settings.
func (s *Server) editEndpoint(c echo.Context) error {
	ctx, v, id, form := c.Request().Context(), visitOf(c), c.Param("id"), c.Request().PostForm
	before, err := s.endpoints.EndpointByID(ctx, s.pool, v.project.ID, id)
	if err != nil {
		return err
	}
	settings, bad := readSettings(form, before.Headers)
	if err = bad.OrNil(); err == nil {
		_, err = s.endpoints.UpdateEndpoint(ctx, v.actor, id, changeTo(settings))
	}
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return s.endpointForm(c, http.StatusUnprocessableEntity, refusedForm(id, endpointName(before), form, invalid), settings.EventTypes)
	}
	if err != nil {
		return err
	}
	return s.done(c, "The endpoint was changed. The next delivery is sent by its new settings.", views.EndpointURL(v.project.ID, id))
}

// rotateSecret makes a new signing secret and shows it, this once.
func (s *Server) rotateSecret(c echo.Context) error {
	ctx, v, id := c.Request().Context(), visitOf(c), c.Param("id")
	var rotation webhooks.Rotation
	if text := strings.TrimSpace(c.Request().PostForm.Get("overlapHours")); text != "" {
		hours, err := strconv.Atoi(text)
		if err != nil {
			return store.Invalid("overlapHours", "Give a whole number of hours.")
		}
		rotation.OverlapHours = &hours
	}
	secret, err := s.endpoints.RotateSecret(ctx, v.actor, id, rotation)
	if err != nil {
		return err
	}
	hours := webhooks.DefaultOverlapHours
	if rotation.OverlapHours != nil {
		hours = *rotation.OverlapHours
	}
	l, err := s.layout(c, "Secret rotated", views.SectionEndpoints)
	if err != nil {
		return err
	}
	note := "The old secret signs beside it for " + plural(hours, "more hour", "more hours") + ". Give the new one to the receiver before then."
	if hours == 0 {
		note = "The old secret signs nothing any more. Give the new one to the receiver now."
	}
	return s.page(c, http.StatusOK, views.ShownOnce(views.SecretProps{
		Layout: l, Title: "Secret rotated", Label: "New signing secret", Value: secret, Note: note,
		NextURL: views.EndpointURL(v.project.ID, id), NextLabel: "Back to the endpoint",
	}))
}

// readSettings reads the form. had are the endpoint's headers so far: a value that was shown hidden and came back so stays.
func readSettings(form url.Values, had map[string]string) (webhooks.Settings, *store.InvalidError) {
	bad := &store.InvalidError{}
	out := webhooks.Settings{URL: form.Get("url"), Description: form.Get("description"), Subscriber: strings.TrimSpace(form.Get("subscriber")),
		Profile: form.Get("profile"), EventTypes: append(form["eventType"], words(form.Get("eventTypes"))...)}
	out.Headers = readHeaders(form.Get("headers"), had, bad)
	out.MaxInFlight = readNumber(form, "maxInFlight", bad)
	out.TimeoutSeconds = readNumber(form, "timeoutSeconds", bad)
	if text := strings.TrimSpace(form.Get("ratePerSecond")); text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			bad.Add("ratePerSecond", "Give a number, such as 5 or 0.5, or leave it out.")
		}
		out.RatePerSecond = rate
	}
	return out, bad
}

func readNumber(form url.Values, field string, bad *store.InvalidError) int {
	text := strings.TrimSpace(form.Get(field))
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		bad.Add(field, "Give a whole number.")
	}
	return n
}

// readHeaders reads "Name: value", one per line.
func readHeaders(text string, had map[string]string, bad *store.InvalidError) map[string]string {
	hidden := webhooks.MaskHeaders(had)
	headers := map[string]string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name, value = http.CanonicalHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(value); !ok || name == "" {
			bad.Add("headers", "Write each header as a name, a colon and a value: x-api-version: 2.")
			continue
		}
		if _, twice := headers[name]; twice {
			bad.Add("headers", name+" is given twice.")
		}
		if old, kept := had[name]; kept && value == hidden[name] {
			value = old
		}
		headers[name] = value
	}
	return headers
}

// words splits a text at white space and commas.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
}

// changeTo sets every setting.
func changeTo(s webhooks.Settings) webhooks.Change {
	return webhooks.Change{URL: &s.URL, Description: &s.Description, Subscriber: &s.Subscriber, EventTypes: &s.EventTypes, Profile: &s.Profile,
		Headers: &s.Headers, MaxInFlight: &s.MaxInFlight, RatePerSecond: &s.RatePerSecond, TimeoutSeconds: &s.TimeoutSeconds}
}

// recentTypes lists the event types that a project has seen lately, and those that its endpoints take.
func recentTypes(ctx context.Context, db store.DB, project string) ([]string, error) {
	return recentWords(ctx, db, project, `
		select type from (select type from events where project_id = $1 order by created_at desc, seq desc limit $2) e
		union
		select unnest(event_types) from endpoints where project_id = $1 and deleted_at is null
		order by 1 limit $3`)
}
