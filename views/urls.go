package views

import (
	"net/url"
	"strconv"
	"strings"
)

// Every address of the panel is made here, so that a route and the links to it
// cannot part. The functions escape each segment but leave ":" alone: a route
// is registered with the same function as a link, TaskURL(":project", ":id").

// join builds a path of escaped segments.
func join(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// inProject builds a path below the project's own.
func inProject(project string, segments ...string) string {
	return "/p/" + url.PathEscape(project) + join(segments...)
}

// withQuery appends the non-empty values, sorted by name.
func withQuery(path string, values url.Values) string {
	for name, v := range values {
		if len(v) == 0 || v[0] == "" {
			delete(values, name)
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// Pages and actions outside of any project.

func HomeURL() string  { return "/" }
func LoginURL() string { return "/login" }
func LoginWithURL(next string) string {
	return withQuery("/login", url.Values{"next": {next}})
}
func OIDCLoginURL() string { return "/login/oidc" }
func OIDCLoginWithURL(next string) string {
	return withQuery("/login/oidc", url.Values{"next": {next}})
}
func OIDCCallbackURL() string               { return "/login/oidc/callback" }
func LogoutURL() string                     { return "/logout" }
func SignUpURL() string                     { return "/signup" }
func SignUpSentURL() string                 { return "/signup?sent=1" }
func SetUpURL(token string) string          { return join("setup", token) }
func ConfirmURL(token string) string        { return join("confirm", token) }
func ConfirmAddressURL(token string) string { return join("confirm", "address", token) }
func ChangeEmailURL() string                { return "/account/email" }
func ProjectsURL() string                   { return "/projects" }
func RequestAccessURL() string              { return "/projects/access" }
func AccountURL() string                    { return "/account" }
func PasswordURL() string                   { return "/account/password" }
func RevokeSessionURL(id string) string     { return join("account", "sessions", id, "revoke") }
func RevokeOtherSessionsURL() string        { return "/account/sessions/revoke-others" }

// OverviewURL is the first page of a project.
func OverviewURL(project string) string { return inProject(project) }

// StreamURL sends the server-sent hints of a project.
func StreamURL(project string) string { return inProject(project, "stream") }

// Tasks and bulk actions.

func TasksURL(project string, f TaskFilter) string {
	return withQuery(inProject(project, "tasks"), f.values())
}
func TasksCSVURL(project string, f TaskFilter) string {
	return withQuery(inProject(project, "tasks.csv"), f.Page("", "").values())
}
func TaskURL(project, id string) string { return inProject(project, "tasks", id) }

// TaskAttemptURL is the task page with the request and response of one attempt.
func TaskAttemptURL(project, id string, attempt int) string {
	return TaskURL(project, id) + "?attempt=" + strconv.Itoa(attempt) + "#exchange"
}
func RetryTaskURL(project, id string) string  { return inProject(project, "tasks", id, "retry") }
func CancelTaskURL(project, id string) string { return inProject(project, "tasks", id, "cancel") }

// BulkURL shows what a bulk action would touch (GET) and starts it (POST with
// the same query). Action is "retry" or "cancel".
func BulkURL(project, action string, f TaskFilter) string {
	v := f.Page("", "").values()
	v.Set("action", action)
	return withQuery(inProject(project, "bulk"), v)
}
func BulkRunURL(project, id string) string    { return inProject(project, "bulk", id) }
func CancelBulkURL(project, id string) string { return inProject(project, "bulk", id, "cancel") }

// Events.

func EventsURL(project string, f EventFilter) string {
	return withQuery(inProject(project, "events"), f.values())
}
func EventsCSVURL(project string, f EventFilter) string {
	return withQuery(inProject(project, "events.csv"), f.Page("", "").values())
}
func EventURL(project, id string) string        { return inProject(project, "events", id) }
func EventPayloadURL(project, id string) string { return inProject(project, "events", id, "payload") }
func RedeliverEventURL(project, id string) string {
	return inProject(project, "events", id, "redeliver")
}
func RequeueEventURL(project, id string) string { return inProject(project, "events", id, "requeue") }

// PublishTestURL publishes a test event (POST type, data, subscriber).
func PublishTestURL(project string) string { return inProject(project, "events", "test") }

// Endpoints. EndpointsURL also takes the POST that creates one.

func EndpointsURL(project string, f EndpointFilter) string {
	return withQuery(inProject(project, "endpoints"), url.Values{
		"health": {f.Health}, "q": {f.Query}, "after": {f.After}, "before": {f.Before},
	})
}
func NewEndpointURL(project string) string      { return inProject(project, "endpoints", "new") }
func EndpointURL(project, id string) string     { return inProject(project, "endpoints", id) }
func EditEndpointURL(project, id string) string { return inProject(project, "endpoints", id, "edit") }
func DeleteEndpointURL(project, id string) string {
	return inProject(project, "endpoints", id, "delete")
}
func TestEndpointURL(project, id string) string { return inProject(project, "endpoints", id, "test") }
func RotateSecretURL(project, id string) string {
	return inProject(project, "endpoints", id, "rotate-secret")
}
func PauseEndpointURL(project, id string) string { return inProject(project, "endpoints", id, "pause") }
func ResumeEndpointURL(project, id string) string {
	return inProject(project, "endpoints", id, "resume")
}
func DisableEndpointURL(project, id string) string {
	return inProject(project, "endpoints", id, "disable")
}
func ReactivateEndpointURL(project, id string) string {
	return inProject(project, "endpoints", id, "reactivate")
}

// RedeliverEndpointURL shows how many deliveries a redeliver would take (GET
// scope, since) and starts it (POST scope, since, confirm).
func RedeliverEndpointURL(project, id string) string {
	return inProject(project, "endpoints", id, "redeliver")
}

// Alerts, retry health, periodic jobs.

// AlertsURL lists alerts of a state: "" is open ones, else "acknowledged",
// "resolved" or "all".
func AlertsURL(project, state string) string {
	return withQuery(inProject(project, "alerts"), url.Values{"state": {state}})
}

// AlertsPageURL is AlertsURL at a cursor; both empty is the first page.
func AlertsPageURL(project, state, after, before string) string {
	return withQuery(inProject(project, "alerts"), url.Values{"state": {state}, "after": {after}, "before": {before}})
}
func AcknowledgeAlertURL(project, id string) string {
	return inProject(project, "alerts", id, "acknowledge")
}
func ResolveAlertURL(project, id string) string { return inProject(project, "alerts", id, "resolve") }
func HealthURL(project, period string) string {
	return withQuery(inProject(project, "health"), url.Values{"period": {period}})
}
func PeriodicURL(project string) string          { return inProject(project, "periodic") }
func RunPeriodicURL(project, name string) string { return inProject(project, "periodic", name, "run") }

// Policies.

func PoliciesURL(project string) string { return inProject(project, "policies") }

// PolicyURL is one policy with its history. A kind without profiles has the
// profile "default" in its address.
func PolicyURL(project, kind, profile string) string {
	if profile == "" {
		profile = "default"
	}
	return inProject(project, "policies", kind, profile)
}

// PolicyDiffURL is the same page with the difference to the version before.
func PolicyDiffURL(project, kind, profile string, version int) string {
	return PolicyURL(project, kind, profile) + "?version=" + strconv.Itoa(version) + "#diff"
}
func ChooseProfileURL(project string) string { return inProject(project, "policies", "profile") }

// SimulateURL runs a made-up history through a policy (GET policy, outcomes).
func SimulateURL(project, policy string) string {
	return withQuery(inProject(project, "simulate"), url.Values{"policy": {policy}})
}

// Team, keys, audit, settings. KeysURL and SettingsURL also take the POST.

func TeamURL(project string) string { return inProject(project, "team") }
func ApproveRequestURL(project, id string) string {
	return inProject(project, "team", "requests", id, "approve")
}
func DeclineRequestURL(project, id string) string {
	return inProject(project, "team", "requests", id, "decline")
}
func ChangeRoleURL(project, member string) string {
	return inProject(project, "team", "members", member, "role")
}
func RemoveMemberURL(project, member string) string {
	return inProject(project, "team", "members", member, "remove")
}
func KeysURL(project string) string          { return inProject(project, "keys") }
func RevokeKeyURL(project, id string) string { return inProject(project, "keys", id, "revoke") }
func SettingsURL(project string) string      { return inProject(project, "settings") }

// AuditURL is the audit log of a project.
func AuditURL(project string, f AuditFilter) string {
	return withQuery(inProject(project, "audit"), f.values())
}

// AuditCSVURL is the audit log as CSV, without pages.
func AuditCSVURL(project string, f AuditFilter) string {
	return withQuery(inProject(project, "audit.csv"), f.Page("", "").values())
}

// Pages of the admin of the installation.

func AdminProjectsURL(query string) string {
	return withQuery("/admin/projects", url.Values{"q": {query}})
}

// AdminProjectsPageURL is the list at another cursor.
func AdminProjectsPageURL(query, after, before string) string {
	return withQuery("/admin/projects", url.Values{"q": {query}, "after": {after}, "before": {before}})
}
func AdminDisabledURL() string { return "/admin/disabled" }

// AdminDisabledPageURL is the list at another cursor.
func AdminDisabledPageURL(after, before string) string {
	return withQuery("/admin/disabled", url.Values{"after": {after}, "before": {before}})
}
func AdminSystemURL() string { return "/admin/system" }
func AdminReactivateURL(project, id string) string {
	return join("admin", "disabled", project, id, "reactivate")
}
func AdminPauseQueueURL(queue string) string  { return join("admin", "queues", queue, "pause") }
func AdminResumeQueueURL(queue string) string { return join("admin", "queues", queue, "resume") }

// AdminAuditURL is what was done in the whole installation.
func AdminAuditURL(f AuditFilter) string { return withQuery("/admin/audit", f.values()) }

// AdminConfirmURL makes a new confirmation link for somebody who signed up, and shows it once.
func AdminConfirmURL(user string) string { return join("admin", "people", user, "link") }
