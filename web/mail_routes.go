package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"entrega/internal/tenant"
	"entrega/views"
)

// mailRoutes is what a project's mail has, and the mail of the installation itself, which an admin sees.
func (s *Server) mailRoutes() []route {
	const p, id = ":project", ":id"
	get := func(path string, needs tenant.Permission, h echo.HandlerFunc) route {
		return route{method: http.MethodGet, path: path, access: inProject, needs: needs, handle: h}
	}
	post := func(path string, needs tenant.Permission, h echo.HandlerFunc) route {
		return route{method: http.MethodPost, path: path, access: inProject, needs: needs, handle: h}
	}
	return []route{
		get(views.MailURL(p), tenant.PermSee, s.showMail),
		get(views.NotificationURL(p, id), tenant.PermSee, s.showNotification),
		get(views.MailHTMLURL(p, id), tenant.PermSeePayloads, s.showMailHTML),
		get(views.MailSourceURL(p, id), tenant.PermSeePayloads, s.downloadMail),
		post(views.SendAgainURL(p, id), tenant.PermRetry, s.sendAgain),
		post(views.EraseRecipientURL(p), tenant.PermManageTeam, s.eraseRecipient),
		get(views.SuppressionsURL(p), tenant.PermSee, s.showSuppressions),
		post(views.RemoveSuppressionURL(p, id), tenant.PermManageTeam, s.removeSuppression),
		get(views.MailSettingsURL(p), tenant.PermSee, s.showMailSettings),
		post(views.MailSettingsURL(p), tenant.PermManageTeam, s.changeMailSettings),
		post(views.MailTestURL(p), tenant.PermSendTest, s.sendTestMail),
		post(views.MailClearURL(p), tenant.PermManageTeam, s.clearMailSettings),

		{method: http.MethodGet, path: views.MailURL(""), access: installation, handle: s.showMail},
		{method: http.MethodGet, path: views.NotificationURL("", id), access: installation, handle: s.showNotification},
		{method: http.MethodGet, path: views.MailHTMLURL("", id), access: installation, handle: s.showMailHTML},
		{method: http.MethodGet, path: views.MailSourceURL("", id), access: installation, handle: s.downloadMail},
		{method: http.MethodPost, path: views.SendAgainURL("", id), access: installation, handle: s.sendAgain},
	}
}
