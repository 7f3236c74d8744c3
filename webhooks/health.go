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

// health is what one attempt leaves of an endpoint's health.
type health struct {
	failingSince time.Time // zero while it works
	failures     int
	pauseUntil   time.Time
}

// failure is one failed attempt, as far as the endpoint's health is concerned.
type failure struct {
	project, endpointID string
	startedAt           time.Time
	// pauseUntil is set when the receiver named a time to come back.
	pauseUntil time.Time
	// lastSuccess is the start of the newest success this process knows of; the row may be behind, because a success that
	// changes nothing is not written.
	lastSuccess time.Time
}

// noteFailureTx counts a failed attempt. What counts is when attempts started: one that started before the newest success
// changes nothing, however late it ends.
func noteFailureTx(ctx context.Context, tx pgx.Tx, f failure) (health, error) {
	var h health
	var since, pause *time.Time
	err := tx.QueryRow(ctx, `
		with lane as (
			select endpoint_id, greatest(last_success_at, @success::timestamptz) as success
			from endpoint_lanes where project_id = @project and endpoint_id = @endpoint for update
		)
		update endpoint_lanes l set
			failing_since     = case when s.success >= @started then l.failing_since else least(l.failing_since, @started) end,
			failures_in_a_row = case when s.success >= @started then l.failures_in_a_row else l.failures_in_a_row + 1 end,
			last_failure_at   = greatest(l.last_failure_at, @started),
			last_success_at   = s.success,
			pause_until       = greatest(l.pause_until, @pause::timestamptz)
		from lane s where l.endpoint_id = s.endpoint_id
		returning l.failing_since, l.failures_in_a_row, l.pause_until`,
		pgx.StrictNamedArgs{"project": f.project, "endpoint": f.endpointID, "started": f.startedAt, "success": orNull(f.lastSuccess), "pause": orNull(f.pauseUntil)},
	).Scan(&since, &h.failures, &pause)
	if err != nil {
		return h, fmt.Errorf("note a failure: %w", store.MapError(err))
	}
	h.failingSince, h.pauseUntil = orZero(since), orZero(pause)
	return h, nil
}

// noteSuccess ends a row of failures. A success that started before the newest failure proves only what was before it: the
// row then begins anew at that failure. One UPDATE, for the caller to leave out when the endpoint is healthy already.
func noteSuccess(ctx context.Context, db store.DB, project, endpointID string, startedAt time.Time) (health, error) {
	var h health
	var since, pause *time.Time
	err := db.QueryRow(ctx, `
		update endpoint_lanes set
			failing_since     = case when last_failure_at > @started and failing_since is not null then greatest(failing_since, last_failure_at) end,
			failures_in_a_row = case when last_failure_at > @started then least(failures_in_a_row, 1) else 0 end,
			last_success_at   = greatest(last_success_at, @started)
		where project_id = @project and endpoint_id = @endpoint
		returning failing_since, failures_in_a_row, pause_until`,
		pgx.StrictNamedArgs{"project": project, "endpoint": endpointID, "started": startedAt},
	).Scan(&since, &h.failures, &pause)
	if err != nil {
		return h, fmt.Errorf("note a success: %w", store.MapError(err))
	}
	h.failingSince, h.pauseUntil = orZero(since), orZero(pause)
	return h, nil
}

// disableVerdict says whether a policy's rule disables an endpoint at now, and why.
func disableVerdict(p jobs.Policy, h health, now time.Time) (reason DisabledReason, detail string, disable bool) {
	rule := p.Disable
	switch {
	case h.failingSince.IsZero():
		return "", "", false
	case rule.FailuresInARow > 0 && h.failures >= rule.FailuresInARow:
		return DisabledFailuresInARow, fmt.Sprintf("%d attempts in a row failed; profile %s disables an endpoint after %d.",
			h.failures, p.Profile, rule.FailuresInARow), true
	case rule.FailingFor > 0 && now.Sub(h.failingSince) >= rule.FailingFor:
		return DisabledFailing, fmt.Sprintf("Every attempt since %s failed; profile %s disables an endpoint after %s of that.",
			h.failingSince.UTC().Format("2006-01-02 15:04 UTC"), p.Profile, inWords(rule.FailingFor)), true
	default:
		return "", "", false
	}
}

// disableRuleTx applies the policy's rule after a failure and reports whether it disabled the endpoint.
func disableRuleTx(ctx context.Context, tx pgx.Tx, p jobs.Policy, f failure, h health, now time.Time, lastError string) (bool, error) {
	reason, detail, disable := disableVerdict(p, h, now)
	if !disable {
		return false, nil
	}
	return DisableTx(ctx, tx, healthActor.In(f.project), f.endpointID, reason, detail+" The last one: "+lastError)
}

// healthActor is Entrega itself where it disables an endpoint.
var healthActor = tenant.System("endpoint health")

// inWords writes a duration of a rule in its largest whole unit.
func inWords(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d%day == 0:
		return count(int(d/day), "day")
	case d%time.Hour == 0:
		return count(int(d/time.Hour), "hour")
	default:
		return d.String()
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}
