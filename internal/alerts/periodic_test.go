package alerts

import (
	"strings"
	"testing"
	"time"

	"entrega/jobs"
)

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
	b.resolveAsAdmin(b.one(PeriodicFailed))
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

// resolveAsAdmin is resolveByHand for an alert of the installation.
func (b *bundle) resolveAsAdmin(a Alert) {
	b.t.Helper()
	if _, err := Resolve(b.ctx, b.pool, b.admin(), b.project, a.ID); err != nil {
		b.t.Fatal(err)
	}
}
