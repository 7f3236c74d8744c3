package webhooks

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store/storetest"
	"entrega/internal/tenant"
	"entrega/jobs"
)

// laneRow makes a project with one endpoint and its lane in a transaction that is rolled back.
func laneRow(t *testing.T) (tx pgx.Tx, project, endpoint string) {
	t.Helper()
	tx = storetest.Tx(t, jobs.MigrateDSN)
	project, endpoint = "project_"+t.Name(), "endpoint_"+t.Name()
	insertLane(t, tx, project, endpoint)
	return tx, project, endpoint
}

func insertLane(t *testing.T, tx pgx.Tx, project, endpoint string) {
	t.Helper()
	run(t, tx, `insert into projects (id, name) values ($1, 'Shop')`, project)
	run(t, tx, `insert into endpoints (id, project_id, url) values ($1, $2, 'https://example.com/')`, endpoint, project)
	run(t, tx, `insert into endpoint_lanes (endpoint_id, project_id) values ($1, $2)`, endpoint, project)
}

func run(t *testing.T, tx pgx.Tx, sql string, args ...any) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, tx pgx.Tx, node, project, endpoint string) leaseState {
	t.Helper()
	s, err := takeLease(t.Context(), tx, node, project, endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLease_OfALiveNodeIsItsOwnUntilItEnds(t *testing.T) {
	t.Parallel()
	tx, project, endpoint := laneRow(t)
	run(t, tx, `insert into nodes (id, host, version) values ('a', 'h', '1'), ('b', 'h', '1')`)
	if s := take(t, tx, "a", project, endpoint); !s.taken || !s.good() {
		t.Fatalf("a free lease was not given: %+v", s)
	}
	if s := take(t, tx, "a", project, endpoint); !s.taken {
		t.Error("its holder could not renew it")
	}
	if s := take(t, tx, "b", project, endpoint); s.taken {
		t.Error("another node took the lease of a live one")
	}
	run(t, tx, `update endpoint_lanes set busy_until = now() - interval '1 second' where endpoint_id = $1`, endpoint)
	if s := take(t, tx, "b", project, endpoint); !s.taken {
		t.Error("a lease that ended could not be taken")
	}
	if s := take(t, tx, "b", "project_of_somebody_else", endpoint); s.taken {
		t.Error("a lane was taken through a foreign project")
	}
}

func TestLease_OfADeadOrUnknownNodeIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	tx, project, endpoint := laneRow(t)
	run(t, tx, `insert into nodes (id, host, version, seen_at) values ('dead', 'h', '1', now() - interval '6 seconds'), ('b', 'h', '1', now())`)
	for _, holder := range []string{"dead", "never seen"} {
		if s := take(t, tx, holder, project, endpoint); !s.taken {
			t.Fatalf("node %q did not get the lease", holder)
		}
		if s := take(t, tx, "b", project, endpoint); !s.taken {
			t.Errorf("the lease of node %q could not be taken over", holder)
		}
		run(t, tx, `update endpoint_lanes set holder = null where endpoint_id = $1`, endpoint)
	}
}

func TestLease_ReleaseOfAnOldOneLeavesTheNewOneAlone(t *testing.T) {
	t.Parallel()
	tx, project, endpoint := laneRow(t)
	run(t, tx, `insert into nodes (id, host, version) values ('a', 'h', '1'), ('b', 'h', '1')`)
	old := take(t, tx, "a", project, endpoint)
	run(t, tx, `update endpoint_lanes set busy_until = busy_until + interval '1 millisecond' where endpoint_id = $1`, endpoint) // As taking it anew does.
	success := time.Now().Truncate(time.Microsecond)
	row := leaseRow{endpointID: endpoint, busyUntil: old.busyUntil, lastSuccess: success}
	if err := releaseLeases(t.Context(), tx, "a", []leaseRow{row}); err != nil {
		t.Fatal(err)
	}
	if s := take(t, tx, "b", project, endpoint); s.taken {
		t.Fatal("a late release gave up a lease that was taken anew")
	}
	row.busyUntil = take(t, tx, "a", project, endpoint).busyUntil
	if err := releaseLeases(t.Context(), tx, "a", []leaseRow{row}); err != nil {
		t.Fatal(err)
	}
	var kept time.Time
	if err := tx.QueryRow(t.Context(), `select last_success_at from endpoint_lanes where endpoint_id = $1`, endpoint).Scan(&kept); err != nil || !kept.Equal(success) {
		t.Errorf("the newest success is kept as %s, want %s: %v", kept, success, err)
	}
	if s := take(t, tx, "b", project, endpoint); !s.taken {
		t.Error("a released lease could not be taken")
	}
}

func TestHealth_CountsByTheStartOfAttempts(t *testing.T) {
	t.Parallel()
	tx, project, endpoint := laneRow(t)
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
	fail := func(minute int, lastSuccess time.Time) health {
		t.Helper()
		h, err := noteFailureTx(t.Context(), tx, failure{project: project, endpointID: endpoint, startedAt: at(minute), lastSuccess: lastSuccess})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	succeed := func(minute int) health {
		t.Helper()
		h, err := noteSuccess(t.Context(), tx, project, endpoint, at(minute))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	want := func(what string, h health, since time.Time, failures int) {
		t.Helper()
		if !h.failingSince.Equal(since) || h.failures != failures {
			t.Errorf("%s: %d failures since %s, want %d since %s", what, h.failures, h.failingSince, failures, since)
		}
	}
	none := time.Time{}
	want("first failure", fail(10, none), at(10), 1)
	want("second failure", fail(20, none), at(10), 2)
	want("one that started earlier ends later", fail(5, none), at(5), 3)
	want("a success", succeed(30), none, 0)
	want("a failure older than the success ends later", fail(25, none), none, 0)
	want("a failure anew", fail(40, none), at(40), 1)
	want("and one more", fail(50, none), at(40), 2)
	want("a success that started between ends later", succeed(45), at(50), 1)
	want("a success older than all ends later", succeed(35), at(50), 1)
	want("a success", succeed(60), none, 0)
	want("a failure older than a success that only memory knows", fail(65, at(70)), none, 0)
}

func TestHealth_AForeignProjectChangesNothing(t *testing.T) {
	t.Parallel()
	tx, _, endpoint := laneRow(t)
	_, err := noteFailureTx(t.Context(), tx, failure{project: "project_of_somebody_else", endpointID: endpoint, startedAt: time.Now()})
	if err == nil {
		t.Error("a failure was noted through a foreign project")
	}
	disabled, err := DisableTx(t.Context(), tx, tenant.System("test").In("project_of_somebody_else"), endpoint, DisabledManual, "")
	if err != nil || disabled {
		t.Errorf("disabled through a foreign project: %t, %v", disabled, err)
	}
}

func TestDisableVerdict_TheRuleThatIsReachedFirst(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 6, 12, 0, 0, 0, time.UTC)
	both := jobs.Policy{Profile: "own", Disable: jobs.DisableRule{FailingFor: 120 * time.Hour, FailuresInARow: 20}}
	for name, tt := range map[string]struct {
		policy jobs.Policy
		health health
		want   DisabledReason
	}{
		"healthy":              {both, health{failures: 30}, ""},
		"just below both":      {both, health{failingSince: now.Add(-120*time.Hour + time.Second), failures: 19}, ""},
		"long enough":          {both, health{failingSince: now.Add(-120 * time.Hour), failures: 2}, DisabledFailing},
		"often enough":         {both, health{failingSince: now.Add(-time.Minute), failures: 20}, DisabledFailuresInARow},
		"no rule":              {jobs.Policy{}, health{failingSince: now.Add(-1000 * time.Hour), failures: 1000}, ""},
		"only the other rule":  {jobs.Policy{Disable: jobs.DisableRule{FailuresInARow: 20}}, health{failingSince: now.Add(-1000 * time.Hour), failures: 19}, ""},
		"standard of the shop": {policyOf(t, "standard"), health{failingSince: now.Add(-5 * 24 * time.Hour), failures: 8}, DisabledFailing},
	} {
		got, detail, disable := disableVerdict(tt.policy, tt.health, now)
		if got != tt.want || disable != (tt.want != "") || disable && detail == "" {
			t.Errorf("%s: %q, %t, %q; want %q", name, got, disable, detail, tt.want)
		}
	}
}
