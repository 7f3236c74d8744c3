package web

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"entrega/internal/tenant"
	"entrega/static"
	"entrega/views"
)

// access says who may use a route at all.
type access int

// The kinds of access: anyone, a user who is logged in, one who is in the route's project and may do what it needs, an admin
// of the installation.
const (
	anyone access = iota
	loggedIn
	inProject
	installation
)

// route is one line of the panel's table. Tests walk the table, so a route cannot be forgotten.
type route struct {
	method string
	path   string
	access access
	// needs is what the actor must be allowed in the project.
	needs  tenant.Permission
	handle echo.HandlerFunc
	// long routes stream and are not cut off after requestTimeout.
	long bool
}

// mount registers every route. GET routes answer HEAD as well.
func (s *Server) mount() {
	s.echo.GET("/livez", s.livez)
	s.echo.GET("/readyz", s.readyz)
	s.echo.GET(static.Prefix+"*", echo.WrapHandler(static.Handler()))
	s.echo.HEAD(static.Prefix+"*", echo.WrapHandler(static.Handler()))
	for _, r := range s.routes() {
		handle := answering(s.guard(r))
		if !r.long {
			handle = withTimeout(handle)
		}
		s.echo.Add(r.method, r.path, handle)
		if r.method == http.MethodGet {
			s.echo.Add(http.MethodHead, r.path, handle)
		}
	}
}

// routes is the whole panel.
func (s *Server) routes() []route {
	const p, id = ":project", ":id"
	bulk, _, _ := strings.Cut(views.BulkURL(p, "", views.TaskFilter{}), "?")
	get := func(path string, needs tenant.Permission, h echo.HandlerFunc) route {
		return route{method: http.MethodGet, path: path, access: inProject, needs: needs, handle: h}
	}
	post := func(path string, needs tenant.Permission, h echo.HandlerFunc) route {
		return route{method: http.MethodPost, path: path, access: inProject, needs: needs, handle: h}
	}
	all := []route{
		{method: http.MethodGet, path: views.HomeURL(), access: loggedIn, handle: s.home},
		{method: http.MethodGet, path: views.LoginURL(), handle: s.showLogin},
		{method: http.MethodPost, path: views.LoginURL(), handle: s.login},
		{method: http.MethodPost, path: views.LogoutURL(), handle: s.logout},
		{method: http.MethodGet, path: views.SetUpURL(":token"), handle: s.showSetUp},
		{method: http.MethodPost, path: views.SetUpURL(":token"), handle: s.setUp},
		{method: http.MethodGet, path: views.AccountURL(), access: loggedIn, handle: s.showAccount},
		{method: http.MethodPost, path: views.PasswordURL(), access: loggedIn, handle: s.changePassword},
		{method: http.MethodPost, path: views.RevokeSessionURL(id), access: loggedIn, handle: s.revokeSession},
		{method: http.MethodPost, path: views.RevokeOtherSessionsURL(), access: loggedIn, handle: s.revokeOtherSessions},
		{method: http.MethodGet, path: views.ProjectsURL(), access: loggedIn, handle: s.showProjects},
		{method: http.MethodPost, path: views.ProjectsURL(), access: loggedIn, handle: s.createProject},
		{method: http.MethodPost, path: views.RequestAccessURL(), access: loggedIn, handle: s.requestAccess},

		get(views.OverviewURL(p), tenant.PermSee, s.showOverview),
		get(views.StreamURL(p), tenant.PermSee, s.stream).forLong(),

		get(views.TasksURL(p, views.TaskFilter{}), tenant.PermSee, s.showTasks),
		get(views.TasksCSVURL(p, views.TaskFilter{}), tenant.PermSee, s.exportTasks).forLong(),
		get(views.TaskURL(p, id), tenant.PermSee, s.showTask),
		post(views.RetryTaskURL(p, id), tenant.PermRetry, s.retryTask),
		post(views.CancelTaskURL(p, id), tenant.PermCancel, s.cancelTask),

		get(bulk, tenant.PermRetry, s.showBulk),
		post(bulk, tenant.PermRetry, s.startBulk),
		get(views.BulkRunURL(p, id), tenant.PermSee, s.showBulkRun),
		post(views.CancelBulkURL(p, id), tenant.PermRetry, s.cancelBulk),

		get(views.EventsURL(p, views.EventFilter{}), tenant.PermSee, s.showEvents),
		get(views.EventsCSVURL(p, views.EventFilter{}), tenant.PermSee, s.exportEvents).forLong(),
		post(views.PublishTestURL(p), tenant.PermPublish, s.publishTest),
		get(views.EventURL(p, id), tenant.PermSee, s.showEvent),
		get(views.EventPayloadURL(p, id), tenant.PermSeePayloads, s.downloadPayload),
		post(views.RedeliverEventURL(p, id), tenant.PermRedeliver, s.redeliverEvent),
		post(views.RequeueEventURL(p, id), tenant.PermRedeliver, s.requeueEvent),

		get(views.EndpointsURL(p, views.EndpointFilter{}), tenant.PermSee, s.showEndpoints),
		post(views.EndpointsURL(p, views.EndpointFilter{}), tenant.PermManageEndpoints, s.createEndpoint),
		get(views.NewEndpointURL(p), tenant.PermManageEndpoints, s.showNewEndpoint),
		get(views.EndpointURL(p, id), tenant.PermSee, s.showEndpoint),
		get(views.EditEndpointURL(p, id), tenant.PermManageEndpoints, s.showEditEndpoint),
		post(views.EditEndpointURL(p, id), tenant.PermManageEndpoints, s.editEndpoint),
		post(views.DeleteEndpointURL(p, id), tenant.PermManageEndpoints, s.deleteEndpoint),
		post(views.TestEndpointURL(p, id), tenant.PermSendTest, s.testEndpoint),
		post(views.RotateSecretURL(p, id), tenant.PermManageEndpoints, s.rotateSecret),
		post(views.PauseEndpointURL(p, id), tenant.PermPauseEndpoint, s.pauseEndpoint),
		post(views.ResumeEndpointURL(p, id), tenant.PermPauseEndpoint, s.resumeEndpoint),
		post(views.DisableEndpointURL(p, id), tenant.PermManageEndpoints, s.disableEndpoint),
		post(views.ReactivateEndpointURL(p, id), tenant.PermReactivate, s.reactivateEndpoint),
		get(views.RedeliverEndpointURL(p, id), tenant.PermRedeliver, s.showRedeliver),
		post(views.RedeliverEndpointURL(p, id), tenant.PermRedeliver, s.redeliverEndpoint),

		get(views.AlertsURL(p, ""), tenant.PermSee, s.showAlerts),
		post(views.AcknowledgeAlertURL(p, id), tenant.PermAcknowledge, s.acknowledgeAlert),
		post(views.ResolveAlertURL(p, id), tenant.PermAcknowledge, s.resolveAlert),

		get(views.HealthURL(p, ""), tenant.PermSee, s.showHealth),
		get(views.PoliciesURL(p), tenant.PermSee, s.showPolicies),
		get(views.PolicyURL(p, ":kind", ":profile"), tenant.PermSee, s.showPolicy),
		post(views.ChooseProfileURL(p), tenant.PermChooseProfile, s.chooseProfile),
		get(views.SimulateURL(p, ""), tenant.PermSee, s.showSimulation),

		get(views.TeamURL(p), tenant.PermSee, s.showTeam),
		post(views.ApproveRequestURL(p, id), tenant.PermManageTeam, s.approveRequest),
		post(views.DeclineRequestURL(p, id), tenant.PermManageTeam, s.declineRequest),
		post(views.ChangeRoleURL(p, id), tenant.PermManageTeam, s.changeRole),
		post(views.RemoveMemberURL(p, id), tenant.PermSee, s.removeMember),
		get(views.KeysURL(p), tenant.PermSee, s.showKeys),
		post(views.KeysURL(p), tenant.PermManageKeys, s.createKey),
		post(views.RevokeKeyURL(p, id), tenant.PermManageKeys, s.revokeKey),
		get(views.AuditURL(p, views.AuditFilter{}), tenant.PermSee, s.showAudit),
		get(views.AuditCSVURL(p, views.AuditFilter{}), tenant.PermSee, s.exportAudit).forLong(),
		get(views.SettingsURL(p), tenant.PermSee, s.showSettings),
		post(views.SettingsURL(p), tenant.PermManageTeam, s.changeSettings),
	}
	return append(append(all, s.peopleRoutes()...), s.mailRoutes()...)
}

func (r route) forLong() route {
	r.long = true
	return r
}
