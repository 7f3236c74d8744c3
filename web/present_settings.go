package web

import (
	"fmt"

	"entrega/internal/events"
	"entrega/internal/tenant"
	"entrega/views"
)

func presentSettings(l views.Layout, v *visit, name, profile string, problems map[string]string, profiles []string, api string) views.SettingsProps {
	return views.SettingsProps{
		Layout: l, Name: name, Profile: profile, Profiles: sameOptions(profiles), Problems: problems,
		CanEdit: v.can(tenant.PermManageTeam) && v.can(tenant.PermChooseProfile), API: api + "/v1",
		SQL:   "select entrega.publish('" + v.project.ID + "', 'order.created', '{\"orderId\":\"SO-10482\"}');",
		Grant: "grant usage on schema entrega to the_application;",
		Facts: []views.Fact{
			{Label: "Created", Value: v.project.CreatedAt.UTC().Format("2 Jan 2006")},
			{Label: "Largest payload", Value: fmt.Sprintf("%d KiB", events.MaxDataBytes>>10)},
			{Label: "Largest batch", Value: plural(events.MaxBatch, "event", "events")},
		},
	}
}
