package tenant_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

func TestCreateProject_HasItsOwnerAndAuditRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	if project.Name != "acme" || project.Profile != "standard" || !strings.HasPrefix(project.ID, "project_") {
		t.Errorf("project is %+v", project)
	}
	if owner.Role != tenant.RoleOwner || owner.ProjectID != project.ID {
		t.Errorf("its maker is %+v, want its owner", owner)
	}
	if diff := cmp.Diff([]string{"project.create"}, b.actions(t, project.ID)); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

func TestCreateProject_ForAnotherIsForAdmins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	other := b.user(t, "bob@acme.example")
	key := tenant.Actor{Kind: tenant.ActorAPIKey, ID: "key_a", ProjectID: project.ID, Scopes: tenant.Scopes()}
	for _, actor := range []tenant.Actor{owner, key, {}} {
		for _, ownerID := range []string{other.ID, ""} {
			_, err := tenant.CreateProject(t.Context(), b.pool, actor, tenant.NewProject{Name: "x", OwnerID: ownerID})
			wantError(t, "CreateProject", err, tenant.ErrForbidden)
		}
	}
	for _, actor := range []tenant.Actor{b.admin(t, "admin@acme.example"), tenant.CLI("root")} {
		made, err := tenant.CreateProject(t.Context(), b.pool, actor, tenant.NewProject{Name: "x", OwnerID: other.ID})
		if err != nil {
			t.Fatalf("CreateProject by %s: %v", actor.Kind, err)
		}
		if got := b.actor(t, other.ID, made.ID).Role; got != tenant.RoleOwner {
			t.Errorf("role is %q, want owner", got)
		}
	}
	if _, err := tenant.CreateProject(t.Context(), b.pool, tenant.CLI("root"), tenant.NewProject{Name: "no owner"}); err != nil {
		t.Errorf("command line without an owner: %v", err)
	}
	_, err := tenant.CreateProject(t.Context(), b.pool, tenant.CLI("root"), tenant.NewProject{Name: "x", OwnerID: "user_missing"})
	wantError(t, "missing owner", err, store.ErrNotFound)
	if n := b.count(t, `select count(*) from projects`); n != 4 {
		t.Errorf("%d projects, want 4: a failed creation leaves nothing", n)
	}
	_, err = tenant.CreateProject(t.Context(), b.pool, tenant.CLI("root"), tenant.NewProject{Name: " "})
	wantInvalid(t, err, "name")
}

func TestRenameProject_NotesBothNames(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	onCall := b.member(t, project.ID, "oncall@acme.example", tenant.RoleOnCall)
	_, err := tenant.RenameProject(t.Context(), b.pool, onCall, project.ID, "mine")
	wantError(t, "on-call", err, tenant.ErrForbidden)
	_, err = tenant.RenameProject(t.Context(), b.pool, owner, project.ID, strings.Repeat("x", 81))
	wantInvalid(t, err, "name")

	for range 2 { // the second changes nothing and is no action
		renamed, err := tenant.RenameProject(t.Context(), b.pool, owner, project.ID, " Acme Market ")
		if err != nil || renamed.Name != "Acme Market" {
			t.Fatalf("RenameProject = %+v, %v", renamed, err)
		}
	}
	entries, err := tenant.AuditOfSubject(t.Context(), b.pool, project.ID, "project", project.ID, 10)
	if err != nil || len(entries) != 2 {
		t.Fatalf("audit of the project: %d entries, %v, want 2", len(entries), err)
	}
	detail := string(entries[0].Detail)
	if !strings.Contains(detail, `"acme"`) || !strings.Contains(detail, `"Acme Market"`) {
		t.Errorf("detail is %s, want both names", detail)
	}
}

func TestChooseProfile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	manage := tenant.Actor{Kind: tenant.ActorAPIKey, ID: "key_a", ProjectID: project.ID, Scopes: []tenant.Scope{tenant.ScopeManage}}
	for profile, actor := range map[string]tenant.Actor{"compact": owner, "standard": manage} {
		chosen, err := tenant.ChooseProfile(t.Context(), b.pool, actor, project.ID, profile)
		if err != nil || chosen.Profile != profile {
			t.Errorf("ChooseProfile(%s) = %+v, %v", profile, chosen, err)
		}
	}
	for _, bad := range []string{"", "No Such", "x'; drop table projects"} {
		_, err := tenant.ChooseProfile(t.Context(), b.pool, owner, project.ID, bad)
		wantInvalid(t, err, "profile")
	}
	viewer := b.member(t, project.ID, "viewer@acme.example", tenant.RoleViewer)
	_, err := tenant.ChooseProfile(t.Context(), b.pool, viewer, project.ID, "compact")
	wantError(t, "viewer", err, tenant.ErrForbidden)
}

func TestProjects_OfAnotherTenantDoNotExist(t *testing.T) {
	t.Parallel()
	b := setup(t)
	acme, _ := b.project(t, "acme")
	_, eve := b.project(t, "evil")
	for _, projectID := range []string{acme.ID, "project_missing", ""} {
		_, err := tenant.ActorInProject(t.Context(), b.pool, eve.ID, projectID)
		wantError(t, "ActorInProject", err, store.ErrNotFound)
		_, err = tenant.RenameProject(t.Context(), b.pool, eve, projectID, "mine")
		wantError(t, "RenameProject", err, store.ErrNotFound)
		_, err = tenant.ChooseProfile(t.Context(), b.pool, eve, projectID, "compact")
		wantError(t, "ChooseProfile", err, store.ErrNotFound)
	}
	if got, err := tenant.ProjectByID(t.Context(), b.pool, acme.ID); err != nil || got != acme {
		t.Errorf("the project is now %+v (%v)", got, err)
	}
	_, err := tenant.ProjectByID(t.Context(), b.pool, "project_missing")
	wantError(t, "ProjectByID", err, store.ErrNotFound)
	_, err = tenant.RenameProject(t.Context(), b.pool, tenant.CLI("root"), "project_missing", "x")
	wantError(t, "RenameProject", err, store.ErrNotFound)
}

func TestActorInProject_AnAdminNeedsNoRole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, _ := b.project(t, "acme")
	admin := b.admin(t, "admin@acme.example")
	actor := b.actor(t, admin.ID, project.ID)
	if actor.Role != "" || !actor.Admin || actor.Name != "admin@acme.example" || !actor.Can(tenant.PermManageTeam) {
		t.Errorf("actor is %+v", actor)
	}
	_, err := tenant.ActorInProject(t.Context(), b.pool, admin.ID, "project_missing")
	wantError(t, "missing project", err, store.ErrNotFound)
}

func TestListProjectsOf_ShowsEachRole(t *testing.T) {
	t.Parallel()
	b := setup(t)
	acme, owner := b.project(t, "acme")
	zeta, _ := b.project(t, "Zeta")
	b.project(t, "foreign")
	if _, err := tenant.AddMember(t.Context(), b.pool, tenant.CLI("test"), zeta.ID, owner.Name, tenant.RoleViewer); err != nil {
		t.Fatal(err)
	}
	got, err := tenant.ListProjectsOf(t.Context(), b.pool, owner.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []tenant.Membership{{Project: acme, Role: tenant.RoleOwner}, {Project: zeta, Role: tenant.RoleViewer}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("projects (-want +got):\n%s", diff)
	}
}

func TestListProjects_PagesBothWaysForAdmins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, owner := b.project(t, "owned")
	for i := range 6 {
		if _, err := tenant.CreateProject(t.Context(), b.pool, tenant.CLI("test"), tenant.NewProject{Name: fmt.Sprintf("Shop %d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	admin := b.admin(t, "admin@acme.example")
	list := func(search, cursor string) ([]string, store.List[tenant.ProjectSummary]) {
		page, err := tenant.ListProjects(t.Context(), b.pool, admin, search, store.Page{Limit: 4, Cursor: cursor})
		if err != nil {
			t.Fatalf("ListProjects: %v", err)
		}
		var names []string
		for _, p := range page.Rows {
			names = append(names, p.Name)
		}
		return names, page
	}
	want := []string{"Shop 5", "Shop 4", "Shop 3", "Shop 2", "Shop 1", "Shop 0", "owned"}
	first, page1 := list("", "")
	second, page2 := list("", page1.Next)
	if diff := cmp.Diff(want, slices.Concat(first, second)); diff != "" || page2.Next != "" || page1.Prev != "" {
		t.Errorf("two pages (-want +got), next %q, prev %q:\n%s", page2.Next, page1.Prev, diff)
	}
	if back, _ := list("", page2.Prev); cmp.Diff(first, back) != "" {
		t.Errorf("the way back shows %v, want %v", back, first)
	}
	if found, _ := list("shop 3", ""); cmp.Diff([]string{"Shop 3"}, found) != "" {
		t.Errorf("search finds %v", found)
	}
	if found, _ := list("%", ""); len(found) != 0 {
		t.Errorf("a percent sign finds %v, want nothing", found)
	}
	last := page2.Rows[2]
	if last.Members != 1 || cmp.Diff([]string{"owner@owned.example"}, last.Owners) != "" || len(first) > 0 && page1.Rows[0].Members != 0 {
		t.Errorf("the owned project is %+v", last)
	}
	_, err := tenant.ListProjects(t.Context(), b.pool, owner, "", store.Page{})
	wantError(t, "owner", err, tenant.ErrForbidden)
}
