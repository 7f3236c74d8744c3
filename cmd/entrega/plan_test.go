package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/store/storetest"
	"entrega/jobs"
)

const (
	// planSort is the most rows that a page may sort: the sums of a day in steps, or a page of each of River's states.
	planSort = 5_000
	// planRead is the most that one statement of a page may look at: counts stop at 10,001 in each state.
	planRead = 35_000
	// panelBytes is the most that a first visit may load (issue: under 100 KB in all).
	panelBytes = 100_000
)

// TestPlans_OfEveryPage opens each page of a filled installation, and looks at the plan of every query that it made.
func TestPlans_OfEveryPage(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, jobs.MigrateDSN)
	settings := map[string]string{"DATABASE_URL": storetest.DSN(pool), "ENTREGA_SECRET_KEY": strings.Repeat("A", 43) + "=", "ENTREGA_LISTEN": "127.0.0.1:0"}
	getenv := func(name string) string { return settings[name] }
	command := seeded{t: t, getenv: getenv}
	command.must(panelPassword, "user", "create", "--email", panelEmail, "--admin", "--password-stdin")
	command.must("", "seed", "--tasks", "60000", "--owner", panelEmail)
	if out := command.must("", "evidence", "verify"); !strings.HasPrefix(out, "All chains hold: 5") {
		t.Errorf("the ledger of a filled installation: %s", out)
	}

	recorder := &storetest.Recorder{}
	base := servePanel(t, getenv, recorder)
	planner := storetest.NewPlanner(t, storetest.DSN(pool))
	panel := openPanel(t, base)
	checked := map[string]bool{}
	wantEveryState(t, pool)
	for _, page := range panelPages(t, pool) {
		t.Run(page.name, func(t *testing.T) {
			recorder.Take()
			panel.get(page.path, true)
			statements := recorder.Take()
			if len(statements) < 3 {
				t.Fatalf("only %d queries", len(statements))
			}
			for _, s := range statements {
				checked[s.SQL] = true
				planner.Check(t, s, planSort, planRead)
			}
			if _, all := panel.weight(page.path, true); all > panelBytes {
				t.Errorf("a first visit loads %d bytes", all)
			}
		})
	}
	if len(checked) < 40 {
		t.Errorf("only %d different queries were looked at", len(checked))
	}
}

// wantEveryState makes sure that no tab is empty, for an empty page proves nothing.
func wantEveryState(t *testing.T, db store.DB) {
	t.Helper()
	rows, err := db.Query(t.Context(), `select state::text, coalesce(outcome, ''), scheduled_at from river_job where project_id = (select id from projects where name = 'Shop 01')`)
	if err != nil {
		t.Fatal(err)
	}
	found := map[jobs.TaskState]int{}
	var state, outcome string
	var at time.Time
	if _, err := pgx.ForEachRow(rows, []any{&state, &outcome, &at}, func() error {
		found[jobs.StateOf(state, outcome, at, time.Now())]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, s := range jobs.TaskStates() {
		if found[s] == 0 {
			t.Errorf("a filled installation has no task that is %s", s)
		}
	}
}

// servePanel runs a node without workers whose queries are noted, until the test ends.
func servePanel(t *testing.T, getenv func(string) string, recorder *storetest.Recorder) (base string) {
	t.Helper()
	c, err := LoadConfig(getenv)
	if err != nil {
		t.Fatal(err)
	}
	c.tracer = recorder
	a, err := newApp(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- a.run(ctx, []string{"work"}, func() { close(ready) }) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, a.close()); err != nil {
			t.Error(err)
		}
	})
	<-ready
	return a.address()
}
