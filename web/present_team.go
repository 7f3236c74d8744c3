package web

import (
	"slices"
	"time"

	"entrega/internal/tenant"
	"entrega/views"
)

func presentTeam(l views.Layout, v *visit, members []tenant.Member, seen map[string]time.Time, requests []tenant.AccessRequest) views.TeamProps {
	manage := v.can(tenant.PermManageTeam)
	p := views.TeamProps{Layout: l, Roles: roleOptions(), ProjectID: v.project.ID}
	for _, m := range members {
		p.Members = append(p.Members, views.Member{ID: m.UserID, Email: emailFor(v, m.Email), Role: roleWord(m.Role), Since: m.CreatedAt, LastSeenAt: seen[m.UserID],
			You: m.UserID == v.user.ID, CanChange: manage, CanRemove: manage})
	}
	// Those that wait come first, each part newest first.
	slices.SortStableFunc(requests, func(a, b tenant.AccessRequest) int { return waitingFirst(a) - waitingFirst(b) })
	for _, r := range requests {
		p.Requests = append(p.Requests, views.AccessRequest{ID: r.ID, Email: r.Email, Reason: r.Message, At: r.CreatedAt, State: string(r.State),
			Mail: r.MailState, MailNote: mailNote(r), DecidedBy: r.DecidedBy, CanDecide: r.State == tenant.AccessPending})
	}
	return p
}

func waitingFirst(r tenant.AccessRequest) int {
	if r.State == tenant.AccessPending {
		return 0
	}
	return 1
}

// mailNote says what the state of a request's mail means, where its word does not.
func mailNote(r tenant.AccessRequest) string {
	switch {
	case r.MailState == "failed":
		return "Tell them yourself."
	case r.MailState == "captured":
		return "Kept here and not sent: tell them yourself."
	case r.RepliedAt != nil:
		return "The answer was accepted for delivery."
	default:
		return ""
	}
}

func roleOptions() []views.Option {
	return []views.Option{
		{Value: "owner", Label: "Owner: everything"},
		{Value: "on-call", Label: "On-call: see, retry, cancel, redeliver, acknowledge, send tests, pause an endpoint"},
		{Value: "viewer", Label: "Viewer: see, with payloads and addresses masked"},
	}
}
