package alerts

import (
	"strings"
	"testing"
	"time"

	"entrega/internal/store"
	"entrega/jobs"
)

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
