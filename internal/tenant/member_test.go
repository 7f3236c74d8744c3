package tenant_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

func TestMembers_AddChangeRemove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	bob := b.user(t, "bob@acme.example")

	if _, err := tenant.AddMember(t.Context(), b.pool, owner, project.ID, "BOB@acme.example", tenant.RoleViewer); err != nil {
		t.Fatalf("AddMember: %v", err)
	}
	_, err := tenant.AddMember(t.Context(), b.pool, owner, project.ID, bob.Email, tenant.RoleOwner)
	wantConflict(t, err, "already_member")
	for range 2 { // the second changes nothing and is no action
		member, err := tenant.ChangeRole(t.Context(), b.pool, owner, project.ID, bob.ID, tenant.RoleOnCall)
		if err != nil || member.Role != tenant.RoleOnCall {
			t.Fatalf("ChangeRole = %+v, %v", member, err)
		}
	}

	got, err := tenant.ListMembers(t.Context(), b.pool, project.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []tenant.Member{
		{UserID: owner.ID, Email: owner.Name, Role: tenant.RoleOwner},
		{UserID: bob.ID, Email: bob.Email, Role: tenant.RoleOnCall},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(tenant.Member{}, "CreatedAt")); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}

	if err := tenant.RemoveMember(t.Context(), b.pool, owner, project.ID, bob.ID); err != nil {
		t.Fatalf("RemoveMember: %v", err)
	}
	_, err = tenant.ActorInProject(t.Context(), b.pool, bob.ID, project.ID)
	wantError(t, "removed member", err, store.ErrNotFound)
	wantError(t, "removed twice", tenant.RemoveMember(t.Context(), b.pool, owner, project.ID, bob.ID), store.ErrNotFound)

	wantActions := []string{"project.create", "member.add", "member.change_role", "member.remove"}
	if diff := cmp.Diff(wantActions, b.actions(t, project.ID)); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

func TestMembers_BadInput(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	if _, err := b.accounts.SignUp(t.Context(), "unconfirmed@acme.example", "192.0.2.7"); err != nil {
		t.Fatal(err)
	}
	for _, email := range []string{"nobody@acme.example", "no address", "", "unconfirmed@acme.example"} {
		_, err := tenant.AddMember(t.Context(), b.pool, owner, project.ID, email, tenant.RoleViewer)
		wantInvalid(t, err, "email")
	}
	_, err := tenant.AddMember(t.Context(), b.pool, owner, project.ID, owner.Name, "boss")
	wantInvalid(t, err, "role")
	_, err = tenant.ChangeRole(t.Context(), b.pool, owner, project.ID, owner.ID, "")
	wantInvalid(t, err, "role")
	_, err = tenant.ChangeRole(t.Context(), b.pool, owner, project.ID, "user_missing", tenant.RoleOwner)
	wantError(t, "ChangeRole", err, store.ErrNotFound)
}

func TestMembers_TheLastOwnerStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	b.member(t, project.ID, "oncall@acme.example", tenant.RoleOnCall)

	for _, role := range []tenant.Role{tenant.RoleOnCall, tenant.RoleViewer} {
		_, err := tenant.ChangeRole(t.Context(), b.pool, owner, project.ID, owner.ID, role)
		wantConflict(t, err, "last_owner")
	}
	wantConflict(t, tenant.RemoveMember(t.Context(), b.pool, owner, project.ID, owner.ID), "last_owner")
	wantConflict(t, tenant.RemoveMember(t.Context(), b.pool, tenant.CLI("root"), project.ID, owner.ID), "last_owner")
	if _, err := tenant.ChangeRole(t.Context(), b.pool, owner, project.ID, owner.ID, tenant.RoleOwner); err != nil {
		t.Errorf("to stay the owner: %v", err)
	}

	second := b.member(t, project.ID, "second@acme.example", tenant.RoleOwner)
	pair := []tenant.Actor{owner, second}
	errs := b.queued(t, `select from members for update`, 2, func(i int) error {
		return tenant.RemoveMember(t.Context(), b.pool, pair[i], project.ID, pair[i].ID)
	})
	if countNil(errs) != 1 {
		t.Errorf("both owners left at once: %v, want exactly one success", errs)
	}
	if n := b.count(t, `select count(*) from members where role = 'owner'`); n != 1 {
		t.Errorf("%d owners are left, want 1", n)
	}
}

func TestMembers_OnlyOwnersManageAndAnyoneMayLeave(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	viewer := b.member(t, project.ID, "viewer@acme.example", tenant.RoleViewer)
	manage := tenant.Actor{Kind: tenant.ActorAPIKey, ID: viewer.ID, ProjectID: project.ID, Scopes: tenant.Scopes()}
	for _, actor := range []tenant.Actor{
		viewer, b.member(t, project.ID, "oncall@acme.example", tenant.RoleOnCall), manage,
	} {
		_, err := tenant.AddMember(t.Context(), b.pool, actor, project.ID, owner.Name, tenant.RoleOwner)
		wantError(t, "AddMember", err, tenant.ErrForbidden)
		_, err = tenant.ChangeRole(t.Context(), b.pool, actor, project.ID, actor.ID, tenant.RoleOwner)
		wantError(t, "ChangeRole", err, tenant.ErrForbidden)
		wantError(t, "RemoveMember", tenant.RemoveMember(t.Context(), b.pool, actor, project.ID, owner.ID), tenant.ErrForbidden)
	}
	wantError(t, "a key with a member's id", tenant.RemoveMember(t.Context(), b.pool, manage, project.ID, viewer.ID), tenant.ErrForbidden)
	if err := tenant.RemoveMember(t.Context(), b.pool, viewer, project.ID, viewer.ID); err != nil {
		t.Errorf("a viewer leaves: %v", err)
	}
}

func TestMembers_OfAnotherProjectDoNotExist(t *testing.T) {
	t.Parallel()
	b := setup(t)
	acme, _ := b.project(t, "acme")
	bob := b.member(t, acme.ID, "bob@acme.example", tenant.RoleViewer)
	evil, eve := b.project(t, "evil")

	_, err := tenant.AddMember(t.Context(), b.pool, eve, acme.ID, eve.Name, tenant.RoleOwner)
	wantError(t, "AddMember", err, store.ErrNotFound)
	_, err = tenant.ChangeRole(t.Context(), b.pool, eve, acme.ID, bob.ID, tenant.RoleOwner)
	wantError(t, "ChangeRole", err, store.ErrNotFound)
	wantError(t, "RemoveMember", tenant.RemoveMember(t.Context(), b.pool, eve, acme.ID, bob.ID), store.ErrNotFound)
	wantError(t, "RemoveMember", tenant.RemoveMember(t.Context(), b.pool, eve, acme.ID, eve.ID), store.ErrNotFound)
	_, err = tenant.ChangeRole(t.Context(), b.pool, eve, evil.ID, bob.ID, tenant.RoleViewer)
	wantError(t, "ChangeRole of a stranger", err, store.ErrNotFound)
	wantError(t, "RemoveMember of a stranger", tenant.RemoveMember(t.Context(), b.pool, eve, evil.ID, bob.ID), store.ErrNotFound)
	if got := b.actor(t, bob.ID, acme.ID).Role; got != tenant.RoleViewer {
		t.Errorf("the role is now %q", got)
	}
}
