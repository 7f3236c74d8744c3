package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
)

// waitingShown is how many people the page lists who have not confirmed their address.
const waitingShown = 50

// tablesShown is how many tables the page lists by name.
const tablesShown = 12

// system is the state of the installation.
type system struct {
	nodes []jobs.Node
	// leader is the node that runs what runs once, "" where none does.
	leader      string
	queues      []jobs.QueueStatus
	outbox      events.Outbox
	tables      []jobs.TableSize
	waiting     []tenant.User
	ours, river int
	postgres    string
}

// showSystem tells how the installation is.
func (s *Server) showSystem(c echo.Context) error {
	l, err := s.layout(c, "System", views.SectionAdminSystem)
	if err != nil {
		return err
	}
	state, err := s.readSystem(c.Request().Context(), visitOf(c).actor)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, views.AdminSystem(presentSystem(l, state, s.version)))
}

func (s *Server) readSystem(ctx context.Context, actor tenant.Actor) (state system, err error) {
	if state.nodes, err = jobs.ListNodes(ctx, s.pool); err != nil {
		return state, err
	}
	if state.leader, state.postgres, err = readLeader(ctx, s.pool); err != nil {
		return state, err
	}
	if state.queues, err = s.client.ListQueues(ctx); err != nil {
		return state, err
	}
	if state.outbox, err = events.OutboxStats(ctx, s.pool); err != nil {
		return state, err
	}
	if state.tables, err = jobs.ListTableSizes(ctx, s.pool); err != nil {
		return state, err
	}
	if state.waiting, err = tenant.ListWaiting(ctx, s.pool, actor, waitingShown+1); err != nil {
		return state, err
	}
	state.ours, state.river, err = jobs.SchemaVersions(ctx, s.pool)
	return state, err
}

// readLeader reads which node leads, and the version of the database.
func readLeader(ctx context.Context, db store.DB) (leader, postgres string, err error) {
	if err := db.QueryRow(ctx, `select current_setting('server_version')`).Scan(&postgres); err != nil {
		return "", "", fmt.Errorf("read the version of Postgres: %w", err)
	}
	err = db.QueryRow(ctx, `select leader_id from river_leader where expires_at > now()`).Scan(&leader)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", "", fmt.Errorf("read which node leads: %w", err)
	}
	return leader, postgres, nil
}

// pauseQueue keeps all nodes from starting jobs of a queue.
func (s *Server) pauseQueue(c echo.Context) error {
	queue := c.Param("id")
	if err := s.client.PauseQueue(c.Request().Context(), visitOf(c).actor, queue); err != nil {
		return err
	}
	return s.done(c, "The queue "+queue+" is paused on every node.", views.AdminSystemURL())
}

// resumeQueue lets a paused queue go on.
func (s *Server) resumeQueue(c echo.Context) error {
	queue := c.Param("id")
	if err := s.client.ResumeQueue(c.Request().Context(), visitOf(c).actor, queue); err != nil {
		return err
	}
	return s.done(c, "The queue "+queue+" goes on.", views.AdminSystemURL())
}
