package web

import (
	"strings"

	"entrega/internal/tenant"
	"entrega/views"
)

// navigation lists the sections that the visitor may open. A page that does not exist is not listed.
func navigation(v *visit) []views.NavItem {
	var items []views.NavItem
	add := func(sections ...views.Section) {
		for _, section := range sections {
			items = append(items, views.NavItem{Section: section})
		}
	}
	if v.project.ID != "" {
		add(views.SectionOverview, views.SectionTasks, views.SectionEvents, views.SectionEndpoints, views.SectionMail, views.SectionAlerts, views.SectionHealth,
			views.SectionPeriodic, views.SectionPolicies, views.SectionTeam, views.SectionKeys, views.SectionAudit, views.SectionSettings)
	}
	if v.user.Admin {
		add(views.SectionAdminProjects, views.SectionAdminDisabled, views.SectionAdminMail, views.SectionAdminAudit, views.SectionAdminSystem)
	}
	return items
}

func presentProjects(memberships []tenant.Membership, v *visit) []views.Project {
	projects := make([]views.Project, 0, len(memberships)+1)
	listed := false
	for _, m := range memberships {
		projects = append(projects, views.Project{ID: m.ID, Name: m.Name})
		listed = listed || m.ID == v.project.ID
	}
	if v.project.ID != "" && !listed { // An admin looks at a project of others.
		projects = append(projects, views.Project{ID: v.project.ID, Name: v.project.Name})
	}
	return projects
}

func presentUser(v *visit) views.User {
	return views.User{Email: v.user.Email, Role: roleWord(v.actor.Role), Admin: v.user.Admin}
}

// roleWord is a role as people say it.
func roleWord(r tenant.Role) string { return strings.ReplaceAll(string(r), "_", "-") }

func presentError(l views.Layout, a answer, v *visit, requestID string) views.ErrorProps {
	return views.ErrorProps{Layout: l, Status: a.status, Title: a.title, Sentence: a.sentence, RequestID: requestID, Inside: v.known()}
}

// wants tells whether a list of parts, as the X-Fragment header has it, names one.
func wants(parts, name string) bool {
	for part := range strings.SplitSeq(parts, ",") {
		if strings.TrimSpace(part) == name {
			return true
		}
	}
	return false
}
