package web

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
	"entrega/views"
)

// mailPolicy is that of a mail's own page: it runs nothing, loads nothing and belongs to no site, whatever the mail holds. The panel
// shows it in a frame.
const mailPolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"

// maySeeMail tells whether the visitor may read what a mail says.
func maySeeMail(v *visit, n mailer.Listed) bool {
	return v.can(tenant.PermSeePayloads) && (!n.Private() || v.can(tenant.PermManageTeam))
}

// showNotification shows one mail with what happened to it.
func (s *Server) showNotification(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	n, err := s.mailer.NotificationByID(ctx, s.pool, v.project.ID, c.Param("id"))
	if err != nil {
		return err
	}
	records, err := mailer.AttemptsOf(ctx, s.pool, n)
	if err != nil {
		return err
	}
	facts, err := mailer.FactsOf(ctx, s.pool, n.ID)
	if err != nil {
		return err
	}
	l, err := s.layout(c, subjectFor(v, n), mailSection(v))
	if err != nil {
		return err
	}
	excerpts, err := jobs.ExcerptsOfTask(ctx, s.pool, n.ProjectID, n.TaskID)
	if err != nil {
		return err
	}
	p := views.NotificationProps{Layout: l, CanSee: maySeeMail(v, n), CanSendAgain: v.can(tenant.PermRetry) && n.ErasedAt == nil, View: views.MailViewFrom(c.QueryParams())}
	if p.Captures, _, _, err = s.mailStanding(c); err != nil {
		return err
	}
	presentNotification(&p, v, n, records, farSideWords(excerpts), facts)
	if p.View == views.MailAsSource && p.CanSee && !p.Erased {
		raw, err := s.mailSource(c, n)
		if err != nil {
			return err
		}
		p.Source, p.SourceCut = string(raw[:min(len(raw), mostSource)]), len(raw) > mostSource
	}
	// The frame of the HTML is a page of the panel's own, under a policy of its own.
	c.Response().Header().Set("Content-Security-Policy", contentSecurityPolicy+"; frame-src 'self'")
	return s.page(c, http.StatusOK, views.Notification(p))
}

// showMailHTML shows the HTML part as a page of its own, under a policy that lets it do nothing.
func (s *Server) showMailHTML(c echo.Context) error {
	v := visitOf(c)
	n, err := s.mailer.NotificationByID(c.Request().Context(), s.pool, v.project.ID, c.Param("id"))
	if err != nil {
		return err
	}
	if !maySeeMail(v, n) {
		return tenant.ErrForbidden
	}
	if n.HTML == "" {
		return store.ErrNotFound
	}
	private(c)
	h := c.Response().Header()
	h.Set("Content-Security-Policy", mailPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	return c.HTML(http.StatusOK, n.HTML)
}

// mostSource bounds the source on the page, in bytes; the download has all of it.
const mostSource = 64 << 10

// mailSource is the whole message of a mail that the visitor may read.
func (s *Server) mailSource(c echo.Context, n mailer.Listed) ([]byte, error) {
	ctx, v := c.Request().Context(), visitOf(c)
	if v.project.ID == "" {
		// Noted before it is shown: a captured mail holds the link, and whoever holds the link gets the account.
		if err := tenant.Audit(ctx, s.pool, v.actor, "mail.read_source", "notification", n.ID, nil); err != nil {
			return nil, err
		}
	}
	return s.mailer.Source(ctx, s.pool, n)
}

// downloadMail gives the whole message.
func (s *Server) downloadMail(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	n, err := s.mailer.NotificationByID(ctx, s.pool, v.project.ID, c.Param("id"))
	if err != nil {
		return err
	}
	if !maySeeMail(v, n) {
		return tenant.ErrForbidden
	}
	raw, err := s.mailSource(c, n)
	if err != nil {
		return err
	}
	private(c)
	c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="`+n.ID+`.eml"`)
	return c.Blob(http.StatusOK, "message/rfc822", raw)
}

// sendAgain makes a new mail of an earlier one.
func (s *Server) sendAgain(c echo.Context) error {
	v, id := visitOf(c), c.Param("id")
	queued, err := s.mailer.SendAgain(c.Request().Context(), v.actor, v.project.ID, id)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return s.refused(c, conflict.Sentence, views.NotificationURL(v.project.ID, id))
	}
	if err != nil {
		return err
	}
	if err := s.tell(c, views.Flash{Text: "This is the new mail. It goes out as soon as its turn comes."}); err != nil {
		return err
	}
	return redirect(c, views.NotificationURL(v.project.ID, queued.ID))
}
