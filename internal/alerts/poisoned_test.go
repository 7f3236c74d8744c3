package alerts

import (
	"strings"
	"testing"
	"time"
)

func (b *bundle) poison(project, id string) {
	b.t.Helper()
	b.exec(`insert into events (project_id, id, type, data) values ($1, $2, 'order.created', '{}')`, project, id)
	b.exec(`update event_outbox set relay_failures = 5, poisoned_at = $3 where project_id = $1 and event_id = $2`, project, id, b.now)
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
	b.exec(`update event_outbox set poisoned_at = null where event_id = 'event_1'`)
	b.look()
	if a := b.one(EventPoisoned); a.State != StateOpen || a.Count != 1 {
		t.Fatalf("with one left the alert is %s and counts %d", a.State, a.Count)
	}
	b.exec(`update event_outbox set poisoned_at = null`)
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
