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
		Subject: e.SubjectKind + " " + e.SubjectID, Reason: auditReason(e.Detail)}
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
		{"bulk.retry", "retried many tasks"}, {"bulk.cancel", "cancelled many tasks, or stopped a bulk action"},
		{"endpoint.create", "created the endpoint"}, {"endpoint.update", "changed the endpoint"}, {"endpoint.delete", "deleted the endpoint"},
		{"endpoint.disable", "disabled the endpoint"}, {"endpoint.reactivate", "reactivated the endpoint"},
		{"endpoint.pause", "paused the endpoint"}, {"endpoint.unpause", "resumed the endpoint"},
		{"endpoint.rotate_secret", "rotated the secret"}, {"endpoint.test", "sent a test"}, {"endpoint.redeliver", "redelivered"},
		{"event.redeliver", "redelivered the event"}, {"event.requeue", "requeued the event"}, {"event.publish_test", "published a test event"},
		{"alert.acknowledge", "acknowledged the alert"}, {"alert.resolve", "resolved the alert"},
		{"project.create", "created the project"}, {"project.rename", "renamed the project"}, {"project.choose_profile", "chose a profile"},
		{"member.add", "added a member"}, {"member.change_role", "changed a role"}, {"member.remove", "removed a member"},
		{"access.request", "asked for access"}, {"access.approve", "approved access"}, {"access.decline", "declined access"},
		{"api_key.create", "created an API key"}, {"api_key.revoke", "revoked an API key"},
	}
}

// actionWords turn a recorded action, noun.verb, into what somebody did.
func actionWords(action string) string {
	for _, known := range auditActions() {
		if known.action == action {
			return known.words
		}
	}
	noun, verb, _ := strings.Cut(action, ".")
	return spaced(verb) + " " + spaced(noun)
}

// auditReason is the reason that somebody gave, or the words of a rule.
func auditReason(detail json.RawMessage) string {
	var d struct {
		Reason string `json:"reason"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(detail, &d) != nil {
		return ""
	}
	if d.Detail != "" {
		return d.Detail
	}
	return d.Reason
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
