package webhooks_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/webhooks"
)

// A statement's plan is kept for as long as its connection lives. In an empty table every index looks as good as the other, and one
// that leads to all events of a project made the first flood of a new installation stand still for seconds.
func TestContents_AreFoundByIDAlsoByAPlanThatWasMadeForAnEmptyTable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var plan []string
	err := store.InTx(b.ctx, b.pool, func(tx pgx.Tx) error {
		for _, sql := range []string{"set local plan_cache_mode = force_generic_plan", "prepare contents (text[], text[], int) as " + webhooks.ReadContentsByID} {
			if _, err := tx.Exec(b.ctx, sql); err != nil {
				return err
			}
		}
		rows, err := tx.Query(b.ctx, "explain execute contents ('{project}', '{event}', 1)", pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			return err
		}
		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(plan, "\n"); !strings.Contains(all, "using events_id_key") || strings.Contains(all, "Filter") {
		t.Errorf("events are not found by the index of their ids alone:\n%s", all)
	}
}
