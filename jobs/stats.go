package jobs

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// Sum is what a group of attempts came to.
type Sum struct {
	Kind     string    `db:"kind"`
	Profile  string    `db:"profile"`
	Bucket   time.Time `db:"bucket"`
	Decision Verdict   `db:"decision"`
	Reason   string    `db:"reason"`
	FirstTry bool      `db:"first_try"`
	Attempts int64     `db:"attempts"`
	Charged  int64     `db:"charged"`
}

// sumSQL unites the sums with the attempts that are too young for them. It asks for their start twice: by what the caller gave
// the database leaves out the days of the ledger before it begins.
const sumSQL = `
	with watermark as (select coalesce((select through from rollups where name = 'attempts'), '-infinity') as through),
	sums as (
		select minute as at, kind, profile, decision, reason, first_try, attempts, charged
		from attempt_minutes, watermark
		where project_id = @project and minute >= @since and minute < through
		union all
		select finished_at, kind, policy_profile, decision, reason, attempt = 1, 1, case when charged then 1 else 0 end
		from attempts, watermark
		where project_id = @project and started_at >= @since and started_at >= through - interval '15 minutes' and finished_at >= greatest(@since, through)
	)
	select kind, profile, date_bin(@step, at, @since) as bucket, decision, reason, first_try, sum(attempts)::bigint as attempts, sum(charged)::bigint as charged
	from sums group by 1, 2, 3, 4, 5, 6 order by 3`

// SumAttempts sums a project's attempts since an instant, in steps of the given length.
func SumAttempts(ctx context.Context, db store.DB, project string, since time.Time, step time.Duration) ([]Sum, error) {
	rows, err := db.Query(ctx, sumSQL, pgx.StrictNamedArgs{"project": project, "since": since.UTC(), "step": step})
	if err != nil {
		return nil, fmt.Errorf("sum attempts: %w", err)
	}
	sums, err := pgx.CollectRows(rows, pgx.RowToStructByName[Sum])
	if err != nil {
		return nil, fmt.Errorf("sum attempts: %w", err)
	}
	return sums, nil
}

// TotalAttempts sums a project's attempts since an instant without steps, over weeks as fast as over a day: whole hours come from
// the sums by the hour, what is left at both ends from those by the minute and from the ledger.
func TotalAttempts(ctx context.Context, db store.DB, project string, since time.Time) ([]Sum, error) {
	since = since.UTC()
	rows, err := db.Query(ctx, `
		with watermark as (
			select t.through, date_trunc('hour', t.through) as hour
			from (select coalesce((select through from rollups where name = 'attempts'), '-infinity') as through) as t
		), sums as (
			select kind, profile, decision, reason, first_try, attempts, charged from attempt_hours h, watermark w
			where project_id = @project and h.hour >= @hour and h.hour < w.hour
			union all
			select kind, profile, decision, reason, first_try, attempts, charged from attempt_minutes, watermark
			where project_id = @project and minute >= @since and minute < least(@hour, through)
			union all
			select kind, profile, decision, reason, first_try, attempts, charged from attempt_minutes, watermark w
			where project_id = @project and minute >= greatest(@hour, w.hour) and minute < w.through
			union all
			select kind, policy_profile, decision, reason, attempt = 1, 1, case when charged then 1 else 0 end from attempts, watermark
			where project_id = @project and started_at >= @since and started_at >= through - interval '15 minutes' and finished_at >= greatest(@since, through)
		)
		select kind, profile, @since::timestamptz as bucket, decision, reason, first_try, sum(attempts)::bigint as attempts, sum(charged)::bigint as charged
		from sums group by 1, 2, 4, 5, 6`,
		pgx.StrictNamedArgs{"project": project, "since": since, "hour": since.Add(time.Hour - 1).Truncate(time.Hour)})
	if err != nil {
		return nil, fmt.Errorf("total attempts: %w", err)
	}
	sums, err := pgx.CollectRows(rows, pgx.RowToStructByName[Sum])
	if err != nil {
		return nil, fmt.Errorf("total attempts: %w", err)
	}
	return sums, nil
}

// Reading is a decision as a person reads it (3-retry.md): a retry was allowed, a constraint aborted it, or the failure's class is
// not retried and was ignored.
type Reading string

// The readings.
const (
	ReadAllowed Reading = "ALLOWED"
	ReadAborted Reading = "ABORTED"
	ReadIgnored Reading = "IGNORED"
)

// ReadingOf reads a decision; a success, and an attempt that never reported, has none.
func ReadingOf(v Verdict, reason string) Reading {
	switch v {
	case VerdictRetryScheduled, VerdictSnoozed:
		return ReadAllowed
	case VerdictCancelled:
		return ReadAborted
	case VerdictPermanentFailure:
		switch reason {
		case ReasonHorizon, ReasonAttemptsExhausted, ReasonCancelled, ReasonEndpointDisabled:
			return ReadAborted
		}
		return ReadIgnored
	default:
		return ""
	}
}

// Latency is how long deliveries took from publishing, over a period. Zero deliveries have no percentiles.
type Latency struct {
	Deliveries int64
	P50, P95   time.Duration
}

// PublishToDelivered reads the latency of a project's deliveries since an instant, first attempts and retries alike.
func PublishToDelivered(ctx context.Context, db store.DB, project string, since time.Time) (Latency, error) {
	rows, err := db.Query(ctx, `
		with watermark as (select coalesce((select through from rollups where name = 'attempts'), '-infinity') as through)
		select bucket, sum(deliveries)::bigint from (
			select bucket, deliveries from latency_minutes, watermark
			where project_id = @project and minute >= @since and minute < through
			union all
			select entrega_latency_bucket(extract(epoch from a.finished_at - e.created_at) * 1000), 1
			from watermark, attempts a join events e on e.project_id = a.project_id and e.id = a.event_id
			where a.project_id = @project and a.started_at >= @since and a.started_at >= through - interval '15 minutes' and a.finished_at >= greatest(@since, through)
			  and a.kind = 'webhook.deliver' and a.decision = 'accepted' and a.trigger = 'schedule'
		) as t group by 1 order by 1`, pgx.StrictNamedArgs{"project": project, "since": since.UTC()})
	if err != nil {
		return Latency{}, fmt.Errorf("read latencies: %w", err)
	}
	var buckets []latencyBucket
	var b latencyBucket
	if _, err := pgx.ForEachRow(rows, []any{&b.index, &b.n}, func() error {
		buckets = append(buckets, b)
		return nil
	}); err != nil {
		return Latency{}, fmt.Errorf("read latencies: %w", err)
	}
	l := Latency{P50: percentile(buckets, 0.50), P95: percentile(buckets, 0.95)}
	for _, b := range buckets {
		l.Deliveries += b.n
	}
	return l, nil
}

type latencyBucket struct {
	index int
	n     int64
}

// percentile interpolates within the bucket that holds it, so it is right to within a quarter.
func percentile(buckets []latencyBucket, q float64) time.Duration {
	var total, below int64
	for _, b := range buckets {
		total += b.n
	}
	rank := q * float64(total)
	for _, b := range buckets {
		if float64(below+b.n) >= rank && b.n > 0 {
			low, high := math.Pow(1.25, float64(b.index-1)), math.Pow(1.25, float64(b.index))
			if b.index == 0 {
				low = 0
			}
			ms := low + (high-low)*(rank-float64(below))/float64(b.n)
			return time.Duration(ms * float64(time.Millisecond)).Round(100 * time.Microsecond)
		}
		below += b.n
	}
	return 0
}

// EndpointFailures are an endpoint's attempts over a period.
type EndpointFailures struct {
	EndpointID string `db:"endpoint_id"`
	Attempts   int64  `db:"attempts"`
	Failures   int64  `db:"failures"`
}

// WorstEndpoints lists the endpoints with the most failures since an instant, to the hour.
func WorstEndpoints(ctx context.Context, db store.DB, project string, since time.Time, limit int) ([]EndpointFailures, error) {
	rows, err := db.Query(ctx, `select endpoint_id, sum(attempts)::bigint as attempts, sum(failures)::bigint as failures
		from endpoint_hours where project_id = $1 and hour >= date_trunc('hour', $2::timestamptz)
		group by 1 having sum(failures) > 0 order by 3 desc, 1 limit $3`, project, since.UTC(), limit)
	if err != nil {
		return nil, fmt.Errorf("find the worst endpoints: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[EndpointFailures])
}

// Due is how many waiting tasks come due in one minute.
type Due struct {
	Minute time.Time `db:"minute"`
	Tasks  int64     `db:"tasks"`
}

// forecastMost bounds how many waiting tasks a forecast looks at.
const forecastMost = 200_000

// RetriesDue counts a project's waiting retries and snoozes by the minute in which they come due, until an instant.
func RetriesDue(ctx context.Context, db store.DB, project string, until time.Time) ([]Due, error) {
	rows, err := db.Query(ctx, `
		select date_trunc('minute', greatest(scheduled_at, now())) as minute, count(*) as tasks from (
			(select scheduled_at from river_job where project_id = $1 and state = 'retryable' limit $3)
			union all
			(select scheduled_at from river_job where project_id = $1 and state = 'scheduled' and outcome in ('retry', 'snooze') limit $3)
		) as waiting where scheduled_at < $2 group by 1 order by 1`, project, until.UTC(), forecastMost)
	if err != nil {
		return nil, fmt.Errorf("forecast retries: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[Due])
}
