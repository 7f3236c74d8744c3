package webhooks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
)

// stripLength is how many attempts the strip of an endpoint shows. The sums keep as many (migration 012).
const stripLength = 30

// StripAttempt is one attempt in an endpoint's strip.
type StripAttempt struct {
	TaskID    int64        `json:"taskId"`
	Seq       int          `json:"seq"`
	Attempt   int          `json:"attempt"`
	StartedAt time.Time    `json:"at"`
	Class     string       `json:"class"`
	Decision  jobs.Verdict `json:"decision"`
	Status    int          `json:"status"`
	ErrorType string       `json:"errorType"`
	TotalUS   int64        `json:"us"`
}

// Duration is how long the attempt took.
func (a StripAttempt) Duration() time.Duration { return time.Duration(a.TotalUS) * time.Microsecond }

// Strips reads the last attempts of several endpoints, oldest first, by endpoint: those that are summed up from their strips, and
// only what is younger from the ledger.
func Strips(ctx context.Context, db store.DB, project string, endpointIDs []string) (map[string][]StripAttempt, error) {
	strips, through, err := summedStrips(ctx, db, project, endpointIDs)
	if err != nil {
		return nil, err
	}
	if err := addYoungAttempts(ctx, db, project, endpointIDs, through, strips); err != nil {
		return nil, err
	}
	for id, strip := range strips {
		slices.SortStableFunc(strip, func(a, b StripAttempt) int { return cmp.Or(a.StartedAt.Compare(b.StartedAt), a.Seq-b.Seq) })
		strips[id] = strip[max(0, len(strip)-stripLength):]
	}
	return strips, nil
}

// summedStrips reads the strips, and in the same statement how far the ledger is summed up; zero is not at all.
func summedStrips(ctx context.Context, db store.DB, project string, endpointIDs []string) (map[string][]StripAttempt, time.Time, error) {
	rows, err := db.Query(ctx, `
		select r.through, coalesce(s.endpoint_id, ''), s.attempts
		from (select (select through from rollups where name = 'attempts') as through) r
		left join endpoint_strips s on s.project_id = $1 and s.endpoint_id = any($2)`, project, endpointIDs)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read strips: %w", err)
	}
	strips := make(map[string][]StripAttempt, len(endpointIDs))
	var through *time.Time
	var id string
	var raw []byte
	if _, err := pgx.ForEachRow(rows, []any{&through, &id, &raw}, func() error {
		var strip []StripAttempt
		if raw == nil {
			return nil
		}
		if err := json.Unmarshal(raw, &strip); err != nil {
			return err
		}
		strips[id] = strip
		return nil
	}); err != nil {
		return nil, time.Time{}, fmt.Errorf("read strips: %w", err)
	}
	return strips, orZero(through), nil
}

// addYoungAttempts adds the attempts that ended since the ledger was summed up. The bounds on their start, which is at most a
// quarter of an hour earlier, leave the database a day or two of the ledger to look into.
func addYoungAttempts(ctx context.Context, db store.DB, project string, endpointIDs []string, through time.Time, strips map[string][]StripAttempt) error {
	rows, err := db.Query(ctx, `
		select i.id, a.task_id, a.seq, a.attempt, a.started_at, a.class, a.decision, coalesce(a.status, 0), coalesce(a.error_type, ''), a.total_us
		from unnest($2::text[]) as i (id)
		cross join lateral (
			select task_id, seq, attempt, started_at, class, decision, status, error_type, total_us from attempts
			where endpoint_id = i.id and project_id = $1 and started_at >= $4 and started_at < now() + interval '1 day' and finished_at >= $5
			order by started_at desc limit $3
		) a
		order by i.id, a.started_at, a.seq`, project, endpointIDs, stripLength, through.Add(-15*time.Minute), through)
	if err != nil {
		return fmt.Errorf("read the last attempts: %w", err)
	}
	var id string
	var a StripAttempt
	into := []any{&id, &a.TaskID, &a.Seq, &a.Attempt, &a.StartedAt, &a.Class, &a.Decision, &a.Status, &a.ErrorType, &a.TotalUS}
	if _, err := pgx.ForEachRow(rows, into, func() error {
		strips[id] = append(strips[id], a)
		return nil
	}); err != nil {
		return fmt.Errorf("read the last attempts: %w", err)
	}
	return nil
}
