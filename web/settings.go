package web

import (
	"errors"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
	"entrega/webhooks"
)

// showSettings shows what is set about the project itself.
func (s *Server) showSettings(c echo.Context) error {
	v := visitOf(c)
	return s.settingsPage(c, http.StatusOK, v.project.Name, v.project.Profile, nil)
}

func (s *Server) settingsPage(c echo.Context, status int, name, profile string, problems map[string]string) error {
	v := visitOf(c)
	l, err := s.layout(c, "Settings", views.SectionSettings)
	if err != nil {
		return err
	}
	p := presentSettings(l, v, name, profile, problems, s.profiles(v.project.ID), s.publicURL.String())
	if p.Captures, _, _, err = s.mailStanding(c); err != nil {
		return err
	}
	return s.page(c, status, views.Settings(p))
}

// changeSettings renames the project and chooses its profile.
func (s *Server) changeSettings(c echo.Context) error {
	ctx, v, form := c.Request().Context(), visitOf(c), c.Request().PostForm
	name, profile := form.Get("name"), form.Get("profile")
	var invalid *store.InvalidError
	err := s.checkProfile(v.project.ID, profile)
	if err == nil {
		_, err = tenant.RenameProject(ctx, s.pool, v.actor, v.project.ID, name)
	}
	if err == nil {
		_, err = tenant.ChooseProfile(ctx, s.pool, v.actor, v.project.ID, profile)
	}
	if errors.As(err, &invalid) {
		return s.settingsPage(c, http.StatusUnprocessableEntity, name, profile, fieldProblems(invalid))
	}
	if err != nil {
		return err
	}
	return s.done(c, "The settings were saved.", views.SettingsURL(v.project.ID))
}

// chooseProfile sets the retry rules of every endpoint that has not chosen its own.
func (s *Server) chooseProfile(c echo.Context) error {
	v, profile := visitOf(c), c.Request().PostForm.Get("profile")
	if err := s.checkProfile(v.project.ID, profile); err != nil {
		return err
	}
	if _, err := tenant.ChooseProfile(c.Request().Context(), s.pool, v.actor, v.project.ID, profile); err != nil {
		return err
	}
	return s.done(c, "Webhooks of this project use the profile "+profile+" from now on.", views.PoliciesURL(v.project.ID))
}

// profiles are those that the project's endpoints may have.
func (s *Server) profiles(project string) []string {
	return s.client.Policies().Profiles(webhooks.Deliver.Name, project)
}

func (s *Server) checkProfile(project, profile string) error {
	if !slices.Contains(s.profiles(project), profile) {
		return store.Invalid("profile", "There is no such profile.")
	}
	return nil
}
