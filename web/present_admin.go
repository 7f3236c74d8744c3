package web

import (
	"strconv"
	"strings"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

func presentAllProjects(p *views.AdminProjectsProps, list store.List[tenant.ProjectSummary], figures map[string]projectFigures) {
	for _, project := range list.Rows {
		f := figures[project.ID]
		p.Rows = append(p.Rows, views.AdminProject{ID: project.ID, Name: project.Name, Owners: strings.Join(project.Owners, ", "), Members: project.Members,
			Endpoints: f.endpoints, Disabled: f.disabled, OpenAlerts: f.openAlerts, CreatedAt: project.CreatedAt, LastEventAt: f.lastEvent})
	}
	if list.Prev != "" {
		p.Pager.NewerURL = views.AdminProjectsPageURL(p.Query, "", list.Prev)
	}
	if list.Next != "" {
		p.Pager.OlderURL = views.AdminProjectsPageURL(p.Query, list.Next, "")
	}
}

func presentDisabled(l views.Layout, list store.List[webhooks.Endpoint], facts map[string]disabledFacts) views.AdminDisabledProps {
	p := views.AdminDisabledProps{Layout: l}
	for _, e := range list.Rows {
		f := facts[e.ID]
		p.Rows = append(p.Rows, views.AdminDisabledRow{Project: views.Project{ID: e.ProjectID, Name: f.project}, ID: e.ID, Name: endpointName(e),
			DisabledAt: orZero(e.DisabledAt), Reason: capital(disabledWord(e.DisabledReason)), Detail: e.DisabledDetail, Missed: min(f.missed, countMost-1), MissedCapped: f.missed >= countMost, CanReactivate: true})
	}
	if list.Prev != "" {
		p.Pager.NewerURL = views.AdminDisabledPageURL("", list.Prev)
	}
	if list.Next != "" {
		p.Pager.OlderURL = views.AdminDisabledPageURL(list.Next, "")
	}
	return p
}

func presentSystem(l views.Layout, s system, version string) views.AdminSystemProps {
	p := views.AdminSystemProps{Layout: l, Outbox: presentOutbox(s.outbox), Facts: []views.Fact{
		{Label: "Entrega", Value: version},
		{Label: "Schema", Value: strconv.Itoa(s.ours)},
		{Label: "Schema of River", Value: strconv.Itoa(s.river)},
		{Label: "Postgres", Value: s.postgres},
	}}
	for _, n := range s.nodes {
		p.Nodes = append(p.Nodes, views.Node{Name: n.ID, Host: n.Host, Version: n.Version, StartedAt: n.StartedAt, LastSeenAt: n.SeenAt, Leader: n.ID == s.leader})
	}
	workers := jobs.DefaultQueues()
	for _, q := range s.queues {
		p.Queues = append(p.Queues, views.Queue{Name: q.Name, Workers: workers[q.Name].Workers,
			Running: min(q.Running, jobs.CountLimit), RunningCapped: q.Running > jobs.CountLimit,
			Waiting: min(q.Available, jobs.CountLimit), WaitingCapped: q.Available > jobs.CountLimit,
			OldestAt: q.Oldest, PausedAt: q.PausedAt})
	}
	for i, t := range s.tables { // the largest first
		if i < tablesShown {
			p.Tables = append(p.Tables, views.TableSize{Name: t.Name, Rows: int(t.Rows), Bytes: t.Bytes})
		} else {
			p.Others.Bytes += t.Bytes
		}
		p.Database += t.Bytes
	}
	p.Others.Name = plural(len(s.tables)-len(p.Tables), "other", "others")
	for _, u := range s.waiting[:min(len(s.waiting), waitingShown)] {
		p.Waiting = append(p.Waiting, views.WaitingPerson{ID: u.ID, Email: u.Email, At: u.CreatedAt})
	}
	p.WaitingMore = len(s.waiting) > waitingShown
	return p
}

// presentOutbox leaves out the one too many that says that counting stopped.
func presentOutbox(o events.Outbox) views.Outbox {
	const most = events.OutboxLimit - 1
	return views.Outbox{Backlog: min(o.Waiting, most), BacklogCapped: o.Waiting > most, Failing: min(o.Failing, most),
		Poisoned: min(o.Poisoned, most), PoisonedCapped: o.Poisoned > most, OldestAt: o.OldestAt}
}
