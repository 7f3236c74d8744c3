package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// StoredExcerpt is what is kept of one exchange, under a shorter retention than its record.
type StoredExcerpt struct {
	Seq               int         `db:"seq"`
	StartedAt         time.Time   `db:"started_at"`
	RequestLine       *string     `db:"request_line"`
	RequestHeaders    [][2]string `db:"-"`
	RequestBody       []byte      `db:"request_body"`
	RequestTruncated  bool        `db:"request_truncated"`
	ResponseHeaders   [][2]string `db:"-"`
	ResponseBody      []byte      `db:"response_body"`
	ResponseTruncated bool        `db:"response_truncated"`
	Note              *string     `db:"note"`

	RawRequestHeaders  json.RawMessage `db:"request_headers"`
	RawResponseHeaders json.RawMessage `db:"response_headers"`
}

const recordSelect = `project_id, task_id, seq, attempt, charged, kind, trigger, idempotency_key, event_id, endpoint_id, order_id,
	recipient_ref, policy_profile, policy_version, policy_hash, started_at, finished_at, dns_us, connect_us, tls_us, first_byte_us,
	total_us, peer, class, status, error_type, phase, error, decision, reason, base_wait_ms, wait_ms, cap, retry_after_raw,
	retry_after_read, next_attempt_at, request_sha256, response_sha256, node_id, prev_hash, hash`

// AttemptsOfTask loads a task's chain in its order. A foreign project has none.
func AttemptsOfTask(ctx context.Context, db store.DB, project string, taskID int64) ([]Record, error) {
	s, err := spanOf(ctx, db, taskID)
	if err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, `select `+recordSelect+` from attempts
		where task_id = $1 and project_id = $2 and started_at >= $3 and started_at < $4 order by seq, started_at`, taskID, project, s.from, s.until)
	if err != nil {
		return nil, fmt.Errorf("load attempts: %w", err)
	}
	records, err := pgx.CollectRows(rows, pgx.RowToStructByName[Record])
	if err != nil {
		return nil, fmt.Errorf("load attempts: %w", err)
	}
	for i := range records {
		records[i].toUTC()
	}
	return records, nil
}

// ExcerptsOfTask loads what is still kept of a task's exchanges, in their order.
func ExcerptsOfTask(ctx context.Context, db store.DB, project string, taskID int64) ([]StoredExcerpt, error) {
	s, err := spanOf(ctx, db, taskID)
	if err != nil {
		return nil, err
	}
	return queryExcerpts(ctx, db, "", taskID, project, s.from, s.until)
}

// queryExcerpts takes the task, the project and the span as its first arguments; and narrows the rows further.
func queryExcerpts(ctx context.Context, db store.DB, and string, args ...any) ([]StoredExcerpt, error) {
	rows, err := db.Query(ctx, `select seq, started_at, request_line, request_headers, request_body, request_truncated,
		response_headers, response_body, response_truncated, note
		from attempt_excerpts where task_id = $1 and project_id = $2 and started_at >= $3 and started_at < $4 `+and+` order by seq`, args...)
	if err != nil {
		return nil, fmt.Errorf("load excerpts: %w", err)
	}
	excerpts, err := pgx.CollectRows(rows, pgx.RowToStructByName[StoredExcerpt])
	if err != nil {
		return nil, fmt.Errorf("load excerpts: %w", err)
	}
	for i := range excerpts {
		e := &excerpts[i]
		if err := json.Unmarshal(e.RawRequestHeaders, &e.RequestHeaders); err != nil {
			return nil, fmt.Errorf("read request headers: %w", err)
		}
		if err := json.Unmarshal(e.RawResponseHeaders, &e.ResponseHeaders); err != nil {
			return nil, fmt.Errorf("read response headers: %w", err)
		}
	}
	return excerpts, nil
}

func (r *Record) toUTC() {
	r.StartedAt, r.FinishedAt = r.StartedAt.UTC(), r.FinishedAt.UTC()
	if r.NextAttemptAt != nil {
		next := r.NextAttemptAt.UTC()
		r.NextAttemptAt = &next
	}
}
