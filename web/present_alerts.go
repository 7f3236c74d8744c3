package web

import (
	"entrega/internal/alerts"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

func presentAlerts(v *visit, list []alerts.Alert, redeliverable map[string]int) []views.AlertRow {
	rows := make([]views.AlertRow, 0, len(list))
	for _, a := range list {
		rows = append(rows, presentAlert(v, a, redeliverable[a.EndpointID]))
	}
	return rows
}

// presentAlert shows an alert with what the visitor may do about it. What an alert of the installation is about has no page in
// the project.
func presentAlert(v *visit, a alerts.Alert, redeliver int) views.AlertRow {
	rule := alerts.RuleOf(a.Kind)
	row := views.AlertRow{ID: a.ID, State: string(a.State), Tone: views.Warn, Title: rule.Title, Subject: a.About, Text: a.Text,
		Count: int(a.Count), FirstAt: a.FirstAt, LastAt: a.LastAt, By: alertBy(v, a)}
	if rule.Grave {
		row.Tone = views.Bad
	}
	act := v.can(tenant.PermAcknowledge)
	row.CanAcknowledge = act && a.State == alerts.StateOpen
	row.CanResolve = act && a.State != alerts.StateResolved
	if a.ProjectID == "" {
		row.Title += ", installation"
		return row
	}
	row.Endpoint, row.Event = a.EndpointID, a.EventID
	if f, ok := a.Tasks(); ok && a.State != alerts.StateResolved {
		row.HasTasks, row.Tasks = true, views.TaskFilter{State: string(f.State), Kind: f.Kind, Endpoint: f.EndpointID}
	}
	if a.State != alerts.StateResolved {
		row.CanReactivate = a.Kind == alerts.EndpointDisabled && v.can(tenant.PermReactivate)
		row.CanRedeliver = a.Kind == alerts.TaskDiscarded && v.can(tenant.PermRedeliver)
		row.Redeliver = redeliver
	}
	return row
}

// alertBy says who or what brought an alert into its state. Addresses of people are masked for viewers.
func alertBy(v *visit, a alerts.Alert) string {
	switch {
	case a.State == alerts.StateAcknowledged:
		return emailFor(v, a.AcknowledgedBy)
	case a.ResolvedBy != "":
		return emailFor(v, a.ResolvedBy)
	default:
		return a.ResolvedWhy
	}
}

func alertPager(project, state string, list store.List[alerts.Alert]) views.Pager {
	var p views.Pager
	if list.Prev != "" {
		p.NewerURL = views.AlertsPageURL(project, state, "", list.Prev)
	}
	if list.Next != "" {
		p.OlderURL = views.AlertsPageURL(project, state, list.Next, "")
	}
	return p
}
