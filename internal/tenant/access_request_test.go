package tenant_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// ask makes a user who asks to join a project.
func (b bundle) ask(t *testing.T, projectID, email string) (tenant.Actor, tenant.AccessRequest) {
	t.Helper()
	actor := tenant.ActorOf(b.user(t, email))
	request, err := tenant.RequestAccess(t.Context(), b.pool, actor, projectID, " I am new here. ")
	if err != nil {
		t.Fatalf("RequestAccess: %v", err)
	}
	return actor, request
}

func TestAccess_ApprovalMakesAMember(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	bob, request := b.ask(t, project.ID, "bob@acme.example")
	if request.State != tenant.AccessPending || request.Email != bob.Name || request.Message != "I am new here." || request.MailState != "" {
		t.Errorf("request is %+v", request)
	}
	_, err := tenant.RequestAccess(t.Context(), b.pool, bob, project.ID, "")
	wantConflict(t, err, "already_requested")
	_, err = tenant.ApproveAccess(t.Context(), b.pool, owner, project.ID, request.ID, "boss")
	wantInvalid(t, err, "role")

	approved, err := tenant.ApproveAccess(t.Context(), b.pool, owner, project.ID, request.ID, tenant.RoleOnCall)
	if err != nil {
		t.Fatalf("ApproveAccess: %v", err)
	}
	if approved.State != tenant.AccessApproved || approved.Role != tenant.RoleOnCall || approved.DecidedBy != owner.Name || approved.DecidedAt == nil {
		t.Errorf("request is now %+v", approved)
	}
	if got := b.actor(t, bob.ID, project.ID).Role; got != tenant.RoleOnCall {
		t.Errorf("the new member's role is %q, want on-call", got)
	}
	_, err = tenant.RequestAccess(t.Context(), b.pool, bob, project.ID, "")
	wantConflict(t, err, "already_member")
	want := []string{"project.create", "access.request", "access.approve"}
	if diff := cmp.Diff(want, b.actions(t, project.ID)); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

func TestAccess_IsDecidedOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	bob, request := b.ask(t, project.ID, "bob@acme.example")
	errs := b.queued(t, `select from access_requests for update`, 6, func(i int) (err error) {
		if i%2 == 0 {
			_, err = tenant.ApproveAccess(t.Context(), b.pool, owner, project.ID, request.ID, tenant.RoleViewer)
		} else {
			_, err = tenant.DeclineAccess(t.Context(), b.pool, owner, project.ID, request.ID)
		}
		return err
	})
	for _, err := range errs {
		if err != nil {
			wantConflict(t, err, "already_decided")
		}
	}
	if countNil(errs) != 1 {
		t.Errorf("six decisions at once: %v, want exactly one success", errs)
	}
	if n := b.count(t, `select count(*) from audit_log where action in ('access.approve', 'access.decline')`); n != 1 {
		t.Errorf("%d decisions in the audit log of %s, want 1", n, bob.Name)
	}
}

func TestAccess_WhoWasDeclinedMayAskAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	bob, request := b.ask(t, project.ID, "bob@acme.example")
	declined, err := tenant.DeclineAccess(t.Context(), b.pool, owner, project.ID, request.ID)
	if err != nil || declined.State != tenant.AccessDeclined || declined.Role != "" {
		t.Fatalf("DeclineAccess = %+v, %v", declined, err)
	}
	_, err = tenant.ActorInProject(t.Context(), b.pool, bob.ID, project.ID)
	wantError(t, "declined user", err, store.ErrNotFound)
	again, err := tenant.RequestAccess(t.Context(), b.pool, bob, project.ID, "Please.")
	if err != nil {
		t.Fatalf("RequestAccess again: %v", err)
	}

	ids := func(list []tenant.AccessRequest) (ids []string) {
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		return ids
	}
	for state, want := range map[tenant.AccessState][]string{
		"":                    {again.ID, request.ID},
		tenant.AccessPending:  {again.ID},
		tenant.AccessDeclined: {request.ID},
		tenant.AccessApproved: nil,
	} {
		list, err := tenant.ListAccessRequests(t.Context(), b.pool, project.ID, state, store.Page{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, ids(list.Rows)); diff != "" {
			t.Errorf("requests in state %q (-want +got):\n%s", state, diff)
		}
	}
	own, err := tenant.ListAccessRequestsOf(t.Context(), b.pool, bob.ID)
	if err != nil || cmp.Diff([]string{again.ID, request.ID}, ids(own)) != "" {
		t.Errorf("own requests are %v, %v", ids(own), err)
	}
	page, err := tenant.ListAccessRequests(t.Context(), b.pool, project.ID, "", store.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	next, err := tenant.ListAccessRequests(t.Context(), b.pool, project.ID, "", store.Page{Limit: 1, Cursor: page.Next})
	if err != nil || cmp.Diff([]string{request.ID}, ids(next.Rows)) != "" || next.Next != "" {
		t.Errorf("the second page holds %v, %v", ids(next.Rows), err)
	}
	back, err := tenant.ListAccessRequests(t.Context(), b.pool, project.ID, "", store.Page{Limit: 1, Cursor: next.Prev})
	if err != nil || cmp.Diff([]string{again.ID}, ids(back.Rows)) != "" {
		t.Errorf("the way back holds %v, %v", ids(back.Rows), err)
	}
}

func TestAccess_AddingTheUserSettlesTheRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	bob, request := b.ask(t, project.ID, "bob@acme.example")
	if _, err := tenant.AddMember(t.Context(), b.pool, owner, project.ID, bob.Name, tenant.RoleViewer); err != nil {
		t.Fatal(err)
	}
	_, err := tenant.DeclineAccess(t.Context(), b.pool, owner, project.ID, request.ID)
	wantConflict(t, err, "already_decided")
}

func TestAccess_NobodyElseDecides(t *testing.T) {
	t.Parallel()
	b := setup(t)
	acme, _ := b.project(t, "acme")
	evil, eve := b.project(t, "evil")
	bob, request := b.ask(t, acme.ID, "bob@acme.example")
	onCall := b.member(t, acme.ID, "oncall@acme.example", tenant.RoleOnCall)

	for _, tt := range []struct {
		name      string
		actor     tenant.Actor
		projectID string
		want      error
	}{
		{"on-call", onCall, acme.ID, tenant.ErrForbidden},
		{"the asking user", bob, acme.ID, store.ErrNotFound},
		{"another project's owner", eve, acme.ID, store.ErrNotFound},
		{"another project's owner, in its own", eve, evil.ID, store.ErrNotFound},
	} {
		_, err := tenant.ApproveAccess(t.Context(), b.pool, tt.actor, tt.projectID, request.ID, tenant.RoleOwner)
		wantError(t, tt.name, err, tt.want)
		_, err = tenant.DeclineAccess(t.Context(), b.pool, tt.actor, tt.projectID, request.ID)
		wantError(t, tt.name, err, tt.want)
	}
	if list, err := tenant.ListAccessRequests(t.Context(), b.pool, evil.ID, "", store.Page{}); err != nil || len(list.Rows) != 0 {
		t.Errorf("another project lists %v, %v", list.Rows, err)
	}
}

func TestRequestAccess_RefusesWhatCannotBeAsked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, _ := b.project(t, "acme")
	bob := tenant.ActorOf(b.user(t, "bob@acme.example"))
	_, err := tenant.RequestAccess(t.Context(), b.pool, bob, "project_missing", "")
	wantError(t, "missing project", err, store.ErrNotFound)
	for _, message := range []string{strings.Repeat("é", 501), "a\x00b", "\xff"} {
		_, err := tenant.RequestAccess(t.Context(), b.pool, bob, project.ID, message)
		wantInvalid(t, err, "message")
	}
	key := tenant.Actor{Kind: tenant.ActorAPIKey, ID: "key_a", ProjectID: project.ID, Scopes: tenant.Scopes()}
	_, err = tenant.RequestAccess(t.Context(), b.pool, key, project.ID, "")
	wantError(t, "a key", err, tenant.ErrForbidden)
}
