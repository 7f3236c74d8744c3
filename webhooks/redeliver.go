package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
)

// Scope says what a redelivery brings.
type Scope string

// The scopes of a redelivery.
const (
	// ScopeBoth is both of the others, and the default.
	ScopeBoth Scope = "both"
	// ScopeDiscarded is the deliveries that were discarded, and those that ended because the endpoint was disabled.
	ScopeDiscarded Scope = "discarded"
	// ScopeMissed is the events that were published while the endpoint was disabled.
	ScopeMissed Scope = "missed"
)

// RedeliverRequest asks for an endpoint's redelivery. Zero fields do not narrow.
type RedeliverRequest struct {
	// Since and Until bound when a delivery was made, or an event missed: [Since, Until).
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	Scope Scope     `json:"scope"`
	// DryRun only counts.
	DryRun bool `json:"-"`
	// IdempotencyKey makes a second request with it answer the first; a dry run does not look at it.
	IdempotencyKey string `json:"-"`
}

// RedeliverCount is what a redelivery is about.
type RedeliverCount struct {
	// Deliveries are tasks to try again, Missed events to make a first delivery of.
	Deliveries, Missed int64
	// BulkID is the background task that does it; empty for a dry run, and when there is nothing to do.
	BulkID string
	// Duplicate says that the idempotency key was used before; nothing further was started.
	Duplicate bool `json:"-"`
}

// Total is the number of deliveries that come of it.
func (c RedeliverCount) Total() int64 { return c.Deliveries + c.Missed }

// Redelivery is the kind of the background task that works a redelivery.
var Redelivery = jobs.Kind[jobs.BulkArgs]{Name: "webhook.redeliver", Queue: jobs.QueueWebhook, Timeout: redeliverTimeout}

// redeliverFilter is a request as the bulk action keeps it.
type redeliverFilter struct {
	EndpointID string `json:"endpointId"`
	RedeliverRequest
	// Through is the newest task there was at the click: what is discarded later is not part of it.
	Through int64 `json:"through"`
}

// Redeliver starts a background task that tries an endpoint's discarded deliveries again, oldest first, and brings the events
// it missed. A disabled endpoint is a *store.ConflictError endpoint_disabled.
func (s *Endpoints) Redeliver(ctx context.Context, actor tenant.Actor, id string, r RedeliverRequest) (RedeliverCount, error) {
	project := actor.ProjectID
	if err := actor.RequireIn(project, tenant.PermRedeliver); err != nil {
		return RedeliverCount{}, err
	}
	if r.Scope == "" {
		r.Scope = ScopeBoth
	}
	if err := r.check(); err != nil {
		return RedeliverCount{}, err
	}
	var count RedeliverCount
	err := store.InTx(ctx, s.pool, func(tx pgx.Tx) (err error) {
		o := once{action: "endpoint.redeliver", endpointID: id, request: r}
		if !r.DryRun {
			o.key = r.IdempotencyKey
		}
		count, count.Duplicate, err = onceTx(ctx, tx, project, o, func() (RedeliverCount, error) { return s.redeliverTx(ctx, tx, actor, id, r) })
		return err
	})
	if err != nil {
		return RedeliverCount{}, fmt.Errorf("redeliver: %w", err)
	}
	return count, nil
}

func (s *Endpoints) redeliverTx(ctx context.Context, tx pgx.Tx, actor tenant.Actor, id string, r RedeliverRequest) (RedeliverCount, error) {
	filter := redeliverFilter{EndpointID: id, RedeliverRequest: r}
	e, err := s.EndpointByID(ctx, tx, actor.ProjectID, id)
	if err != nil {
		return RedeliverCount{}, err
	}
	count, err := countRedeliverable(ctx, tx, actor.ProjectID, filter)
	if err != nil || r.DryRun {
		return count, err
	}
	if e.DisabledAt != nil {
		return RedeliverCount{}, errDisabled()
	}
	if count.Total() > 0 {
		count.BulkID, err = s.startRedeliveryTx(ctx, tx, actor, filter, count.Total())
	}
	return count, err
}

func (r RedeliverRequest) check() error {
	var bad store.InvalidError
	switch r.Scope {
	case ScopeBoth, ScopeDiscarded, ScopeMissed:
	default:
		bad.Add("scope", "Choose discarded, missed or both.")
	}
	if !r.Since.IsZero() && !r.Until.IsZero() && !r.Until.After(r.Since) {
		bad.Add("until", "The end must be later than since.")
	}
	return bad.OrNil()
}

func (s *Endpoints) startRedeliveryTx(ctx context.Context, tx pgx.Tx, actor tenant.Actor, filter redeliverFilter, total int64) (string, error) {
	if err := tx.QueryRow(ctx, `select coalesce(max(id), 0) from river_job`).Scan(&filter.Through); err != nil {
		return "", fmt.Errorf("find the newest task: %w", err)
	}
	bulk, err := jobs.InsertBulk(ctx, tx, actor, actor.ProjectID, jobs.BulkRedeliver, filter, total)
	if err != nil {
		return "", err
	}
	if _, err := jobs.InsertTx(ctx, s.client, tx, Redelivery, jobs.BulkArgs{ProjectID: actor.ProjectID, BulkID: bulk.ID},
		jobs.Insert{ProjectID: actor.ProjectID, Label: map[string]string{"subject": fmt.Sprintf("redeliver %d", total)}}); err != nil {
		return "", err
	}
	return bulk.ID, tenant.Audit(ctx, tx, actor, "endpoint.redeliver", "endpoint", filter.EndpointID,
		map[string]any{"scope": filter.Scope, "since": orNull(filter.Since), "until": orNull(filter.Until), "count": total, "bulkId": bulk.ID})
}

// redeliverable are the two sets of an endpoint's deliveries that a redelivery tries again, each a walk along an index: those
// that were discarded, except tests and those whose event is gone, and those that were cancelled because the endpoint was
// disabled.
var redeliverable = []string{
	`endpoint_id = @endpoint and state = 'discarded' and coalesce(metadata ->> 'reason', '') <> all(@never)` + redeliverableBounds,
	`endpoint_id = @endpoint and state = 'cancelled' and metadata ->> 'reason' = @disabled` + redeliverableBounds,
}

const redeliverableBounds = ` and project_id = @project and kind = @kind
	and (@since::timestamptz is null or created_at >= @since) and (@until::timestamptz is null or created_at < @until)`

// missable picks the events that an endpoint missed and did not get since.
const missable = `m.project_id = @project and m.endpoint_id = @endpoint and m.redelivered_at is null
	and (@since::timestamptz is null or m.missed_at >= @since) and (@until::timestamptz is null or m.missed_at < @until)`

func (f redeliverFilter) args(project string) pgx.StrictNamedArgs {
	return pgx.StrictNamedArgs{"project": project, "endpoint": f.EndpointID, "since": orNull(f.Since), "until": orNull(f.Until)}
}

func (f redeliverFilter) taskArgs(project string) pgx.StrictNamedArgs {
	args := f.args(project)
	args["kind"], args["disabled"] = Deliver.Name, jobs.ReasonEndpointDisabled
	args["never"] = []string{ReasonTestFailed, reasonEventPruned}
	return args
}

func countRedeliverable(ctx context.Context, db store.DB, project string, f redeliverFilter) (RedeliverCount, error) {
	var c RedeliverCount
	if f.Scope != ScopeMissed {
		sql := `select (select count(*) from river_job where ` + redeliverable[0] + `) + (select count(*) from river_job where ` + redeliverable[1] + `)`
		err := db.QueryRow(ctx, sql, f.taskArgs(project)).Scan(&c.Deliveries)
		if err != nil {
			return c, fmt.Errorf("count discarded deliveries: %w", err)
		}
	}
	if f.Scope != ScopeDiscarded {
		err := db.QueryRow(ctx, `select count(*) from missed_events m where `+missable, f.args(project)).Scan(&c.Missed)
		if err != nil {
			return c, fmt.Errorf("count missed events: %w", err)
		}
	}
	return c, nil
}
