package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"entrega/internal/store"
)

// Seed is a task with a past, for installations that are filled to be measured or tested. It lives by the policies in force: what
// its attempts leave behind is decided, recorded and chained by the code that does so for true ones.
type Seed struct {
	// Profile is that of the policy which decides; empty means the kind's own.
	Profile string
	// Play stands for the handler: what the attempt of this number, which starts at an instant, leaves behind, with both of
	// its ends. The task waits for its first attempt where it is nil.
	Play func(number int, at time.Time) (Evidence, error)
	// Running leaves the task in an attempt that has not ended.
	Running bool
	// CancelledAt is when a person cancelled the task, unless it had come to its end; zero means never.
	CancelledAt time.Time

	id         int64
	kind       string
	policyKind string
	profile    string
	args       json.RawMessage
	createdAt  time.Time
	opts       *river.InsertOpts
}

// ID is the task's number.
func (s Seed) ID() int64 { return s.id }

// SeederOptions are what a Seeder needs.
type SeederOptions struct {
	Client *Client
	Pool   *pgxpool.Pool
	// Since is when the oldest seed was made, and Now the instant up to which they live.
	Since, Now time.Time
}

// Seeder fills the tables of tasks and of the ledger in bulk. NewSeed belongs to one goroutine; Write is safe for concurrent use.
type Seeder struct {
	client *Client
	pool   *pgxpool.Pool
	since  time.Time
	now    time.Time
	node   Node
	ids    []int64 // reserved and not yet given out
}

// seedIDs is how many task numbers are reserved at once.
const seedIDs = 10_000

// NewSeeder makes a Seeder, and the ledger's partitions for the days that have passed since o.Since.
func NewSeeder(ctx context.Context, o SeederOptions) (*Seeder, error) {
	s := &Seeder{client: o.Client, pool: o.Pool, since: o.Since.UTC(), now: o.Now.UTC(), node: newNode("", "")}
	for day := s.since.Truncate(24 * time.Hour); day.Before(s.now); day = day.Add(24 * time.Hour) {
		for _, table := range []string{"attempts", "attempt_excerpts"} {
			if err := s.makePartition(ctx, table, day); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// makePartition makes a day's partition unless it is there, or the default one holds rows of that day.
func (s *Seeder) makePartition(ctx context.Context, table string, day time.Time) error {
	name, next := table+day.Format("_20060102"), day.Add(24*time.Hour)
	var wanted bool
	err := s.pool.QueryRow(ctx, `select to_regclass($1) is null and not exists (select from `+table+`_other where started_at >= $2 and started_at < $3)`,
		name, day, next).Scan(&wanted)
	if err == nil && wanted {
		_, err = s.pool.Exec(ctx, fmt.Sprintf(`create table %s partition of %s for values from ('%s') to ('%s')`,
			name, table, day.Format(time.RFC3339), next.Format(time.RFC3339)))
	}
	if err != nil {
		return fmt.Errorf("make the partition %s: %w", name, err)
	}
	return nil
}

// NewSeed makes the task that InsertTx would have made at an instant. Seeds must be made in the order of their instants, for a
// task's number grows with time.
func NewSeed[T any](ctx context.Context, s *Seeder, k Kind[T], args T, in Insert, at time.Time) (Seed, error) {
	raw, opts, err := prepare(s.client, k, args, in)
	if err != nil {
		return Seed{}, err
	}
	if len(s.ids) == 0 {
		if err := s.reserve(ctx); err != nil {
			return Seed{}, err
		}
	}
	seed := Seed{id: s.ids[0], kind: k.Name, args: raw.json, createdAt: micros(at), opts: opts}
	seed.policyKind, seed.profile = k.policy()
	s.ids = s.ids[1:]
	return seed, nil
}

func (s *Seeder) reserve(ctx context.Context) error {
	rows, err := s.pool.Query(ctx, `select nextval(pg_get_serial_sequence('river_job', 'id')) from generate_series(1, $1::integer)`, seedIDs)
	if err != nil {
		return fmt.Errorf("reserve task numbers: %w", err)
	}
	if s.ids, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return fmt.Errorf("reserve task numbers: %w", err)
	}
	return nil
}

// Write lets seeds live up to now, and stores them with their attempts as part of the caller's transaction. Bodies that the
// evidence holds are stored as excerpts.
func (s *Seeder) Write(ctx context.Context, tx pgx.Tx, seeds []Seed) error {
	// Their lives are made up while the transaction waits, which may take a while for many on a busy machine.
	if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = 0`); err != nil {
		return fmt.Errorf("let the transaction wait: %w", err)
	}
	rows := make([][]any, 0, len(seeds))
	var records, excerpts [][]any
	for _, seed := range seeds {
		l := s.live(ctx, seed)
		row, err := l.values()
		if err != nil {
			return err
		}
		rows = append(rows, row)
		for _, e := range l.entries {
			records = append(records, e.record.values())
			if len(e.evidence.Request.Body) == 0 {
				continue
			}
			excerpts = append(excerpts, excerptValues(e.record, e.evidence))
		}
	}
	for _, t := range []struct {
		table   string
		columns []string
		rows    [][]any
	}{{"river_job", seedColumns, rows}, {"attempts", recordColumns, records}, {"attempt_excerpts", excerptColumns, excerpts}} {
		if _, err := tx.CopyFrom(ctx, pgx.Identifier{t.table}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
			return fmt.Errorf("fill %s: %w", t.table, err)
		}
	}
	return nil
}

// Finish sums the ledger up for the whole time of the seeds, and gives the planner fresh figures. Nothing else may write meanwhile.
func (s *Seeder) Finish(ctx context.Context) error {
	from, until := s.since.Truncate(time.Hour), s.now.Truncate(time.Minute)
	err := store.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		for _, statement := range []struct {
			sql  string
			args []any
		}{
			{`delete from endpoint_hours where hour >= $1`, []any{from}}, // an hour only grows
			{`delete from attempt_hours where hour >= $1`, []any{from}},
			{`delete from endpoint_strips`, nil},
			{`select entrega_roll_up($1, $2)`, []any{from, until}},
			{`insert into rollups (name, through) values ('attempts', $1) on conflict (name) do update set through = excluded.through`, []any{until}},
		} {
			if _, err := tx.Exec(ctx, statement.sql, statement.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("sum up the ledger: %w", err)
	}
	for _, table := range []string{"river_job", "attempts", "attempt_excerpts", "attempt_minutes", "attempt_hours", "latency_minutes", "endpoint_hours", "endpoint_strips"} {
		if _, err := s.pool.Exec(ctx, `vacuum (analyze) `+table); err != nil {
			return fmt.Errorf("analyse %s: %w", table, err)
		}
	}
	return nil
}
