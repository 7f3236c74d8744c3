package webhooks

import (
	"context"
	"fmt"
	"time"

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
	Lane     LaneStats
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
	if out.Lane, err = s.LaneOf(ctx, db, e); err != nil {
		return out, err
	}
	if err := out.readMissed(ctx, db, e); err != nil {
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

func (out *Stats) readMissed(ctx context.Context, db store.DB, e Endpoint) error {
	err := db.QueryRow(ctx, `
		select count(*) from (select from missed_events where endpoint_id = $2 and project_id = $1 and redelivered_at is null limit $3) w`,
		e.ProjectID, e.ID, countedAtMost).Scan(&out.Missed)
	if err != nil {
		return fmt.Errorf("count what an endpoint missed: %w", err)
	}
	return nil
}
