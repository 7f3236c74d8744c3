package alerts

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

func (b *bundle) admin() tenant.Actor {
	return tenant.Actor{Kind: tenant.ActorUser, ID: "user_admin", Name: "root@example.com", Admin: true}
}

// newAlert is an open alert of a project; "" is the installation.
func (b *bundle) newAlert(project, subject string, lastAt time.Time) Alert {
	b.t.Helper()
	id := store.NewID("alert")
	b.exec(`insert into alerts (id, project_id, kind, subject, about, text, count, first_at, last_at) values ($1, $2, 'task_discarded', $3, $3, 'failed.', 1, $4, $4)`,
		id, project, subject, lastAt)
	a, err := AlertByID(b.ctx, b.pool, View{Project: project}, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// audited lists the actions in the audit log with their project and actor, the oldest first.
func (b *bundle) audited() []string {
	b.t.Helper()
	return scan[[]string](b, `select coalesce(array_agg(concat_ws(' ', action, coalesce(project_id, '-'), actor_name, subject_id) order by id), '{}') from audit_log`)
}

func TestAcknowledge_NamesWhoTookItOnAndGoesOnCounting(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://hooks.northwind.example/")
	b.discard(e)
	b.look()
	a, err := Acknowledge(b.ctx, b.pool, b.owner, b.project, b.one(TaskDiscarded).ID)
	if err != nil {
		t.Fatal(err)
	}
	if a.State != StateAcknowledged || a.AcknowledgedBy != "ines@acme.example" || a.AcknowledgedAt == nil {
		t.Errorf("the alert is %s by %q at %v", a.State, a.AcknowledgedBy, a.AcknowledgedAt)
	}
	b.discard(e)
	b.look()
	if a := b.one(TaskDiscarded); a.State != StateAcknowledged || a.Count != 2 {
		t.Errorf("with another task the alert is %s and counts %d, want acknowledged with 2", a.State, a.Count)
	}
	again := b.owner
	again.Name = "bo@acme.example"
	a, err = Acknowledge(b.ctx, b.pool, again, b.project, a.ID)
	if err != nil || a.AcknowledgedBy != "ines@acme.example" {
		t.Errorf("a second click leaves it to %q, %v; want the first name", a.AcknowledgedBy, err)
	}
	if diff := cmp.Diff([]string{"alert.acknowledge " + b.project + " ines@acme.example " + a.ID}, b.audited()); diff != "" {
		t.Errorf("the audit log differs (-want +got):\n%s", diff)
	}
}

func TestResolve_IsAuditedOnceAndEndsAcknowledging(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := b.newAlert(b.project, "one", b.now)
	for range 2 {
		after, err := Resolve(b.ctx, b.pool, b.owner, b.project, a.ID)
		if err != nil || after.State != StateResolved || after.ResolvedBy != "ines@acme.example" || after.ResolvedWhy != "" {
			t.Fatalf("the alert is %s by %q: %q, %v", after.State, after.ResolvedBy, after.ResolvedWhy, err)
		}
	}
	if diff := cmp.Diff([]string{"alert.resolve " + b.project + " ines@acme.example " + a.ID}, b.audited()); diff != "" {
		t.Errorf("the audit log differs (-want +got):\n%s", diff)
	}
	_, err := Acknowledge(b.ctx, b.pool, b.owner, b.project, a.ID)
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) || conflict.Code != CodeResolved {
		t.Errorf("acknowledging it then is %v, want the conflict %s", err, CodeResolved)
	}
}

func TestActions_AskForTheRoleAndTheProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := b.newProject()
	user := func(project string, role tenant.Role) tenant.Actor {
		return tenant.Actor{Kind: tenant.ActorUser, ID: "user_1", Name: "somebody", ProjectID: project, Role: role}
	}
	key := func(scope tenant.Scope) tenant.Actor {
		return tenant.Actor{Kind: tenant.ActorAPIKey, ID: "key_1", Name: "backend", ProjectID: b.project, Scopes: []tenant.Scope{scope}}
	}
	for name, tc := range map[string]struct {
		actor            tenant.Actor
		ours, theirs, it error // on an alert of the project, of another one, and of the installation
	}{
		"owner":           {user(b.project, tenant.RoleOwner), nil, store.ErrNotFound, store.ErrNotFound},
		"on-call":         {user(b.project, tenant.RoleOnCall), nil, store.ErrNotFound, store.ErrNotFound},
		"viewer":          {user(b.project, tenant.RoleViewer), tenant.ErrForbidden, tenant.ErrForbidden, tenant.ErrForbidden},
		"another's owner": {user(other, tenant.RoleOwner), store.ErrNotFound, store.ErrNotFound, store.ErrNotFound},
		"admin":           {b.admin(), nil, store.ErrNotFound, nil},
		"manage key":      {key(tenant.ScopeManage), nil, store.ErrNotFound, store.ErrNotFound},
		"read key":        {key(tenant.ScopeRead), tenant.ErrForbidden, tenant.ErrForbidden, tenant.ErrForbidden},
		"publish key":     {key(tenant.ScopePublish), tenant.ErrForbidden, tenant.ErrForbidden, tenant.ErrForbidden},
		"nobody":          {tenant.Actor{}, store.ErrNotFound, store.ErrNotFound, store.ErrNotFound},
	} {
		ours, theirs, it := b.newAlert(b.project, name, b.now), b.newAlert(other, name, b.now), b.newAlert("", name, b.now)
		for _, on := range []struct {
			what string
			id   string
			want error
		}{{"ours", ours.ID, tc.ours}, {"theirs", theirs.ID, tc.theirs}, {"the installation's", it.ID, tc.it}, {"a missing one", "alert_none", missing(tc.ours)}} {
			if _, err := Acknowledge(b.ctx, b.pool, tc.actor, b.project, on.id); !errors.Is(err, on.want) {
				t.Errorf("%s acknowledges %s: %v, want %v", name, on.what, err, on.want)
			}
			if _, err := Resolve(b.ctx, b.pool, tc.actor, b.project, on.id); !errors.Is(err, on.want) {
				t.Errorf("%s resolves %s: %v, want %v", name, on.what, err, on.want)
			}
		}
	}
	if n := scan[int](b, `select count(*) from alerts where project_id = $1 and state <> 'open'`, other); n != 0 {
		t.Errorf("%d alerts of another project were changed", n)
	}
	if n := scan[int](b, `select count(*) from audit_log where project_id is null and action like 'alert.%'`); n != 2 {
		t.Errorf("%d actions on the installation's alerts are audited outside any project, want the admin's 2", n)
	}
}

// missing is what a missing id answers an actor who gets ours for one of the project.
func missing(ours error) error {
	if ours == nil {
		return store.ErrNotFound
	}
	return ours
}
