package web

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

func projectIDs(projects []tenant.Membership) []string {
	ids := make([]string, len(projects))
	for i, p := range projects {
		ids[i] = p.ID
	}
	return ids
}

// lastEvents reads when each project last had an event.
func lastEvents(ctx context.Context, db store.DB, projects []string) (map[string]time.Time, error) {
	rows, err := db.Query(ctx, `
		select p.id, e.created_at from unnest($1::text[]) as p (id)
		cross join lateral (
			select created_at from events where project_id = p.id order by created_at desc, seq desc limit 1
		) e`, projects)
	if err != nil {
		return nil, fmt.Errorf("read the last events: %w", err)
	}
	last := make(map[string]time.Time, len(projects))
	var id string
	var at time.Time
	if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error { last[id] = at; return nil }); err != nil {
		return nil, fmt.Errorf("read the last events: %w", err)
	}
	return last, nil
}

func presentProjectList(props *views.ProjectsProps, projects []tenant.Membership, last map[string]time.Time, open map[string]int, requests []tenant.AccessRequest) {
	props.CanCreate, props.CanRequest = true, true
	for _, p := range projects {
		props.Projects = append(props.Projects, views.ProjectRow{ID: p.ID, Name: p.Name, Role: roleWord(p.Role), LastEventAt: last[p.ID], OpenAlerts: open[p.ID]})
	}
	for _, r := range requests {
		// The project's name is not for who is not in it.
		props.Requests = append(props.Requests, views.OwnRequest{Project: r.ProjectID, State: string(r.State), At: r.CreatedAt})
	}
}
