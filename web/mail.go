package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/mailer"
	"entrega/views"
)

// mailSection is where a page about mail stands in the navigation: in a project, or among the admin's.
func mailSection(v *visit) views.Section {
	if v.project.ID == "" {
		return views.SectionAdminMail
	}
	return views.SectionMail
}

// showMail lists the mails of the project; of the installation, where there is no project.
func (s *Server) showMail(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	q := views.MailFilterFrom(c.QueryParams())
	title := "Mail"
	if v.project.ID == "" {
		title = "Account mail"
	}
	l, err := s.layout(c, title, mailSection(v))
	if err != nil {
		return err
	}
	f := mailer.Filter{Captured: q.Show == "captured"}
	if query := strings.TrimSpace(q.Query); strings.Contains(query, "@") {
		f.Recipient = query
		if email, problem := tenant.NormalizeEmail(query); problem == "" {
			f.Recipient = email
		}
	} else {
		f.OrderID = query
	}
	list, err := s.mailer.ListNotifications(ctx, s.pool, v.project.ID, f, pageOf(q.After, q.Before))
	if err != nil {
		return err
	}
	p := views.MailProps{Layout: l, Filter: q, CanErase: v.project.ID != "" && v.can(tenant.PermManageTeam), CanSet: v.project.ID != "",
		NotifyCommand: notifyCommand(s.publicURL.String())}
	if p.Captures, p.Paused, p.Transport, err = s.mailStanding(c); err != nil {
		return err
	}
	presentMail(&p, v, list)
	return s.page(c, http.StatusOK, views.Mail(p))
}

// mailStanding says by what the project's mail leaves, and whether that rests.
func (s *Server) mailStanding(c echo.Context) (captures bool, paused, transport string, err error) {
	ctx, project := c.Request().Context(), visitOf(c).project.ID
	settings, _, err := s.mailer.SettingsOf(ctx, s.pool, project)
	if err != nil {
		return false, "", "", err
	}
	pause, err := s.mailer.PauseOf(ctx, s.pool, project)
	if err != nil {
		return false, "", "", err
	}
	if pause != nil {
		paused = pause.Reason
	}
	return settings.Kind == mailer.Capture, paused, settings.About(), nil
}

// eraseRecipient forgets an address and the content of every mail to it.
func (s *Server) eraseRecipient(c echo.Context) error {
	v := visitOf(c)
	erased, err := s.mailer.EraseRecipient(c.Request().Context(), v.actor, v.project.ID, c.Request().PostForm.Get("address"))
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return s.refused(c, firstSentence(invalid), views.MailURL(v.project.ID))
	}
	if err != nil {
		return err
	}
	return s.done(c, "The address was erased, with the content of "+plural(int(erased.Notifications), "mail", "mails")+".", views.MailURL(v.project.ID))
}

// refused goes back to the page that a form came from, which then says why nothing was done.
func (s *Server) refused(c echo.Context, sentence, fallback string) error {
	if err := s.tell(c, views.Flash{Text: sentence, Failed: true}); err != nil {
		return err
	}
	return redirect(c, back(c, fallback))
}

// showSuppressions lists who gets no mail of the project.
func (s *Server) showSuppressions(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	l, err := s.layout(c, "Suppressions", views.SectionMail)
	if err != nil {
		return err
	}
	list, err := s.mailer.ListSuppressions(ctx, s.pool, v.project.ID, pageOf(c.QueryParam("after"), c.QueryParam("before")))
	if err != nil {
		return err
	}
	p := views.SuppressionsProps{Layout: l, CanRemove: v.can(tenant.PermManageTeam)}
	if p.Captures, _, _, err = s.mailStanding(c); err != nil {
		return err
	}
	presentSuppressions(&p, v, list)
	return s.page(c, http.StatusOK, views.Suppressions(p))
}

// removeSuppression lets mail to a recipient out again.
func (s *Server) removeSuppression(c echo.Context) error {
	v := visitOf(c)
	err := s.mailer.RemoveSuppression(c.Request().Context(), v.actor, v.project.ID, c.Param("id"), c.Request().PostForm.Get("reason"))
	if err != nil {
		return err
	}
	return s.done(c, "The suppression was removed. Mail to this recipient goes out again.", views.SuppressionsURL(v.project.ID))
}
