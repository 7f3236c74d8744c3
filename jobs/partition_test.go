package jobs

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store/storetest"
)

func TestPartitions_NewOnesKeepStatisticsOfTheSameColumns(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, MigrateDSN)
	if _, err := pool.Exec(t.Context(), `select entrega_ensure_partitions(9)`); err != nil {
		t.Fatal(err)
	}
	of := func(table string) (targets map[string]int) {
		err := pool.QueryRow(t.Context(), `select jsonb_object_agg(attname, attstattarget) from pg_attribute
			where attrelid = to_regclass($1) and attnum > 0 and not attisdropped`, table).Scan(&targets)
		if err != nil {
			t.Fatal(err)
		}
		return targets
	}
	for _, table := range []string{"attempts", "attempt_excerpts"} {
		var newest string
		err := pool.QueryRow(t.Context(), `select $1 || to_char((now() at time zone 'utc')::date + 9, '_YYYYMMDD')`, table).Scan(&newest)
		if err != nil {
			t.Fatal(err)
		}
		want := of(table)
		if want["task_id"] <= 0 || want["started_at"] <= 0 {
			t.Fatalf("%s keeps statistics of %v", table, want)
		}
		if diff := cmp.Diff(want, of(newest)); diff != "" {
			t.Errorf("%s (-table +partition):\n%s", newest, diff)
		}
	}
}
