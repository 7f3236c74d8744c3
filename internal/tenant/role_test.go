package tenant

import (
	"errors"
	"fmt"
	"testing"

	"entrega/internal/store"
)

// granted is the table of the design, written out once more so that a slip in role.go shows.
var granted = map[string]string{
	"role owner": "see see_payloads retry cancel redeliver acknowledge send_test pause_endpoint " +
		"manage_endpoints reactivate publish manage_keys manage_team choose_profile",
	"role on_call":  "see see_payloads retry cancel redeliver acknowledge send_test pause_endpoint",
	"role viewer":   "see",
	"role ":         "",
	"role boss":     "",
	"scope publish": "publish",
	"scope read":    "see see_payloads",
	"scope manage": "see see_payloads retry cancel redeliver acknowledge send_test pause_endpoint " +
		"manage_endpoints reactivate publish choose_profile",
	"scope ":      "",
	"scope admin": "",
}

func words(s string) map[Permission]bool {
	set := make(map[Permission]bool)
	var word string
	for _, r := range s + " " {
		if r != ' ' {
			word += string(r)
			continue
		}
		if word != "" {
			set[Permission(word)] = true
		}
		word = ""
	}
	return set
}

func TestCan_EveryRoleAndScopeByEveryPermission(t *testing.T) {
	t.Parallel()
	const project = "project_a"
	type row struct {
		name  string
		actor Actor
		want  string
	}
	all := "admin " + granted["role owner"]
	rows := []row{
		{"nobody", Actor{}, ""},
		{"nobody in a project with a role", Actor{ProjectID: project, Role: RoleOwner, Admin: true, Scopes: Scopes()}, ""},
		{"user outside any project", Actor{Kind: ActorUser, ID: "user_a"}, ""},
		{"owner without a project", Actor{Kind: ActorUser, Role: RoleOwner}, ""},
		{"admin outside any project", Actor{Kind: ActorUser, Admin: true}, all},
		{"admin in a project", Actor{Kind: ActorUser, Admin: true, ProjectID: project}, all},
		{"admin who is a viewer", Actor{Kind: ActorUser, Admin: true, ProjectID: project, Role: RoleViewer}, all},
		{"system", System("endpoint health"), all},
		{"command line", CLI("root"), all},
		{"key without scopes", Actor{Kind: ActorAPIKey, ProjectID: project}, ""},
		{"key without a project", Actor{Kind: ActorAPIKey, Scopes: Scopes()}, ""},
		{"key with a role and admin", Actor{Kind: ActorAPIKey, ProjectID: project, Role: RoleOwner, Admin: true}, ""},
		{"user with scopes", Actor{Kind: ActorUser, ProjectID: project, Scopes: Scopes()}, ""},
		{"key to publish and read", Actor{Kind: ActorAPIKey, ProjectID: project, Scopes: []Scope{ScopePublish, ScopeRead}}, "publish see see_payloads"},
		{"key to do all", Actor{Kind: ActorAPIKey, ProjectID: project, Scopes: Scopes()}, granted["scope manage"]},
	}
	for _, role := range append(Roles(), "", "boss") {
		rows = append(rows, row{"role " + string(role), Actor{Kind: ActorUser, ID: "user_a", ProjectID: project, Role: role}, granted["role "+string(role)]})
	}
	for _, scope := range append(Scopes(), "", "admin") {
		rows = append(rows, row{"scope " + string(scope), Actor{Kind: ActorAPIKey, ProjectID: project, Scopes: []Scope{scope}}, granted["scope "+string(scope)]})
	}

	for _, r := range rows {
		want := words(r.want)
		for _, p := range Permissions() {
			if got := r.actor.Can(p); got != want[p] {
				t.Errorf("%s: Can(%s) = %v, want %v", r.name, p, got, want[p])
			}
			if err := r.actor.Require(p); (err == nil) != want[p] || err != nil && !errors.Is(err, ErrForbidden) {
				t.Errorf("%s: Require(%s) = %v, want allowed %v", r.name, p, err, want[p])
			}
			delete(want, p)
		}
		if len(want) > 0 {
			t.Errorf("%s: Permissions lacks %v", r.name, want)
		}
		everything := r.actor.Kind == ActorSystem || r.actor.Kind == ActorCLI || r.actor.Kind == ActorUser && r.actor.Admin
		if got := r.actor.Can("fly"); got != everything {
			t.Errorf("%s: Can of an unknown permission = %v, want %v", r.name, got, everything)
		}
	}
}

func TestRequireIn_AnotherProjectDoesNotExist(t *testing.T) {
	t.Parallel()
	const own, other = "project_a", "project_b"
	local := []Actor{
		{Kind: ActorUser, ProjectID: own, Role: RoleOwner},
		{Kind: ActorAPIKey, ProjectID: own, Scopes: Scopes()},
		{},
	}
	for _, a := range local {
		for _, project := range []string{other, ""} {
			if err := a.RequireIn(project, PermSee); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%+v in %q: %v, want ErrNotFound", a, project, err)
			}
		}
	}
	if err := local[0].RequireIn(own, PermManageTeam); err != nil {
		t.Errorf("owner in its own project: %v", err)
	}
	if err := local[1].RequireIn(own, PermManageTeam); !errors.Is(err, ErrForbidden) {
		t.Errorf("key in its own project: %v, want ErrForbidden", err)
	}

	for _, a := range []Actor{System("relay"), CLI("root"), {Kind: ActorUser, Admin: true}, {Kind: ActorUser, Admin: true, ProjectID: own}} {
		if err := a.RequireIn(other, PermManageTeam); err != nil {
			t.Errorf("%+v in another project: %v", a, err)
		}
		if err := a.RequireIn("", PermManageTeam); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%+v in no project: %v, want ErrNotFound", a, err)
		}
	}
}

func TestIn_GrantsNothing(t *testing.T) {
	t.Parallel()
	owner := Actor{Kind: ActorUser, ID: "user_a", ProjectID: "project_a", Role: RoleOwner}
	key := Actor{Kind: ActorAPIKey, ID: "key_a", ProjectID: "project_a", Scopes: Scopes()}
	for _, a := range []Actor{owner, key} {
		for _, p := range Permissions() {
			if a.In("project_b").Can(p) {
				t.Errorf("%s may %s in another project", a.Kind, p)
			}
			if got, want := a.In("project_a").Can(p), a.Can(p); got != want {
				t.Errorf("%s may %s in its own project: %v, want %v", a.Kind, p, got, want)
			}
		}
	}
}

func TestValid_KnowsRolesAndScopes(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(RoleOwner.Valid(), RoleOnCall.Valid(), RoleViewer.Valid(), Role("").Valid(), Role("admin").Valid(),
		ScopePublish.Valid(), ScopeRead.Valid(), ScopeManage.Valid(), Scope("").Valid(), Scope("owner").Valid())
	if want := "true true true false false true true true false false"; got != want {
		t.Errorf("Valid: %s, want %s", got, want)
	}
}
