package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"entrega/internal/store/storetest"
	"entrega/jobs"
)

// seeded is a database of its own that commands run on.
type seeded struct {
	t      *testing.T
	getenv func(string) string
}

func (s seeded) run(stdin string, args ...string) (string, error) {
	s.t.Helper()
	var out strings.Builder
	err := run(context.Background(), environment{args: args, getenv: s.getenv, in: strings.NewReader(stdin), out: &out, err: io.Discard})
	return out.String(), err
}

func (s seeded) must(stdin string, args ...string) string {
	s.t.Helper()
	out, err := s.run(stdin, args...)
	if err != nil {
		s.t.Fatalf("entrega %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func TestSeed_FillsExactlyWhatWasAskedForAndOnlyWhereNothingIs(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, jobs.MigrateDSN)
	settings := map[string]string{"DATABASE_URL": storetest.DSN(pool), "ENTREGA_SECRET_KEY": strings.Repeat("A", 43) + "="}
	s := seeded{t: t, getenv: func(name string) string { return settings[name] }}
	if _, err := s.run("", "seed", "--tasks", "10", "--owner", panelEmail); err == nil || !strings.Contains(err.Error(), "nobody has the address") {
		t.Errorf("an owner who does not exist: %v", err)
	}
	s.must(panelPassword, "user", "create", "--email", panelEmail, "--password-stdin")
	count := func() (tasks, projects, members int) {
		t.Helper()
		err := pool.QueryRow(t.Context(), `select (select count(*) from river_job), (select count(*) from projects), (select count(*) from members where role = 'owner')`).
			Scan(&tasks, &projects, &members)
		if err != nil {
			t.Fatal(err)
		}
		return tasks, projects, members
	}
	s.must("", "seed", "--tasks", "3000", "--projects", "3", "--owner", panelEmail)
	if tasks, projects, members := count(); tasks != 3000 || projects != 3 || members != 3 {
		t.Errorf("%d tasks, %d projects, %d owners", tasks, projects, members)
	}
	if _, err := s.run("", "seed", "--tasks", "10"); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a second run: %v", err)
	}
	s.must("", "seed", "--tasks", "500", "--projects", "1", "--force")
	if tasks, projects, members := count(); tasks != 3500 || projects != 4 || members != 3 {
		t.Errorf("after --force: %d tasks, %d projects, %d owners", tasks, projects, members)
	}
	if out := s.must("", "evidence", "verify"); !strings.HasPrefix(out, "All chains hold: 3") {
		t.Errorf("the filled ledger: %s", out)
	}
	// The sums agree with the ledger, also where both runs filled the same minutes.
	var ledger, minutes, hours, endpoints, rolled int
	err := pool.QueryRow(t.Context(), `
		select (select count(*) from attempts a, rollups r where a.finished_at < r.through), (select sum(attempts) from attempt_minutes), (select sum(attempts) from attempt_hours),
		       (select sum(attempts) from endpoint_hours), (select count(*) from attempts a, rollups r where a.finished_at < r.through and a.endpoint_id is not null)`).
		Scan(&ledger, &minutes, &hours, &endpoints, &rolled)
	if err != nil {
		t.Fatal(err)
	}
	if ledger < 3000 || minutes != ledger || hours != ledger || endpoints != rolled {
		t.Errorf("%d attempts in the ledger, %d and %d in the sums; %d of endpoints, %d in theirs", ledger, minutes, hours, rolled, endpoints)
	}
}
