package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
)

const (
	// latencySample bounds the attempts that the latencies are computed from, the newest first.
	latencySample = 10_000
	// countedAtMost bounds a count; one more means "more than that".
	countedAtMost = 10_001
)

// Stats is how an endpoint is doing, for its page.
type Stats struct {
	// Strip is the last attempts, oldest first.
	Strip []StripAttempt
	// P50 and P95 are over the answered attempts of the last 24 hours, at most the newest 10,000; zero without any.
	P50, P95 time.Duration
	// Answered is how many those were.
	Answered int
	// Backlog counts the deliveries that are not finished, at most 10,001, and OldestBacklog is when the oldest was made.
	Backlog       int
	OldestBacklog time.Time
	// InFlight counts those under way, on any node.
	InFlight int
	// Missed counts the events that a redelivery of missed ones would bring, at most 10,001.
	Missed int
	// DisableAt is when the policy will disable the endpoint should every attempt fail until then; zero when no such rule
	// is running. FailuresLeft is how many more failures in a row do it; 0 when no such rule is running.
	DisableAt    time.Time
	FailuresLeft int
}

// StatsOf reads an endpoint's stats. project is e's own; its profile is the policy's when the endpoint has none.
func (s *Endpoints) StatsOf(ctx context.Context, db store.DB, e Endpoint, projectProfile string) (Stats, error) {
	var out Stats
	strips, err := Strips(ctx, db, e.ProjectID, []string{e.ID})
	if err != nil {
		return out, err
	}
	out.Strip = strips[e.ID]
	if err := out.readLatency(ctx, db, e, s.now().Add(-24*time.Hour)); err != nil {
		return out, err
	}
	if err := out.readCounts(ctx, db, e); err != nil {
		return out, err
	}
	profile := e.Profile
	if profile == "" {
		profile = projectProfile
	}
	if p, ok := s.client.Policies().ForProject(Deliver.Name, profile, e.ProjectID); ok {
		out.DisableAt, out.FailuresLeft = disableForecast(p, e.Health)
	}
	return out, nil
}

// disableForecast says when, or after how many more failures, a policy will disable an endpoint.
func disableForecast(p jobs.Policy, h Health) (at time.Time, left int) {
	if h.FailingSince == nil {
		return time.Time{}, 0
	}
	if p.Disable.FailingFor > 0 {
		at = h.FailingSince.Add(p.Disable.FailingFor)
	}
	if p.Disable.FailuresInARow > 0 {
		left = max(p.Disable.FailuresInARow-h.FailuresInARow, 1)
	}
	return at, left
}

func (out *Stats) readLatency(ctx context.Context, db store.DB, e Endpoint, since time.Time) error {
	var p50, p95 *float64
	err := db.QueryRow(ctx, `
		select count(*), percentile_cont(0.5) within group (order by total_us), percentile_cont(0.95) within group (order by total_us)
		from (select total_us from attempts
		      where endpoint_id = $2 and project_id = $1 and started_at > $3 and status is not null
		      order by started_at desc limit $4) a`, e.ProjectID, e.ID, since, latencySample).Scan(&out.Answered, &p50, &p95)
	if err != nil {
		return fmt.Errorf("read latencies: %w", err)
	}
	if p50 != nil && p95 != nil {
		out.P50, out.P95 = time.Duration(*p50)*time.Microsecond, time.Duration(*p95)*time.Microsecond
	}
	return nil
}

func (out *Stats) readCounts(ctx context.Context, db store.DB, e Endpoint) error {
	var oldest *time.Time
	err := db.QueryRow(ctx, `
		select (select count(*) from (select from river_job where endpoint_id = @endpoint and project_id = @project
		                              and state in ('available', 'pending', 'retryable', 'running', 'scheduled') limit @most) w),
		       (select min(created_at) from river_job where id = any(array[
		           (select min(id) from river_job where endpoint_id = @endpoint and state = 'available'),
		           (select min(id) from river_job where endpoint_id = @endpoint and state = 'pending'),
		           (select min(id) from river_job where endpoint_id = @endpoint and state = 'retryable'),
		           (select min(id) from river_job where endpoint_id = @endpoint and state = 'running'),
		           (select min(id) from river_job where endpoint_id = @endpoint and state = 'scheduled')])),
		       (select count(*) from (select from river_job where endpoint_id = @endpoint and state = 'running' limit @most) w),
		       (select count(*) from (select from missed_events where endpoint_id = @endpoint and project_id = @project
		                              and redelivered_at is null limit @most) w)`,
		pgx.StrictNamedArgs{"project": e.ProjectID, "endpoint": e.ID, "most": countedAtMost},
	).Scan(&out.Backlog, &oldest, &out.InFlight, &out.Missed)
	if err != nil {
		return fmt.Errorf("count an endpoint's deliveries: %w", err)
	}
	out.OldestBacklog = orZero(oldest)
	return nil
}
