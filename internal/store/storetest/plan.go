package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"entrega/internal/store"
)

// Recorder notes the queries of the pools that it traces, each once with each set of arguments, so that a test can look at how
// the database runs them. It is a pgx tracer and safe for concurrent use.
type Recorder struct {
	mu         sync.Mutex
	seen       map[string]bool
	statements []Statement
}

// Statement is what was sent to the database.
type Statement struct {
	SQL  string
	Args []any
}

// TraceQueryStart notes a statement.
func (r *Recorder) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	r.note(d.SQL, d.Args)
	return ctx
}

// TraceQueryEnd does nothing.
func (r *Recorder) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart notes the statements of a batch.
func (r *Recorder) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		r.note(q.SQL, q.Arguments)
	}
	return ctx
}

// TraceBatchQuery does nothing.
func (r *Recorder) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd does nothing.
func (r *Recorder) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (r *Recorder) note(sql string, args []any) {
	if verb := strings.ToLower(strings.TrimSpace(sql)); !strings.HasPrefix(verb, "select") && !strings.HasPrefix(verb, "with") {
		return
	}
	key := sql + "\x00" + fmt.Sprint(args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	if !r.seen[key] {
		r.seen[key] = true
		r.statements = append(r.statements, Statement{SQL: sql, Args: slices.Clone(args)})
	}
}

// Take returns what was noted since the last call, in order.
func (r *Recorder) Take() []Statement {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.statements
	r.seen, r.statements = nil, nil
	return taken
}

// Planner explains statements on one connection. It belongs to one goroutine.
type Planner struct {
	conn *pgx.Conn
	rows map[string]float64 // of each table, as the database estimates it
	n    int
}

// NewPlanner connects to a test's database, whose tables have been analysed, as the product does. The connection ends with the test.
func NewPlanner(t testing.TB, dsn string) *Planner {
	t.Helper()
	ctx := context.Background()
	pool, err := store.Open(ctx, dsn, store.Options{MaxConns: 1})
	if err != nil {
		t.Fatalf("connect to explain statements: %v", err)
	}
	t.Cleanup(pool.Close)
	conn, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatalf("connect to explain statements: %v", err)
	}
	t.Cleanup(conn.Release)
	p := &Planner{conn: conn.Conn(), rows: map[string]float64{}}
	rows, err := conn.Query(ctx, `select relname::text, reltuples::float8 from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var n float64
	if _, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { p.rows[name] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	return p
}

// The two ways in which the database plans a prepared statement: for the arguments of each call, and, after a few calls,
// once for all. Connections of a pool get to see both.
const (
	planForArguments = "force_custom_plan"
	planForAll       = "force_generic_plan"
)

// Check runs a statement, rolled back, by the plans that it may get, and fails the test where one reads a table of more than
// a thousand rows as a whole, where it sorts more than sortMost rows, or where it looks at more than readMost rows in all.
func (p *Planner) Check(t testing.TB, s Statement, sortMost, readMost float64) {
	t.Helper()
	for _, mode := range []string{planForArguments, planForAll} {
		root := p.explain(t, s, mode)
		read := 0.0
		for _, n := range root.all() {
			if n.Type == "Seq Scan" && p.rows[n.Relation] > 1000 {
				t.Errorf("%s: %s is read as a whole by:%s\n%v\n%s", mode, n.Relation, s.SQL, s.Args, root.draw(1))
			}
			if strings.HasSuffix(n.Type, "Sort") && n.input() > sortMost {
				t.Errorf("%s: %.0f rows are sorted, more than %.0f, by:%s\n%v\n%s", mode, n.input(), sortMost, s.SQL, s.Args, root.draw(1))
			}
			if n.Relation != "" {
				read += n.looked()
			}
		}
		if read > readMost {
			t.Errorf("%s: %.0f rows are looked at, more than %.0f, by:%s\n%v\n%s", mode, read, readMost, s.SQL, s.Args, root.draw(1))
		}
	}
}

// Touched runs a statement, rolled back, by the plan for all arguments, and returns the tables that it looked into.
func (p *Planner) Touched(t testing.TB, s Statement) []string {
	t.Helper()
	var touched []string
	for _, n := range p.explain(t, s, planForAll).all() {
		if n.Relation != "" && n.Loops > 0 && !slices.Contains(touched, n.Relation) {
			touched = append(touched, n.Relation)
		}
	}
	return touched
}

// explain runs a statement under EXPLAIN. It is prepared first, since only a prepared one has a plan for all arguments.
func (p *Planner) explain(t testing.TB, s Statement, mode string) Node {
	t.Helper()
	ctx := context.Background()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := p.conn.Exec(ctx, sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	sql, args := s.SQL, s.Args
	if len(args) > 0 {
		if rewriter, ok := args[0].(pgx.QueryRewriter); ok {
			var err error
			if sql, args, err = rewriter.RewriteQuery(ctx, p.conn, sql, args[1:]); err != nil {
				t.Fatalf("%s: %v", s.SQL, err)
			}
		}
	}
	p.n++
	name := fmt.Sprintf("planned_%d", p.n)
	prepared, err := p.conn.Prepare(ctx, name, sql)
	if err != nil {
		t.Fatalf("prepare %s: %v", sql, err)
	}
	exec("begin")
	defer exec("rollback")
	exec("set local plan_cache_mode = " + mode)
	execute := "execute " + name
	if len(prepared.ParamOIDs) > 0 {
		places := make([]string, len(prepared.ParamOIDs))
		texts := make([]any, len(args))
		for i, oid := range prepared.ParamOIDs {
			places[i] = fmt.Sprintf("$%d", i+1)
			text, err := p.conn.TypeMap().Encode(oid, pgtype.TextFormatCode, args[i], nil)
			if err != nil {
				t.Fatalf("encode argument %d of %s: %v", i+1, sql, err)
			}
			if text != nil {
				texts[i] = string(text)
			}
		}
		args = texts
		execute += " (" + strings.Join(places, ", ") + ")"
	}
	var raw string
	// The simple protocol writes the arguments into the text, which EXECUTE needs.
	err = p.conn.QueryRow(ctx, "explain (analyze, timing off, format json) "+execute, append([]any{pgx.QueryExecModeSimpleProtocol}, args...)...).Scan(&raw)
	if err != nil {
		t.Fatalf("explain %s %v: %v", sql, args, err)
	}
	var plans []struct{ Plan Node }
	if err := json.Unmarshal([]byte(raw), &plans); err != nil {
		t.Fatalf("read a plan: %v", err)
	}
	return plans[0].Plan
}

// Node is one step of a plan that was run.
type Node struct {
	Type     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Cond     string  `json:"Index Cond"`
	Filter   string  `json:"Filter"`
	Rows     float64 `json:"Actual Rows"` // in each loop
	Loops    float64 `json:"Actual Loops"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Rejected float64 `json:"Rows Removed by Index Recheck"`
	Plans    []Node  `json:"Plans"`
}

func (n Node) all() []Node {
	nodes := []Node{n}
	for _, below := range n.Plans {
		nodes = append(nodes, below.all()...)
	}
	return nodes
}

// input is how many rows came from below.
func (n Node) input() float64 {
	var rows float64
	for _, below := range n.Plans {
		rows += below.Rows * below.Loops
	}
	return rows
}

// looked is how many rows a scan took up, kept or not.
func (n Node) looked() float64 { return (n.Rows + n.Filtered + n.Rejected) * n.Loops }

// draw shows the plan for people.
func (n Node) draw(depth int) string {
	line := fmt.Sprintf("%s%s", strings.Repeat("  ", depth), n.Type)
	for _, part := range []string{n.Relation, n.Index, n.Cond} {
		if part != "" {
			line += " " + part
		}
	}
	if n.Filter != "" {
		line += " filter " + n.Filter
	}
	line += fmt.Sprintf(" (%.0f rows, %.0f filtered, %.0f loops)\n", n.Rows, n.Filtered, n.Loops)
	for _, below := range n.Plans {
		if below.Loops > 0 {
			line += below.draw(depth + 1)
		}
	}
	return line
}
