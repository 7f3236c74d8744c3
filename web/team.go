package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// requestsShown is how many access requests the team page lists, decided ones included.
const requestsShown = 20

// showTeam lists the members and who asks to join.
func (s *Server) showTeam(c echo.Context) error {
	ctx, v := c.Request().Context(), visitOf(c)
	l, err := s.layout(c, "Team", views.SectionTeam)
	if err != nil {
		return err
	}
	members, err := tenant.ListMembers(ctx, s.pool, v.project.ID)
	if err != nil {
		return err
	}
	seen, err := readLastSeen(ctx, s.pool, v.project.ID)
	if err != nil {
		return err
	}
	var requests store.List[tenant.AccessRequest]
	if v.can(tenant.PermManageTeam) { // What people write when they ask is for those who decide.
		if requests, err = tenant.ListAccessRequests(ctx, s.pool, v.project.ID, "", store.Page{Limit: requestsShown}); err != nil {
			return err
		}
		if err := s.mailer.NoteReplies(ctx, s.pool, requests.Rows); err != nil {
			return err
		}
	}
	return s.page(c, http.StatusOK, views.Team(presentTeam(l, v, members, seen, requests.Rows)))
}

// approveRequest lets somebody in, in the role that was chosen.
func (s *Server) approveRequest(c echo.Context) error {
	v := visitOf(c)
	r, err := tenant.ApproveAccess(c.Request().Context(), s.pool, v.actor, v.project.ID, c.Param("id"), roleOf(c.Request().PostForm.Get("role")),
		func(tx pgx.Tx, r tenant.AccessRequest) error {
			return s.mailer.NotifyApprovedTx(c.Request().Context(), tx, r, s.publicURL.String()+views.OverviewURL(v.project.ID))
		})
	if err != nil {
		return err
	}
	return s.done(c, r.Email+" is in the project now, as "+roleWord(r.Role)+".", views.TeamURL(v.project.ID))
}

// declineRequest refuses a request.
func (s *Server) declineRequest(c echo.Context) error {
	v := visitOf(c)
	r, err := tenant.DeclineAccess(c.Request().Context(), s.pool, v.actor, v.project.ID, c.Param("id"))
	if err != nil {
		return err
	}
	return s.done(c, "The request of "+r.Email+" was declined.", views.TeamURL(v.project.ID))
}

// changeRole gives a member another role.
func (s *Server) changeRole(c echo.Context) error {
	v := visitOf(c)
	m, err := tenant.ChangeRole(c.Request().Context(), s.pool, v.actor, v.project.ID, c.Param("id"), roleOf(c.Request().PostForm.Get("role")))
	if err != nil {
		return err
	}
	return s.done(c, m.Email+" is "+roleWord(m.Role)+" now.", views.TeamURL(v.project.ID))
}

// removeMember takes somebody out of the project. Who takes out themselves has no page of it to come back to.
func (s *Server) removeMember(c echo.Context) error {
	v, id := visitOf(c), c.Param("id")
	if err := tenant.RemoveMember(c.Request().Context(), s.pool, v.actor, v.project.ID, id); err != nil {
		return err
	}
	if id == v.user.ID {
		if err := s.tell(c, views.Flash{Text: "You left the project " + v.project.Name + "."}); err != nil {
			return err
		}
		return redirect(c, views.ProjectsURL())
	}
	return s.done(c, "The member was removed, and sees nothing of this project any more.", views.TeamURL(v.project.ID))
}

// roleOf reads a role as people say it.
func roleOf(word string) tenant.Role { return tenant.Role(strings.ReplaceAll(word, "-", "_")) }

// readLastSeen reads when each member last used the panel, as far as their sessions remember.
func readLastSeen(ctx context.Context, db store.DB, project string) (map[string]time.Time, error) {
	rows, err := db.Query(ctx, `
		select u.id, greatest(max(s.seen_at), u.last_login_at)
		from members m
		join users u on u.id = m.user_id
		left join sessions s on s.user_id = u.id
		where m.project_id = $1
		group by u.id, u.last_login_at`, project)
	if err != nil {
		return nil, fmt.Errorf("read when members were last seen: %w", err)
	}
	seen := map[string]time.Time{}
	var id string
	var at *time.Time
	if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error { seen[id] = orZero(at); return nil }); err != nil {
		return nil, fmt.Errorf("read when members were last seen: %w", err)
	}
	return seen, nil
}
