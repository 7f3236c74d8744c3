package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/jobs"
)

// deliverKind is the kind of a delivery: its policy is what disables endpoints.
const deliverKind = "webhook.deliver"

// endpoint is what the rules need to know of an endpoint.
type endpoint struct {
	ID             string     `db:"id"`
	ProjectID      string     `db:"project_id"`
	URL            string     `db:"url"`
	Profile        string     `db:"profile"` // its own, else the project's
	MaxInFlight    int        `db:"max_in_flight"`
	RatePerSecond  float64    `db:"rate_per_second"`
	UpdatedAt      time.Time  `db:"updated_at"`
	DeletedAt      *time.Time `db:"deleted_at"`
	PausedAt       *time.Time `db:"paused_at"`
	DisabledAt     *time.Time `db:"disabled_at"`
	DisabledReason string     `db:"disabled_reason"`
	FailingSince   *time.Time `db:"failing_since"`
	FailuresInARow int        `db:"failures_in_a_row"`
	LastFailureAt  *time.Time `db:"last_failure_at"`
	LastSuccessAt  *time.Time `db:"last_success_at"`
	PauseUntil     *time.Time `db:"pause_until"`
}

// endpoints reads endpoints by their ids, the deleted ones too.
func (p *pass) endpoints(ctx context.Context, ids []string) (map[string]endpoint, error) {
	rows, err := p.tx.Query(ctx, `
		select e.id, e.project_id, e.url, coalesce(e.profile, p.profile) as profile, e.max_in_flight,
		       coalesce(e.rate_per_second, 0) as rate_per_second, e.updated_at, e.deleted_at, e.paused_at, e.disabled_at,
		       coalesce(e.disabled_reason, '') as disabled_reason, l.failing_since, coalesce(l.failures_in_a_row, 0) as failures_in_a_row,
		       l.last_failure_at, l.last_success_at, l.pause_until
		from endpoints e
		join projects p on p.id = e.project_id
		left join endpoint_lanes l on l.endpoint_id = e.id
		where e.id = any($1)`, ids)
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[endpoint])
	if err != nil {
		return nil, fmt.Errorf("read endpoints: %w", err)
	}
	byID := make(map[string]endpoint, len(found))
	for _, e := range found {
		byID[e.ID] = e
	}
	return byID, nil
}

// endpointsOf reads the endpoints that alerts are about. One that is no more is not in the answer.
func (p *pass) endpointsOf(ctx context.Context, alerts []Alert) (map[string]endpoint, error) {
	ids := make([]string, 0, len(alerts))
	for _, a := range alerts {
		if a.EndpointID != "" {
			ids = append(ids, a.EndpointID)
		}
	}
	return p.endpoints(ctx, ids)
}

func (e endpoint) key() key { return key{e.ProjectID, e.ID} }

func (e endpoint) host() string { return hostOf(e.URL, e.ID) }

// exists is false for an endpoint that was deleted, or that was never found.
func (e endpoint) exists() bool { return e.ID != "" && e.DeletedAt == nil }

// policy is what decides about the endpoint's deliveries. A profile that a changed policy file no longer has leaves them to the
// standard one.
func (p *pass) policy(e endpoint) jobs.Policy {
	policy, ok := p.policies.ForProject(deliverKind, e.Profile, e.ProjectID)
	if !ok {
		policy, _ = p.policies.ForProject(deliverKind, jobs.DefaultProfile, e.ProjectID)
	}
	return policy
}

// whyDeleted resolves whatever is about an endpoint that is no more.
const whyDeleted = "its endpoint was deleted"

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// recent tells whether something was less than a while ago, or is still to come.
func recent(t *time.Time, now time.Time, while time.Duration) bool {
	return t != nil && t.After(now.Add(-while))
}
