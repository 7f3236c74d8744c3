package web

import (
	"net/http"

	"entrega/internal/tenant"
	"entrega/views"
)

// peopleRoutes is how people get in, what runs by the clock, and what is of the installation as a whole.
func (s *Server) peopleRoutes() []route {
	const p, id, token = ":project", ":id", ":token"
	return []route{
		{method: http.MethodGet, path: views.SignUpURL(), handle: s.showSignUp},
		{method: http.MethodPost, path: views.SignUpURL(), handle: s.signUp},
		{method: http.MethodGet, path: views.ConfirmURL(token), handle: s.showConfirm},
		{method: http.MethodPost, path: views.ConfirmURL(token), handle: s.confirm},
		{method: http.MethodGet, path: views.ConfirmAddressURL(token), handle: s.showConfirmAddress},
		{method: http.MethodPost, path: views.ConfirmAddressURL(token), handle: s.confirmAddress},
		{method: http.MethodPost, path: views.ChangeEmailURL(), access: loggedIn, handle: s.askNewAddress},
		{method: http.MethodGet, path: views.OIDCLoginURL(), handle: s.beginOIDC},
		{method: http.MethodGet, path: views.OIDCCallbackURL(), handle: s.endOIDC},

		{method: http.MethodGet, path: views.PeriodicURL(p), access: inProject, needs: tenant.PermSee, handle: s.showPeriodic},
		{method: http.MethodPost, path: views.RunPeriodicURL(p, id), access: inProject, needs: tenant.PermAdmin, handle: s.runPeriodic},

		{method: http.MethodGet, path: views.AdminProjectsURL(""), access: installation, handle: s.showAllProjects},
		{method: http.MethodPost, path: views.AdminProjectsURL(""), access: installation, handle: s.createProjectFor},
		{method: http.MethodGet, path: views.AdminDisabledURL(), access: installation, handle: s.showDisabled},
		{method: http.MethodPost, path: views.AdminReactivateURL(p, id), access: installation, handle: s.reactivateDisabled},
		{method: http.MethodGet, path: views.AdminAuditURL(views.AuditFilter{}), access: installation, handle: s.showAllAudit},
		{method: http.MethodGet, path: views.AdminSystemURL(), access: installation, handle: s.showSystem},
		{method: http.MethodPost, path: views.AdminPauseQueueURL(id), access: installation, handle: s.pauseQueue},
		{method: http.MethodPost, path: views.AdminResumeQueueURL(id), access: installation, handle: s.resumeQueue},
		{method: http.MethodPost, path: views.AdminConfirmURL(id), access: installation, handle: s.linkForAdmin},
	}
}
