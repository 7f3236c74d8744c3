package events

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

func TestRequeue_GivesAPoisonedEventBackAndNotesWho(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "x")
	b.exec(t, `update event_outbox set poisoned_at = now(), relay_failures = 5, relay_error = 'no room'`)
	onCall := tenant.Actor{Kind: tenant.ActorUser, ID: "user_1", Name: "ann", ProjectID: b.project, Role: tenant.RoleOnCall}
	e, err := Requeue(b.ctx, b.pool, onCall, b.project, "x")
	if err != nil {
		t.Fatal(err)
	}
	if !e.PoisonedAt.IsZero() || e.RelayFailures != 0 || e.RelayError != "" {
		t.Errorf("requeued event: %+v, want a fresh start", e)
	}
	audit := scan[string](t, b, `select actor_name || ' ' || action || ' ' || subject_id || ' ' || (detail ->> 'error')
		from audit_log where project_id = $1`, b.project)
	if want := "ann event.requeue x no room"; audit != want {
		t.Errorf("audit %q, want %q", audit, want)
	}

	sweep(t, b, b.newRelay(t, 0))
	if diff := cmp.Diff([]string{"x"}, b.fannedOut(t)); diff != "" {
		t.Errorf("events in tasks (-want +got):\n%s", diff)
	}
	var conflict *store.ConflictError
	if _, err := Requeue(b.ctx, b.pool, onCall, b.project, "x"); !errors.As(err, &conflict) || conflict.Code != CodeNotPoisoned {
		t.Errorf("requeue of a sound event: %v, want a conflict", err)
	}
}

func TestRequeue_WakesTheRelay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "x")
	b.exec(t, `update event_outbox set poisoned_at = now(), relay_failures = 5`)
	relayed := b.run(t, b.newRelay(t, 0))
	b.publish(t, "first")
	<-relayed
	if _, err := Requeue(b.ctx, b.pool, tenant.System("test"), b.project, "x"); err != nil {
		t.Fatal(err)
	}
	<-relayed
	if diff := cmp.Diff([]string{"first", "x"}, b.fannedOut(t)); diff != "" {
		t.Errorf("events in tasks (-want +got):\n%s", diff)
	}
}

func TestRequeue_NeedsThePermissionInTheProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.publish(t, "x")
	b.exec(t, `update event_outbox set poisoned_at = now(), relay_failures = 5`)
	other := b.newProject(t)
	member := func(project string, role tenant.Role) tenant.Actor {
		return tenant.Actor{Kind: tenant.ActorUser, ID: "user_1", Name: "ann", ProjectID: project, Role: role}
	}
	tests := map[string]struct {
		actor   tenant.Actor
		project string
		id      string
		want    error
	}{
		"viewer":                {member(b.project, tenant.RoleViewer), b.project, "x", tenant.ErrForbidden},
		"owner of another":      {member(other, tenant.RoleOwner), b.project, "x", store.ErrNotFound},
		"another's event":       {member(other, tenant.RoleOwner), other, "x", store.ErrNotFound},
		"an event that is none": {member(b.project, tenant.RoleOwner), b.project, "none", store.ErrNotFound},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Requeue(b.ctx, b.pool, test.actor, test.project, test.id); !errors.Is(err, test.want) {
				t.Errorf("requeue: %v, want %v", err, test.want)
			}
		})
	}
	if e := b.event(t, "x"); e.PoisonedAt.IsZero() {
		t.Error("a refused requeue changed the event")
	}
	if n := scan[int](t, b, `select count(*) from audit_log`); n != 0 {
		t.Errorf("refused requeues left %d audit rows", n)
	}
}
