package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
)

// Kind is a sort of trouble. Each has its rule.
type Kind string

// The kinds of alerts.
const (
	TaskDiscarded    Kind = "task_discarded"
	EndpointFailing  Kind = "endpoint_failing"
	EndpointDisabled Kind = "endpoint_disabled"
	ReceiverRefuses  Kind = "receiver_refuses"
	Backlog          Kind = "backlog"
	EventPoisoned    Kind = "event_poisoned"
	PeriodicFailed   Kind = "periodic_failed"
	LaneSaturated    Kind = "lane_saturated"
	AttemptsLost     Kind = "attempts_lost"
	TransportPaused  Kind = "transport_paused"
)

// State is where an alert stands in its life.
type State string

// The states of an alert.
const (
	StateOpen State = "open"
	// StateAcknowledged is an alert that somebody has taken on; it goes on counting.
	StateAcknowledged State = "acknowledged"
	StateResolved     State = "resolved"
)

// Alert is something that a person should look at.
type Alert struct {
	ID string `db:"id"`
	// ProjectID is empty for what concerns the installation, which only its admins see.
	ProjectID string `db:"project_id"`
	Kind      Kind   `db:"kind"`
	// Subject tells alerts of one kind apart: an endpoint's id, a kind of task, a periodic job.
	Subject string `db:"subject"`
	State   State  `db:"state"`
	// About is the subject for people, such as an endpoint's host, and Text goes on from it: what happened and what to do.
	About string `db:"about"`
	Text  string `db:"text"`
	// Count is how often it happened, between FirstAt and LastAt.
	Count   int64     `db:"count"`
	FirstAt time.Time `db:"first_at"`
	LastAt  time.Time `db:"last_at"`

	EndpointID string `db:"endpoint_id"`
	EventID    string `db:"event_id"`
	TaskKind   string `db:"task_kind"`
	TaskState  string `db:"task_state"`

	AcknowledgedAt *time.Time `db:"acknowledged_at"`
	AcknowledgedBy string     `db:"acknowledged_by"`
	ResolvedAt     *time.Time `db:"resolved_at"`
	// ResolvedBy is empty for an alert that resolved itself; ResolvedWhy then says why, as the end of a sentence.
	ResolvedBy  string `db:"resolved_by"`
	ResolvedWhy string `db:"resolved_why"`

	// Marker is the newest happening that it tells of.
	Marker time.Time `db:"marker"`
}

const alertColumns = `id, project_id, kind, subject, state, about, text, count, first_at, last_at,
	coalesce(endpoint_id, '') as endpoint_id, coalesce(event_id, '') as event_id, coalesce(task_kind, '') as task_kind,
	coalesce(task_state, '') as task_state, acknowledged_at, coalesce(acknowledged_by, '') as acknowledged_by, resolved_at,
	coalesce(resolved_by, '') as resolved_by, coalesce(resolved_why, '') as resolved_why,
	greatest(marker, '0001-01-01 00:00:00+00') as marker`

// Sentence is the whole of what the alert says.
func (a Alert) Sentence() string { return a.About + " " + a.Text }

// Tasks is the filter that finds the tasks behind the alert; false when it is not about tasks.
func (a Alert) Tasks() (jobs.TaskFilter, bool) {
	f := jobs.TaskFilter{State: jobs.TaskState(a.TaskState), Kind: a.TaskKind, EndpointID: a.EndpointID}
	return f, a.TaskState != ""
}

// View is whose alerts are looked at: those of a project and, for an admin, those of the installation as well.
type View struct {
	Project      string
	Installation bool
}

// ViewOf is what an actor sees in a project. The caller has seen to it that the actor may see the project.
func ViewOf(a tenant.Actor, project string) View {
	return View{Project: project, Installation: a.Can(tenant.PermAdmin)}
}

// projects are the values of project_id that the view covers.
func (v View) projects() []string {
	if v.Installation {
		return []string{v.Project, ""}
	}
	return []string{v.Project}
}

// AlertByID reads one alert of a view; any other is store.ErrNotFound.
func AlertByID(ctx context.Context, db store.DB, v View, id string) (Alert, error) {
	return alertByID(ctx, db, v, id, "")
}

func alertByID(ctx context.Context, db store.DB, v View, id, lock string) (Alert, error) {
	rows, err := db.Query(ctx, `select `+alertColumns+` from alerts where id = $1 and project_id = any($2) `+lock, id, v.projects())
	if err != nil {
		return Alert{}, fmt.Errorf("read an alert: %w", err)
	}
	a, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Alert])
	if err != nil {
		return Alert{}, fmt.Errorf("read an alert: %w", store.MapError(err))
	}
	return a, nil
}
