package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
)

const (
	ledgerGroupRows    = 500                   // rows in one commit at most
	ledgerGroupEnough  = 64                    // rows for which a commit waits no longer
	ledgerGroupWait    = 20 * time.Millisecond // how long a commit waits for company, once there was some
	ledgerWriters      = 2
	ledgerWriteTimeout = 10 * time.Second
)

// ErrLedgerClosed answers an append after Close.
var ErrLedgerClosed = errors.New("the ledger is closed")

// LedgerOptions are what a Ledger needs.
type LedgerOptions struct {
	Pool   *pgxpool.Pool
	Logger *slog.Logger
	// Gate is the one of the whole process; nil lets everything in.
	Gate *store.Gate
}

// Ledger writes records and excerpts in grouped commits: many workers share one commit, and each waits for the commit that
// holds its row. It is safe for concurrent use.
type Ledger struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	gate *store.Gate
	in   chan *entry
	quit chan struct{}
	once sync.Once
	done sync.WaitGroup
}

// entry is one record on its way; written gets the outcome of its commit.
type entry struct {
	record   Record
	evidence *Evidence
	// completes holds the task's marks when the record ends it with success: the task is then completed by the same commit.
	completes []byte
	written   chan error
}

// NewLedger starts the writers. Close ends them.
func NewLedger(o LedgerOptions) *Ledger {
	l := &Ledger{pool: o.Pool, log: o.Logger, gate: o.Gate, in: make(chan *entry, 2*ledgerGroupRows), quit: make(chan struct{})}
	for range ledgerWriters {
		l.done.Go(l.work)
	}
	return l
}

// Close waits for what is under way and ends the writers. Appends after it are refused.
func (l *Ledger) Close() {
	l.once.Do(func() { close(l.quit) })
	l.done.Wait()
}

// append writes a sealed record and returns when its commit is durable. The context ends the waiting, not the write.
func (l *Ledger) append(ctx context.Context, r Record, e *Evidence) error {
	return l.write(ctx, &entry{record: r, evidence: e})
}

// complete is append for a record that ends its task with success.
func (l *Ledger) complete(ctx context.Context, r Record, e *Evidence, marks []byte) error {
	return l.write(ctx, &entry{record: r, evidence: e, completes: marks})
}

func (l *Ledger) write(ctx context.Context, item *entry) error {
	item.written = make(chan error, 1)
	select {
	case l.in <- item:
	case <-l.quit:
		return ErrLedgerClosed
	case <-ctx.Done():
		return fmt.Errorf("hand a record to the ledger: %w", context.Cause(ctx))
	}
	select {
	case err := <-item.written:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the ledger's commit: %w", context.Cause(ctx))
	}
}

func (l *Ledger) work() {
	company := false
	for {
		var first *entry
		select {
		case first = <-l.in:
		default:
			select {
			case first = <-l.in:
			case <-l.quit:
				return
			}
		}
		group := l.gather(first, company)
		company = len(group) > 1
		l.commit(group)
	}
}

// gather takes what is waiting. Under load it gives the others a moment to join, which saves more commits than it costs;
// a lone record goes at once.
func (l *Ledger) gather(first *entry, wait bool) []*entry {
	group := []*entry{first}
	var timeout <-chan time.Time
	if wait {
		t := time.NewTimer(ledgerGroupWait)
		defer t.Stop()
		timeout = t.C
	}
	for len(group) < ledgerGroupRows {
		select {
		case e := <-l.in:
			group = append(group, e)
			continue
		default:
		}
		if timeout == nil || len(group) >= ledgerGroupEnough {
			return group
		}
		select {
		case e := <-l.in:
			group = append(group, e)
		case <-timeout:
			return group
		}
	}
	return group
}

func (l *Ledger) commit(group []*entry) {
	ctx, cancel := context.WithTimeout(context.Background(), ledgerWriteTimeout)
	defer cancel()
	defer l.gate.Enter(ctx, len(group))()
	err := appendTo(ctx, l.pool, group...)
	if err == nil || len(group) == 1 {
		for _, e := range group {
			e.written <- err
		}
		return
	}
	l.log.WarnContext(ctx, "a grouped ledger commit failed; writing its rows one by one", "rows", len(group), "error", err)
	for _, e := range group {
		e.written <- appendTo(ctx, l.pool, e)
	}
}

// appendTo writes entries in one round trip: as part of the caller's transaction, or in one of their own.
func appendTo(ctx context.Context, db store.DB, group ...*entry) error {
	batch := &pgx.Batch{}
	queueEntries(batch, group...)
	if err := db.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("append to the ledger: %w", err)
	}
	return nil
}

// queueEntries adds the statements that write entries to a batch.
func queueEntries(batch *pgx.Batch, group ...*entry) {
	rows := make([][]any, 0, len(group))
	excerpts := make([][]any, 0, len(group))
	for _, e := range group {
		rows = append(rows, e.record.values())
		if e.evidence != nil && e.evidence.Sent {
			excerpts = append(excerpts, excerptValues(e.record, e.evidence))
		}
	}
	batch.Queue(insertRecords, columnsOf(rows)...)
	if len(excerpts) > 0 {
		batch.Queue(insertExcerpts, columnsOf(excerpts)...)
	}
	queueCompletions(batch, group)
}

// queueCompletions completes the tasks whose records say so, as river.JobCompleteTx does for one: what River is told afterwards
// finds nothing left to do. A task that is not running any more is left alone.
func queueCompletions(batch *pgx.Batch, group []*entry) {
	var ids []int64
	var marks []string
	for _, e := range group {
		if e.completes != nil {
			ids, marks = append(ids, e.record.TaskID), append(marks, string(e.completes))
		}
	}
	if len(ids) > 0 {
		batch.Queue(`
			update river_job j set state = 'completed', finalized_at = now(), metadata = j.metadata || c.marks::jsonb
			from unnest($1::bigint[], $2::text[]) as c (id, marks)
			where j.id = c.id and j.state is not distinct from 'running'`, ids, marks) // No index serves this, so it is looked up by id.
	}
}

// columnsOf turns rows into an array for each column, which is how a statement of one text takes any number of rows.
func columnsOf(rows [][]any) []any {
	columns := make([]any, len(rows[0]))
	for c := range columns {
		column := make(pgtype.FlatArray[any], len(rows))
		for r, row := range rows {
			column[r] = row[c]
		}
		columns[c] = column
	}
	return columns
}

// insertSQL is the statement that stores what columnsOf makes. The types are those of the columns, in their order.
func insertSQL(table string, columns, types []string) string {
	arrays := make([]string, len(types))
	for i, t := range types {
		arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, t)
	}
	return fmt.Sprintf("insert into %s (%s) select * from unnest(%s)", table, strings.Join(columns, ", "), strings.Join(arrays, ", "))
}

var (
	insertRecords = insertSQL("attempts", recordColumns, []string{"text", "bigint", "int", "int", "bool", "text", "text", "text", "text",
		"text", "text", "bytea", "text", "int", "bytea", "timestamptz", "timestamptz",
		"bigint", "bigint", "bigint", "bigint", "bigint", "text", "text", "int", "text", "text", "text",
		"text", "text", "bigint", "bigint", "text", "text", "text", "timestamptz",
		"bytea", "bytea", "text", "bytea", "bytea"})
	insertExcerpts = insertSQL("attempt_excerpts", excerptColumns, []string{"text", "bigint", "int", "timestamptz", "text", "jsonb", "bytea",
		"bool", "jsonb", "bytea", "bool", "text"})
)

var recordColumns = []string{"project_id", "task_id", "seq", "attempt", "charged", "kind", "trigger", "idempotency_key", "event_id",
	"endpoint_id", "order_id", "recipient_ref", "policy_profile", "policy_version", "policy_hash", "started_at", "finished_at",
	"dns_us", "connect_us", "tls_us", "first_byte_us", "total_us", "peer", "class", "status", "error_type", "phase", "error",
	"decision", "reason", "base_wait_ms", "wait_ms", "cap", "retry_after_raw", "retry_after_read", "next_attempt_at",
	"request_sha256", "response_sha256", "node_id", "prev_hash", "hash"}

func (r Record) values() []any {
	return []any{r.ProjectID, r.TaskID, r.Seq, r.Attempt, r.Charged, r.Kind, string(r.Trigger), r.IdempotencyKey, r.EventID,
		r.EndpointID, r.OrderID, r.RecipientRef, r.PolicyProfile, r.PolicyVersion, r.PolicyHash, r.StartedAt, r.FinishedAt,
		r.DNSUS, r.ConnectUS, r.TLSUS, r.FirstByteUS, r.TotalUS, r.Peer, r.Class, r.Status, r.ErrorType, r.Phase, r.Error,
		string(r.Decision), r.Reason, r.BaseWaitMS, r.WaitMS, r.Cap, r.RetryAfterRaw, r.RetryAfterRead, r.NextAttemptAt,
		r.RequestSHA256, r.ResponseSHA256, r.NodeID, r.PrevHash, r.Hash}
}

var excerptColumns = []string{"project_id", "task_id", "seq", "started_at", "request_line", "request_headers", "request_body",
	"request_truncated", "response_headers", "response_body", "response_truncated", "note"}

func excerptValues(r Record, e *Evidence) []any {
	return []any{r.ProjectID, r.TaskID, r.Seq, r.StartedAt, textField(e.Request.Line, 4096), headerJSON(e.Request.Header), e.Request.Body,
		e.Request.Truncated, headerJSON(e.Response.Header), e.Response.Body, e.Response.Truncated, textField(e.Note, 1024)}
}

// headerJSON stores headers as a list of name and value pairs, sorted by name, so that repeated ones keep their order.
func headerJSON(h http.Header) []byte {
	var b bytes.Buffer
	b.Grow(512)
	b.WriteByte('[')
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.WriteByte('[')
			writeText(&b, cleanText(name))
			b.WriteByte(',')
			writeText(&b, cleanText(value))
			b.WriteByte(']')
		}
	}
	b.WriteByte(']')
	return b.Bytes()
}
