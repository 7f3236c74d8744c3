package web

import (
	"time"

	"entrega/internal/tenant"
	"entrega/views"
)

func presentTeam(l views.Layout, v *visit, members []tenant.Member, seen map[string]time.Time, requests []tenant.AccessRequest) views.TeamProps {
	manage := v.can(tenant.PermManageTeam)
	p := views.TeamProps{Layout: l, Roles: roleOptions(), ProjectID: v.project.ID}
	for _, m := range members {
		email := emailFor(v, m.Email)
		p.Members = append(p.Members, views.Member{ID: m.UserID, Name: email, Role: roleWord(m.Role), Since: m.CreatedAt, LastSeenAt: seen[m.UserID],
			You: m.UserID == v.user.ID, CanChange: manage, CanRemove: manage || m.UserID == v.user.ID})
	}
	for _, r := range requests {
		p.Requests = append(p.Requests, views.AccessRequest{ID: r.ID, Name: emailFor(v, r.Email), Reason: r.Message, Project: v.project.Name,
			At: r.CreatedAt, State: string(r.State), Mail: r.MailState, DecidedBy: emailFor(v, r.DecidedBy),
			CanDecide: manage && r.State == tenant.AccessPending})
	}
	return p
}

func roleOptions() []views.Option {
	return []views.Option{
		{Value: "owner", Label: "Owner: everything"},
		{Value: "on-call", Label: "On-call: see, retry, cancel, redeliver, acknowledge, send tests, pause an endpoint"},
		{Value: "viewer", Label: "Viewer: see, with payloads and addresses masked"},
	}
}
