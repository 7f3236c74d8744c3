package web

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/mailer"
	"entrega/views"
)

// showMailSettings shows how the project's mail leaves, and what DNS says when that was asked for.
func (s *Server) showMailSettings(c echo.Context) error {
	settings, own, err := s.mailer.SettingsOf(c.Request().Context(), s.pool, visitOf(c).project.ID)
	if err != nil {
		return err
	}
	if !own {
		settings = mailer.Settings{Kind: mailer.SMTP}
	}
	return s.mailSettingsPage(c, http.StatusOK, settings, nil)
}

// mailSettingsPage shows the form as it is filled in.
func (s *Server) mailSettingsPage(c echo.Context, status int, form mailer.Settings, problems map[string]string) error {
	ctx, v := c.Request().Context(), visitOf(c)
	l, err := s.layout(c, "Mail transport", views.SectionSettings)
	if err != nil {
		return err
	}
	present, own, err := s.mailer.SettingsOf(ctx, s.pool, v.project.ID)
	if err != nil {
		return err
	}
	p := views.MailSettingsProps{Layout: l, Own: own, CanEdit: v.can(tenant.PermManageTeam), CanTest: v.can(tenant.PermSendTest), TestTo: v.user.Email, Problems: problems}
	if p.Captures, p.Paused, p.Present, err = s.mailStanding(c); err != nil {
		return err
	}
	if c.QueryParam("check") != "" {
		checks, err := mailer.CheckDomain(ctx, s.resolver, present)
		if err != nil {
			return err
		}
		p.Checks = presentChecks(checks)
	}
	presentMailSettings(&p, v, form, s.publicURL.String())
	return s.page(c, status, views.MailSettings(p))
}

// changeMailSettings gives the project a transport of its own.
func (s *Server) changeMailSettings(c echo.Context) error {
	v, form := visitOf(c), mailForm(c.Request().PostForm)
	_, err := s.mailer.SetTransport(c.Request().Context(), v.actor, v.project.ID, form)
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return s.mailSettingsPage(c, http.StatusUnprocessableEntity, form, fieldProblems(invalid))
	}
	if err != nil {
		return err
	}
	return s.done(c, "The transport was saved. Send a test mail to see whether it works.", views.MailSettingsURL(v.project.ID))
}

// mailForm reads the form. What belongs to another kind than the chosen one is left out.
func mailForm(f url.Values) mailer.Settings {
	s := mailer.Settings{Kind: mailer.TransportKind(f.Get("kind")), From: f.Get("from"), FeedbackSecret: f.Get("feedbackSecret")}
	switch s.Kind {
	case mailer.SMTP:
		port, _ := strconv.ParseUint(f.Get("port"), 10, 16) // No number means the usual port.
		s.SMTP = mailer.SMTPSettings{Host: f.Get("host"), Port: uint16(port), Security: mailer.Security(f.Get("security")), Username: f.Get("username"),
			Password: f.Get("password"), Auth: mailer.AuthMethod(f.Get("auth"))}
		s.DKIM = mailer.DKIMSettings{Domain: f.Get("dkimDomain"), Selector: f.Get("dkimSelector"), Key: f.Get("dkimKey")}
	case mailer.API:
		s.API = mailer.APISettings{Shape: mailer.Shape(f.Get("shape")), URL: f.Get("url"), Key: f.Get("key"), Template: f.Get("template"), IDField: f.Get("idField")}
	}
	return s
}

// clearMailSettings makes the project use the installation's transport again.
func (s *Server) clearMailSettings(c echo.Context) error {
	v := visitOf(c)
	if err := s.mailer.ClearTransport(c.Request().Context(), v.actor, v.project.ID); err != nil {
		return err
	}
	return s.done(c, "Mail of this project leaves by the installation's transport now.", views.MailSettingsURL(v.project.ID))
}

// sendTestMail sends a mail to see whether the transport works, and shows it.
func (s *Server) sendTestMail(c echo.Context) error {
	v := visitOf(c)
	queued, err := s.mailer.SendTest(c.Request().Context(), v.actor, v.project.ID, c.Request().PostForm.Get("to"))
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return s.refused(c, firstSentence(invalid), views.MailSettingsURL(v.project.ID))
	}
	if err != nil {
		return err
	}
	if err := s.tell(c, views.Flash{Text: "The test mail is on its way. This page shows what comes of it."}); err != nil {
		return err
	}
	return redirect(c, views.NotificationURL(v.project.ID, queued.ID))
}
