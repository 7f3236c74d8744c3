package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/egress"
	"entrega/internal/seal"
	"entrega/internal/store"
	"entrega/jobs"
)

// Endpoint is where a project's events go: a URL with its settings, and how it is doing.
type Endpoint struct {
	ID          string `db:"id"`
	ProjectID   string `db:"project_id"`
	URL         string `db:"url"`
	Description string `db:"description"`
	// Subscriber is the project's own customer; empty takes the events of all.
	Subscriber string `db:"subscriber"`
	// EventTypes are the types it takes; none takes all.
	EventTypes []string `db:"event_types"`
	// Profile is the set of webhook rules; empty means the project's.
	Profile string `db:"profile"`
	// Headers are its own, with canonical names. Their values may be credentials: see MaskHeaders.
	Headers     map[string]string `db:"-"`
	MaxInFlight int               `db:"max_in_flight"`
	// RatePerSecond bounds the requests; 0 means no bound.
	RatePerSecond float64 `db:"rate_per_second"`
	// TimeoutSeconds takes the place of the policy's timeout; 0 leaves it.
	TimeoutSeconds int `db:"timeout_seconds"`
	// Version grows with every change of the settings or secrets.
	Version   int64     `db:"version"`
	CreatedAt time.Time `db:"created_at"`
	UpdatedAt time.Time `db:"updated_at"`
	// PausedAt is set while a person holds the deliveries back.
	PausedAt       *time.Time     `db:"paused_at"`
	DisabledAt     *time.Time     `db:"disabled_at"`
	DisabledReason DisabledReason `db:"disabled_reason"`
	DisabledDetail string         `db:"disabled_detail"`
	Health
	Lease

	SealedHeaders []byte `db:"sealed_headers"`
}

// Health is how the deliveries of an endpoint went lately.
type Health struct {
	// FailingSince is the start of the first attempt of an unbroken row of failures; nil when the last one succeeded.
	FailingSince   *time.Time `db:"failing_since"`
	FailuresInARow int        `db:"failures_in_a_row"`
	LastFailureAt  *time.Time `db:"last_failure_at"`
	LastSuccessAt  *time.Time `db:"last_success_at"`
	// PauseUntil is when the receiver wants to be asked again, by its Retry-After; it may lie in the past.
	PauseUntil *time.Time `db:"pause_until"`
}

// Lease says which node works the endpoint's lane.
type Lease struct {
	Holder    string     `db:"holder"`
	BusyUntil *time.Time `db:"busy_until"`
}

// State is an endpoint's condition in a word.
type State string

// The states, the gravest first.
const (
	StateDisabled State = "disabled"
	StatePaused   State = "paused"
	StateFailing  State = "failing"
	StateHealthy  State = "healthy"
)

// State is the gravest condition that holds.
func (e Endpoint) State() State {
	switch {
	case e.DisabledAt != nil:
		return StateDisabled
	case e.PausedAt != nil:
		return StatePaused
	case e.FailingSince != nil:
		return StateFailing
	default:
		return StateHealthy
	}
}

// EndpointsOptions are what Endpoints needs.
type EndpointsOptions struct {
	Pool   *pgxpool.Pool
	Client *jobs.Client
	Door   *egress.Door
	Box    *seal.Box
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Endpoints is everything people and programs do with endpoints, apart from delivering to them. It is safe for concurrent
// use. Each change asks what the actor may do in the actor's own project, and notes it in the audit log in the same
// transaction.
type Endpoints struct {
	pool   *pgxpool.Pool
	client *jobs.Client
	door   *egress.Door
	box    *seal.Box
	log    *slog.Logger
	now    func() time.Time
}

// NewEndpoints makes an Endpoints.
func NewEndpoints(o EndpointsOptions) *Endpoints {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Endpoints{pool: o.Pool, client: o.Client, door: o.Door, box: o.Box, log: o.Logger, now: o.Now}
}

const selectEndpoint = `
	select e.id, e.project_id, e.url, e.description, coalesce(e.subscriber, '') as subscriber, e.event_types,
	       coalesce(e.profile, '') as profile, e.headers as sealed_headers, e.max_in_flight,
	       coalesce(e.rate_per_second, 0) as rate_per_second, coalesce(e.timeout_seconds, 0) as timeout_seconds, e.version,
	       e.created_at, e.updated_at, e.paused_at, e.disabled_at, coalesce(e.disabled_reason, '') as disabled_reason,
	       coalesce(e.disabled_detail, '') as disabled_detail,
	       l.failing_since, l.failures_in_a_row, l.last_failure_at, l.last_success_at, l.pause_until,
	       coalesce(l.holder, '') as holder, nullif(l.busy_until, '-infinity') as busy_until
	from endpoints e join endpoint_lanes l on l.endpoint_id = e.id`

// EndpointByID reads one endpoint of a project; a deleted one is store.ErrNotFound.
func (s *Endpoints) EndpointByID(ctx context.Context, db store.DB, project, id string) (Endpoint, error) {
	return s.endpoint(ctx, db, project, id, "")
}

// lockEndpointTx is EndpointByID that also keeps others from changing the endpoint until the transaction ends.
func (s *Endpoints) lockEndpointTx(ctx context.Context, tx pgx.Tx, project, id string) (Endpoint, error) {
	return s.endpoint(ctx, tx, project, id, " for update of e")
}

func (s *Endpoints) endpoint(ctx context.Context, db store.DB, project, id, lock string) (Endpoint, error) {
	rows, err := db.Query(ctx, selectEndpoint+` where e.project_id = $1 and e.id = $2 and e.deleted_at is null`+lock, project, id)
	if err != nil {
		return Endpoint{}, fmt.Errorf("read an endpoint: %w", err)
	}
	e, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Endpoint])
	if err != nil {
		return Endpoint{}, fmt.Errorf("read an endpoint: %w", store.MapError(err))
	}
	return e, s.openHeaders(&e)
}

func (s *Endpoints) openHeaders(e *Endpoint) error {
	headers, err := openHeaders(s.box, e.ID, e.SealedHeaders)
	e.Headers = headers
	return err
}

// The tables that sealed values are bound to.
const (
	sealTableEndpoints = "endpoints"
	sealTableSecrets   = "endpoint_secrets"
)

// sealHeaders makes the column's value; none is NULL.
func sealHeaders(box *seal.Box, endpointID string, headers map[string]string) ([]byte, error) {
	if len(headers) == 0 {
		return nil, nil
	}
	raw, err := json.Marshal(headers)
	if err != nil {
		return nil, fmt.Errorf("encode headers: %w", err)
	}
	return box.Seal(raw, sealTableEndpoints, endpointID), nil
}

func openHeaders(box *seal.Box, endpointID string, sealed []byte) (map[string]string, error) {
	headers := map[string]string{}
	if sealed == nil {
		return headers, nil
	}
	raw, err := box.Open(sealed, sealTableEndpoints, endpointID)
	if err != nil {
		return nil, fmt.Errorf("open the headers of %s: %w", endpointID, err)
	}
	if err := json.Unmarshal(raw, &headers); err != nil {
		return nil, fmt.Errorf("decode the headers of %s: %w", endpointID, err)
	}
	return headers, nil
}
