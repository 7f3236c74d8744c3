package storetest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/store/storetest"
)

// complaints is a test that takes down what is wrong instead of failing.
type complaints struct {
	testing.TB
	said []string
}

func (c *complaints) Errorf(format string, args ...any) {
	c.said = append(c.said, fmt.Sprintf(format, args...))
}

func TestPlanner_FindsWhatReadsOrSortsTooMuch(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, nil)
	for _, sql := range []string{
		`create table parcels (id bigint primary key, weight integer, colour text)`,
		`insert into parcels select n, n % 100, 'c' || n % 3 from generate_series(1, 20000) n`,
		`create index parcels_weight_idx on parcels (weight, id)`,
		`vacuum (analyze) parcels`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	recorder := &storetest.Recorder{}
	traced, err := store.Open(t.Context(), storetest.DSN(pool), store.Options{MaxConns: 1, Tracer: recorder})
	if err != nil {
		t.Fatal(err)
	}
	defer traced.Close()
	planner := storetest.NewPlanner(t, storetest.DSN(pool))
	for _, c := range []struct {
		sql  string
		args []any
		want string // nothing is wrong where it is empty
	}{
		{`select id from parcels where weight = $1 order by id limit 10`, []any{7}, ""},
		{`select id from parcels where weight = @weight order by id limit 10`, []any{pgx.StrictNamedArgs{"weight": 7}}, ""},
		{`select id from parcels where weight = any($1) limit 10`, []any{[]int{7, 8}}, ""},
		{`select id from parcels where colour = $1`, []any{"c1"}, "parcels is read as a whole"},
		{`select id from parcels where weight = $1 order by colour`, []any{7}, "200 rows are sorted"},
		{`select count(*) from parcels where id > $1`, []any{15_000}, "5000 rows are looked at"},
		{`select id from parcels where weight = $1 and colour = 'none' order by id limit 10`, []any{7}, "200 rows are looked at"},
	} {
		for range 2 { // noted once
			if _, err := traced.Exec(t.Context(), c.sql, c.args...); err != nil {
				t.Fatal(err)
			}
		}
		statements := recorder.Take()
		if len(statements) != 1 {
			t.Fatalf("%s: %d statements were noted", c.sql, len(statements))
		}
		found := &complaints{TB: t}
		planner.Check(found, statements[0], 100, 100)
		said := strings.Join(found.said, "\n")
		if c.want == "" && said != "" || !strings.Contains(said, c.want) {
			t.Errorf("%s: want %q, got %q", c.sql, c.want, said)
		}
	}
}
