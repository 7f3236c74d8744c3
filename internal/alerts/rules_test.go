package alerts

import (
	"strings"
	"testing"
	"time"

	"entrega/internal/store"
	"entrega/jobs"
)

// publish stores events that wait for their fan-out since an instant by the database's clock.
func (b *bundle) publish(project string, n int, ago time.Duration) {
	b.t.Helper()
	b.exec(`insert into events (project_id, id, type, data, created_at)
		select $1, 'event_' || gen_random_uuid(), 'order.created', '{}', now() - $3::interval from generate_series(1, $2)`, project, n, ago)
}

func (b *bundle) fanOut(leave int) {
	b.t.Helper()
	b.exec(`update events set fanned_out_at = now() where seq <= (select max(seq) from events) - $1 and fanned_out_at is null`, leave)
}

func TestBacklog_OverAThousandOrFiveMinutes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		events int
		ago    time.Duration
		want   string
	}{
		"a thousand":           {events: 1000},
		"one more":             {events: 1001, want: "1,001 events wait for the fan-out, the oldest for a few seconds."},
		"young":                {events: 1, ago: 4 * time.Minute},
		"old":                  {events: 1, ago: 6 * time.Minute, want: "1 event waits for the fan-out, the oldest for 6 minutes."},
		"more than is counted": {events: 10_001, ago: time.Hour, want: "10,000 events or more wait for the fan-out, the oldest for 60 minutes."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.publish(b.project, tc.events, tc.ago)
			b.look()
			all := b.all(Backlog)
			if tc.want == "" {
				b.none(Backlog)
				return
			}
			if len(all) != 2 {
				t.Fatalf("there are %d alerts, want one of the installation and one of the project: %+v", len(all), all)
			}
			for _, a := range all {
				want := tc.want + " See that a node works and that the database keeps up."
				if a.ProjectID != "" {
					want = tc.want + " None is lost. If the number grows, ask an admin to look at the nodes."
				}
				if a.Sentence() != want || a.ProjectID != "" && a.ProjectID != b.project {
					t.Errorf("the alert of %q says %q, want %q", a.ProjectID, a.Sentence(), want)
				}
			}
		})
	}
}

func TestBacklog_NamesTheProjectsThatWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	calm := b.newProject()
	b.publish(b.project, 1100, 0)
	b.publish(calm, 10, 0)
	b.look()
	projects := map[string]bool{}
	for _, a := range b.all(Backlog) {
		projects[a.ProjectID] = true
	}
	if len(projects) != 2 || !projects[""] || !projects[b.project] {
		t.Errorf("alerts are open for %v, want the installation and the project with 1,100", projects)
	}
}

func TestBacklog_ResolvesItselfAtHalf(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(b.project, 1100, 0)
	b.look()
	opened := b.all(Backlog)
	b.fanOut(501)
	b.now = b.now.Add(time.Minute)
	b.look()
	for i, a := range b.all(Backlog) {
		if a.State != StateOpen || a.Count != 1 || !a.LastAt.Equal(opened[i].LastAt) {
			t.Errorf("with 501 waiting the alert is %s, counts %d until %v; want it open as it was", a.State, a.Count, a.LastAt)
		}
	}
	b.fanOut(500)
	b.look()
	for _, a := range b.all(Backlog) {
		if a.State != StateResolved || a.ResolvedWhy != "the outbox has drained" {
			t.Errorf("with 500 waiting the alert is %s: %q, want it resolved", a.State, a.ResolvedWhy)
		}
	}
}

func TestBacklog_ResolvedByHandComesBackOnlyAfterItHasDrained(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(b.project, 1100, 0)
	b.look()
	b.exec(`update alerts set state = 'resolved', resolved_at = now(), resolved_by = 'admin'`)
	b.publish(b.project, 1100, 0)
	b.look()
	if n := len(b.all(Backlog)); n != 2 {
		t.Fatalf("there are %d alerts, want the two that were resolved by hand", n)
	}
	b.fanOut(0)
	b.look()
	b.publish(b.project, 1100, 0)
	b.look()
	if n := scan[int](b, `select count(*) from alerts where kind = 'backlog' and state = 'open'`); n != 2 {
		t.Errorf("after a drain and another backlog %d alerts are open, want 2", n)
	}
}

func (b *bundle) poison(project, id string) {
	b.t.Helper()
	b.exec(`insert into events (project_id, id, type, data, relay_failures, poisoned_at) values ($1, $2, 'order.created', '{}', 5, $3)`, project, id, b.now)
}

func TestPoisoned_CountsPerProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.newProject()
	b.poison(b.project, "event_1")
	b.poison(other, "event_9")
	b.look()
	for _, a := range b.all(EventPoisoned) {
		want := map[string]string{b.project: "event_1", other: "event_9"}[a.ProjectID]
		if a.Count != 1 || a.EventID != want || a.Sentence() != want+" could not be handed to the fan-out and was given up after five tries. Open the event to see why, then requeue it." {
			t.Errorf("the alert of %s counts %d, leads to %s and says %q", a.ProjectID, a.Count, a.EventID, a.Sentence())
		}
	}
	first := b.now
	b.now = b.now.Add(time.Minute)
	b.poison(b.project, "event_2")
	b.look()
	for _, a := range b.all(EventPoisoned) {
		if a.ProjectID == b.project && (a.Count != 2 || a.EventID != "event_2" || !a.FirstAt.Equal(first) || !a.LastAt.Equal(b.now) || !strings.HasPrefix(a.Sentence(), "2 events could not")) {
			t.Errorf("the alert counts %d from %v to %v, leads to %s and says %q", a.Count, a.FirstAt, a.LastAt, a.EventID, a.Sentence())
		}
	}
}

func TestPoisoned_ResolvesItselfWhenNoneIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.poison(b.project, "event_1")
	b.poison(b.project, "event_2")
	b.look()
	b.exec(`update events set poisoned_at = null where id = 'event_1'`)
	b.look()
	if a := b.one(EventPoisoned); a.State != StateOpen || a.Count != 1 {
		t.Fatalf("with one left the alert is %s and counts %d", a.State, a.Count)
	}
	b.exec(`update events set poisoned_at = null`)
	b.look()
	b.resolvedItself(EventPoisoned, "every event was requeued or removed")
}

func TestPoisoned_ResolvedByHandComesBackForAnotherEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.poison(b.project, "event_1")
	b.look()
	b.resolveByHand(b.one(EventPoisoned))
	b.now = b.now.Add(time.Minute)
	b.look()
	b.one(EventPoisoned)
	b.poison(b.project, "event_2")
	b.look()
	if all := b.all(EventPoisoned); len(all) != 2 || all[1].State != StateOpen {
		t.Errorf("the alerts are %+v, want a second, open", all)
	}
}

// run is a run of a periodic job that ended now.
func (b *bundle) run(name, state string) int64 {
	b.t.Helper()
	b.now = b.now.Add(time.Minute)
	return b.insert(task{project: "-", kind: name, queue: jobs.QueueMaintenance, state: state, at: b.now})
}

func TestPeriodic_AfterThreeFailuresInARow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.periodic = []jobs.Periodic{{Name: "ledger.partitions"}, {Name: "stats.rollup"}, {Name: "never.ran"}}
	b.scanner = b.newScanner()
	b.run("stats.rollup", "completed")
	b.run("ledger.partitions", "discarded")
	b.run("ledger.partitions", "completed")
	b.run("ledger.partitions", "discarded")
	b.run("ledger.partitions", "discarded")
	b.look()
	b.none(PeriodicFailed)
	b.run("ledger.partitions", "discarded")
	b.look()
	b.look()
	a := b.one(PeriodicFailed)
	if a.ProjectID != "" || a.Subject != "ledger.partitions" || a.Count != 3 || !a.LastAt.Equal(b.now) || !strings.HasPrefix(a.Sentence(), "ledger.partitions failed at least 3 times in a row.") {
		t.Errorf("the alert of %q about %s counts %d until %v and says %q", a.ProjectID, a.Subject, a.Count, a.LastAt, a.Sentence())
	}
	b.run("ledger.partitions", "discarded")
	b.look()
	if a := b.one(PeriodicFailed); a.Count != 4 || !a.LastAt.Equal(b.now) {
		t.Errorf("after one more the alert counts %d until %v, want 4 until %v", a.Count, a.LastAt, b.now)
	}
	b.run("ledger.partitions", "completed")
	b.look()
	b.resolvedItself(PeriodicFailed, "its last run succeeded")
}

func TestPeriodic_CountsOnBeyondWhatIsRemembered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.periodic = []jobs.Periodic{{Name: "stats.rollup"}}
	b.scanner = b.newScanner()
	for range 12 {
		b.run("stats.rollup", "discarded")
		b.look()
	}
	b.look()
	if a := b.one(PeriodicFailed); a.Count != 12 {
		t.Errorf("the alert counts %d, want 12", a.Count)
	}
}

func TestPeriodic_ARunUnderWayIsNoFailure(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.periodic = []jobs.Periodic{{Name: "stats.rollup"}}
	b.scanner = b.newScanner()
	for range 3 {
		b.run("stats.rollup", "discarded")
	}
	b.look()
	b.resolveByHand2(b.one(PeriodicFailed))
	running := b.run("stats.rollup", "running")
	b.look()
	if a := b.one(PeriodicFailed); a.State != StateResolved {
		t.Fatalf("while the fourth runs the alert is %s", a.State)
	}
	b.now = b.now.Add(time.Second)
	b.exec(`update river_job set state = 'discarded', finalized_at = $2 where id = $1`, running, b.now)
	b.look()
	if all := b.all(PeriodicFailed); len(all) != 2 || all[1].State != StateOpen {
		t.Errorf("the alerts are %+v, want a second, open, for the fourth failure", all)
	}
}

func TestPeriodic_EndsWithItsJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.periodic = []jobs.Periodic{{Name: "stats.rollup"}}
	b.scanner = b.newScanner()
	for range 3 {
		b.run("stats.rollup", "discarded")
	}
	b.look()
	b.periodic = nil
	b.scanner = b.newScanner()
	b.look()
	b.resolvedItself(PeriodicFailed, "there is no such job any more")
}

// resolveByHand2 is resolveByHand for an alert of the installation.
func (b *bundle) resolveByHand2(a Alert) {
	b.t.Helper()
	if _, err := Resolve(b.ctx, b.pool, b.admin(), b.project, a.ID); err != nil {
		b.t.Fatal(err)
	}
}

// pend makes deliveries that wait for their lane since a while ago.
func (b *bundle) pend(endpoint string, n int, ago time.Duration) {
	b.t.Helper()
	for range n {
		b.insert(task{endpoint: endpoint, state: "pending", at: b.now.Add(-ago)})
	}
}

func TestSaturated_WhenAHealthyLaneIsTenMinutesBehind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ago  time.Duration
		set  string // of endpoints
		lane string // of endpoint_lanes
		want string
	}{
		"nine minutes":        {ago: 9 * time.Minute},
		"ten minutes":         {ago: 10 * time.Minute, want: "hooks.northwind.example works, yet 3 deliveries wait for their turn, the oldest for 10 minutes. Raise maxInFlight (now 1), if the receiver can take more at once."},
		"wide already":        {ago: 12 * time.Minute, set: "max_in_flight = 64", want: "It has 64 in flight, which is the most"},
		"with a rate":         {ago: 12 * time.Minute, set: "rate_per_second = 0.5", want: "Raise its rate limit (now 0.5 a second) or maxInFlight (now 1)"},
		"failing":             {ago: 12 * time.Minute, lane: "failing_since = now()"},
		"failed a while ago":  {ago: time.Hour, lane: "last_failure_at = now() - interval '9 minutes'"},
		"failed long ago":     {ago: time.Hour, lane: "last_failure_at = now() - interval '11 minutes'", want: "the oldest for 60 minutes"},
		"asked to wait":       {ago: time.Hour, lane: "pause_until = now() + interval '1 minute'"},
		"paused":              {ago: time.Hour, set: "paused_at = now()"},
		"disabled":            {ago: time.Hour, set: "disabled_at = now(), disabled_reason = 'manual'"},
		"deleted":             {ago: time.Hour, set: "deleted_at = now()"},
		"changed a while ago": {ago: time.Hour, set: "updated_at = now()"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e, calm := b.newEndpoint("https://hooks.northwind.example/"), b.newEndpoint("https://api.lumen.example/")
			b.pend(e, 3, tc.ago)
			b.pend(calm, 3, time.Minute)
			if tc.set != "" {
				b.exec(`update endpoints set `+tc.set+` where id = $1`, e)
			}
			if tc.lane != "" {
				b.exec(`update endpoint_lanes set `+tc.lane+` where endpoint_id = $1`, e)
			}
			b.look()
			if tc.want == "" {
				b.none(LaneSaturated)
				return
			}
			a := b.one(LaneSaturated)
			if !strings.Contains(a.Sentence(), tc.want) || a.EndpointID != e {
				t.Errorf("the alert says %q, want %q in it", a.Sentence(), tc.want)
			}
			if tasks, ok := a.Tasks(); !ok || tasks.State != jobs.StatePending || tasks.EndpointID != e {
				t.Errorf("the alert leads to %+v, want what waits for the endpoint", tasks)
			}
		})
	}
}

func TestSaturated_ResolvesItself(t *testing.T) {
	t.Parallel()
	for why, sql := range map[string]string{
		"its lane has drained":                  `update river_job set scheduled_at = now() where state = 'pending' and endpoint_id = $1`,
		"it was paused":                         `update endpoints set paused_at = now() where id = $1`,
		"it was disabled":                       `update endpoints set disabled_at = now() where id = $1`,
		"its endpoint was deleted":              `update endpoints set deleted_at = now() where id = $1`,
		"it fails now, which is another matter": `update endpoint_lanes set failing_since = now() where endpoint_id = $1`,
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			e := b.newEndpoint("https://hooks.northwind.example/")
			b.pend(e, 2, 12*time.Minute)
			b.look()
			b.exec(`update river_job set state = 'completed', finalized_at = now() where id = (select min(id) from river_job)`)
			b.exec(`update endpoints set max_in_flight = 4, updated_at = now() where id = $1`, e)
			b.look()
			if a := b.one(LaneSaturated); a.State != StateOpen || a.Count != 1 {
				t.Fatalf("while one still waits the alert is %s: %s", a.State, a.ResolvedWhy)
			}
			b.exec(sql, e)
			b.look()
			b.resolvedItself(LaneSaturated, why)
		})
	}
}

func (b *bundle) lose(project string, ago time.Duration) {
	b.t.Helper()
	b.record(attempt{project: project, at: b.now.Add(-ago), class: "unknown", decision: "unknown", reason: jobs.ReasonWorkerLost})
}

func TestLost_CountsPerProjectAndEndsAfterAQuietHour(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := store.NewID("project")
	b.lose(b.project, time.Minute)
	b.lose(b.project, 5*time.Hour) // written with the task's next attempt, long after it was made
	b.lose(other, 0)
	b.look()
	b.look()
	byProject := map[string]Alert{}
	for _, a := range b.all(AttemptsLost) {
		byProject[a.ProjectID] = a
	}
	a := byProject[b.project]
	if len(byProject) != 2 || byProject[other].Count != 1 || a.Count != 2 || !a.FirstAt.Equal(b.now.Add(-5*time.Hour)) || !a.LastAt.Equal(b.now.Add(-time.Minute)) {
		t.Fatalf("the alerts are %+v", byProject)
	}
	if want := "2 attempts never reported back, because the node that made them ended."; !strings.HasPrefix(a.Sentence(), want) {
		t.Errorf("the alert says %q, want %q", a.Sentence(), want)
	}
	b.exec(`delete from alerts where project_id = $1`, other)
	b.now = b.now.Add(time.Hour - time.Second)
	b.look()
	if a := b.one(AttemptsLost); a.State != StateOpen {
		t.Fatalf("within the hour the alert is %s", a.State)
	}
	b.now = b.now.Add(time.Second)
	b.look()
	b.resolvedItself(AttemptsLost, "none was lost for 1 hour")
}

func TestLost_AreCountedInBatches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const lost = ledgerBatch + 7
	b.lose(b.project, 0)
	b.exec(`insert into attempts (project_id, task_id, seq, attempt, charged, kind, trigger, policy_profile, policy_version, policy_hash, started_at, finished_at,
			class, decision, reason, node_id, prev_hash, hash)
		select project_id, n, seq, attempt, charged, kind, trigger, policy_profile, policy_version, policy_hash, started_at, finished_at, class, decision, reason, node_id, prev_hash, hash
		from attempts, generate_series(2, $1) n`, lost)
	b.look()
	if a := b.one(AttemptsLost); a.Count != lost {
		t.Errorf("the alert counts %d, want %d", a.Count, lost)
	}
}
