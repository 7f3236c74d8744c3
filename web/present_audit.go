package web

import (
	"encoding/json"
	"strconv"
	"strings"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// presentClicks shows what was done to one subject.
func presentClicks(v *visit, entries []tenant.AuditEntry) []views.AuditRow {
	rows := make([]views.AuditRow, 0, len(entries))
	for _, e := range entries {
		rows = append(rows, presentAuditRow(v, e))
	}
	return rows
}

func presentAuditRow(v *visit, e tenant.AuditEntry) views.AuditRow {
	row := views.AuditRow{ID: strconv.FormatInt(e.ID, 10), At: e.At, Actor: actorWord(v, e), Action: actionWords(e.Action),
		Subject: subjectWord(e.SubjectKind, e.SubjectID), Reason: auditNote(v, e)}
	switch e.SubjectKind {
	case "task":
		row.SubjectURL = views.TaskURL(e.ProjectID, e.SubjectID)
	case "endpoint":
		row.SubjectURL = views.EndpointURL(e.ProjectID, e.SubjectID)
	case "event":
		row.SubjectURL = views.EventURL(e.ProjectID, e.SubjectID)
	}
	return row
}

// subjectWord names a subject; most ids say by themselves of what they are.
func subjectWord(kind, id string) string {
	if strings.Contains(id, "_") {
		return id
	}
	return spaced(kind) + " " + id
}

// actorWord names who did it. Addresses of people are masked for viewers.
func actorWord(v *visit, e tenant.AuditEntry) string {
	switch e.ActorKind {
	case tenant.ActorSystem:
		return "Entrega"
	case tenant.ActorCLI:
		return "Command line"
	case tenant.ActorAPIKey:
		return "API key " + e.ActorName
	default:
		return emailFor(v, e.ActorName)
	}
}

// emailFor masks the local part of an address for viewers.
func emailFor(v *visit, email string) string {
	local, domain, ok := strings.Cut(email, "@")
	if !ok || v.can(tenant.PermSeePayloads) || email == v.user.Email {
		return email
	}
	return firstRunes(local, 1) + masked + "@" + domain
}

// auditAction is a recorded action with what somebody did in words.
type auditAction struct{ action, words string }

// auditActions lists what is recorded in a project, in the order of the filter.
func auditActions() []auditAction {
	return []auditAction{
		{"task.retry", "retried the task"}, {"task.cancel", "cancelled the task"},
		{"bulk.retry", "retried many tasks"}, {"bulk.cancel", "cancelled many tasks"}, {"bulk.stop", "stopped a bulk action"},
		{"endpoint.create", "created the endpoint"}, {"endpoint.update", "changed the endpoint"}, {"endpoint.delete", "deleted the endpoint"},
		{"endpoint.disable", "disabled the endpoint"}, {"endpoint.reactivate", "reactivated the endpoint"},
		{"endpoint.pause", "paused the endpoint"}, {"endpoint.unpause", "resumed the endpoint"},
		{"endpoint.rotate_secret", "rotated the secret"}, {"endpoint.test", "sent a test"}, {"endpoint.redeliver", "redelivered"},
		{"event.redeliver", "redelivered the event"}, {"event.requeue", "requeued the event"}, {"event.publish_test", "published a test event"},
		{"alert.acknowledge", "acknowledged the alert"}, {"alert.resolve", "resolved the alert"},
		{"mail.send_again", "sent a mail again"}, {"mail.test", "sent a test mail"}, {"mail.set_transport", "set the mail transport"},
		{"mail.clear_transport", "removed the mail transport"}, {"suppression.remove", "removed a suppression"}, {"recipient.erase", "erased a recipient"},
		{"project.create", "created the project"}, {"project.rename", "renamed the project"}, {"project.choose_profile", "chose a profile"},
		{"member.add", "added a member"}, {"member.change_role", "changed a role"}, {"member.remove", "removed a member"},
		{"access.request", "asked for access"}, {"access.approve", "approved access"}, {"access.decline", "declined access"},
		{"api_key.create", "created an API key"}, {"api_key.revoke", "revoked an API key"},
		{"periodic.run", "ran a periodic job"},
	}
}

// installationActions lists what is recorded for no project, in the order of the filter.
func installationActions() []auditAction {
	return []auditAction{
		{"user.log_in", "logged in"}, {"user.set_up", "set up the installation"}, {"user.create", "created a user"},
		{"user.sign_up", "signed up"}, {"user.make_link", "made a confirmation link"}, {"user.confirm_email", "confirmed the address"},
		{"user.ask_change_email", "asked to change the address"}, {"user.change_email", "changed the address"},
		{"user.set_password", "set the password"}, {"user.set_admin", "changed who is admin"},
		{"mail.read_source", "read the source of a mail"}, {"queue.pause", "paused a queue"}, {"queue.resume", "resumed a queue"},
	}
}

// actionWords turn a recorded action, noun.verb, into what somebody did.
func actionWords(action string) string {
	for _, known := range append(installationActions(), auditActions()...) {
		if known.action == action {
			return known.words
		}
	}
	noun, verb, _ := strings.Cut(action, ".")
	return spaced(verb) + " " + spaced(noun)
}

// auditDetail is what may stand in an entry's detail and help to understand it.
type auditDetail struct {
	Reason string   `json:"reason"`
	Detail string   `json:"detail"`
	Email  string   `json:"email"`
	Role   string   `json:"role"`
	Name   string   `json:"name"`
	Scopes []string `json:"scopes"`
	Total  *int     `json:"total"`
	// Before and After are roles, or the name and profile of a project.
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// auditNote is the reason that somebody gave, the words of a rule, or what changed.
func auditNote(v *visit, e tenant.AuditEntry) string {
	var d auditDetail
	if json.Unmarshal(e.Detail, &d) != nil {
		return ""
	}
	noun, _, _ := strings.Cut(e.Action, ".")
	switch {
	case d.Detail != "":
		return d.Detail
	case noun == "user":
		return emailFor(v, d.Email)
	case noun == "member" || noun == "access":
		return memberNote(v, d)
	case noun == "api_key" && len(d.Scopes) > 0:
		return d.Name + ": " + strings.Join(d.Scopes, ", ")
	case noun == "api_key" || noun == "project" && d.Name != "":
		return d.Name
	case noun == "project":
		return projectNote(d)
	case noun == "bulk" && d.Total != nil:
		return plural(*d.Total, "task", "tasks")
	default:
		return d.Reason
	}
}

// memberNote says who it was about, and the role.
func memberNote(v *visit, d auditDetail) string {
	var before, after tenant.Role
	note := emailFor(v, d.Email)
	switch {
	case json.Unmarshal(d.Before, &before) == nil && json.Unmarshal(d.After, &after) == nil:
		note += ", from " + roleWord(before) + " to " + roleWord(after)
	case d.Role != "":
		note += ", " + roleWord(tenant.Role(d.Role))
	}
	return note
}

// projectNote says what a project had before and after.
func projectNote(d auditDetail) string {
	var before, after struct {
		Name    string `json:"name"`
		Profile string `json:"profile"`
	}
	if json.Unmarshal(d.Before, &before) != nil || json.Unmarshal(d.After, &after) != nil {
		return ""
	}
	if before.Name != after.Name {
		return "from " + before.Name + " to " + after.Name
	}
	return "from " + before.Profile + " to " + after.Profile
}

func presentAudit(l views.Layout, v *visit, q views.AuditFilter, list store.List[tenant.AuditEntry], actors []views.Option) views.AuditProps {
	p := views.AuditProps{Layout: l, Filter: q, Actors: actors, Rows: presentClicks(v, list.Rows), CanExport: true}
	for _, action := range auditActions() {
		p.Actions = append(p.Actions, views.Option{Value: action.action, Label: capital(action.words)})
	}
	if list.Prev != "" {
		p.Pager.NewerURL = views.AuditURL(v.project.ID, q.Page("", list.Prev))
	}
	if list.Next != "" {
		p.Pager.OlderURL = views.AuditURL(v.project.ID, q.Page(list.Next, ""))
	}
	return p
}

// presentAllAudit shows the log of all projects, by the names of those.
func presentAllAudit(l views.Layout, v *visit, q views.AuditFilter, list store.List[tenant.AuditEntry], names map[string]string) views.AdminAuditProps {
	p := views.AdminAuditProps{Layout: l, Filter: q}
	for _, e := range list.Rows {
		row := presentAuditRow(v, e)
		row.Project = &views.Project{ID: e.ProjectID, Name: names[e.ProjectID]}
		p.Rows = append(p.Rows, row)
	}
	for _, action := range append(installationActions(), auditActions()...) {
		p.Actions = append(p.Actions, views.Option{Value: action.action, Label: capital(action.words)})
	}
	if list.Prev != "" {
		p.Pager.NewerURL = views.AdminAuditURL(q.Page("", list.Prev))
	}
	if list.Next != "" {
		p.Pager.OlderURL = views.AdminAuditURL(q.Page(list.Next, ""))
	}
	return p
}

func presentActors(v *visit, members []tenant.Member, keys []tenant.APIKey) []views.Option {
	var options []views.Option
	for _, m := range members {
		options = append(options, views.Option{Value: string(tenant.ActorUser) + ":" + m.UserID, Label: emailFor(v, m.Email)})
	}
	for _, k := range keys {
		options = append(options, views.Option{Value: string(tenant.ActorAPIKey) + ":" + k.ID, Label: "API key " + k.Name})
	}
	return append(options, views.Option{Value: string(tenant.ActorSystem), Label: "Entrega"}, views.Option{Value: string(tenant.ActorCLI), Label: "Command line"})
}
