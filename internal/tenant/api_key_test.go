package tenant_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

func (b bundle) key(t *testing.T, owner tenant.Actor, scopes ...tenant.Scope) (tenant.APIKey, string) {
	t.Helper()
	key, secret, err := tenant.CreateAPIKey(t.Context(), b.pool, owner, owner.ProjectID, tenant.NewAPIKey{Name: "shop", Scopes: scopes})
	if err != nil {
		t.Fatalf("CreateAPIKey: %v", err)
	}
	return key, secret
}

func TestCreateAPIKey_ShowsTheKeyOnceAndStoresItsHash(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	key, secret := b.key(t, owner, tenant.ScopeRead, tenant.ScopePublish, tenant.ScopeRead)

	if !regexp.MustCompile(`^entrega_[0-9a-f]{8}_[0-9A-Za-z]{43}$`).MatchString(secret) || !strings.HasPrefix(secret, key.Prefix+"_") {
		t.Errorf("the key is %q with prefix %q", secret, key.Prefix)
	}
	want := tenant.APIKey{
		ID: key.ID, ProjectID: project.ID, Name: "shop", Prefix: key.Prefix, CreatedBy: owner.Name, CreatedAt: key.CreatedAt,
		Scopes: []tenant.Scope{tenant.ScopePublish, tenant.ScopeRead},
	}
	listed, err := tenant.ListAPIKeys(t.Context(), b.pool, project.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tenant.APIKey{want}, listed); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for _, table := range []string{"api_keys", "audit_log"} {
		var dump string
		if err := b.pool.QueryRow(t.Context(), `select string_agg(r::text, ' ') from `+table+` r`).Scan(&dump); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(dump, secret[len(key.Prefix)+1:]) {
			t.Errorf("%s holds the key itself", table)
		}
	}
}

func TestAuthenticateKey_IsTheKeysProjectAndScopes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	key, secret := b.key(t, owner, tenant.ScopePublish)
	got, err := tenant.AuthenticateKey(t.Context(), b.pool, secret)
	if err != nil {
		t.Fatalf("AuthenticateKey: %v", err)
	}
	want := tenant.Actor{
		Kind: tenant.ActorAPIKey, ID: key.ID, Name: "shop", ProjectID: project.ID, Scopes: []tenant.Scope{tenant.ScopePublish},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actor (-want +got):\n%s", diff)
	}
}

func TestAuthenticateKey_RefusesEverythingElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, owner := b.project(t, "acme")
	key, secret := b.key(t, owner, tenant.ScopePublish)
	last := secret[len(secret)-1]
	wrong := []string{
		"", "entrega_", key.Prefix, key.ID, secret + "0", secret[:len(secret)-1], " " + secret, strings.ToUpper(secret),
		secret[:len(secret)-1] + string('0'+(last-'0'+1)%10), "entrega_" + strings.Repeat("0", len(secret)-len("entrega_")),
		strings.Repeat("x", 1<<20),
	}
	for _, k := range wrong {
		if _, err := tenant.AuthenticateKey(t.Context(), b.pool, k); err != tenant.ErrUnknownKey {
			t.Errorf("AuthenticateKey(%.60q): %v, want ErrUnknownKey itself", k, err)
		}
	}
}

func TestAuthenticateKey_NotesItsUseAtMostOnceAMinute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	_, secret := b.key(t, owner, tenant.ScopePublish)
	use := func() time.Time {
		if _, err := tenant.AuthenticateKey(t.Context(), b.pool, secret); err != nil {
			t.Fatal(err)
		}
		keys, err := tenant.ListAPIKeys(t.Context(), b.pool, project.ID)
		if err != nil || keys[0].LastUsedAt == nil {
			t.Fatalf("keys are %+v, %v, want one that was used", keys, err)
		}
		return *keys[0].LastUsedAt
	}
	first := use()
	if second := use(); !second.Equal(first) {
		t.Errorf("used twice within a minute: noted at %s and %s", first, second)
	}
	b.exec(t, `update api_keys set last_used_at = last_used_at - interval '61 seconds'`)
	if third := use(); third.Before(first) {
		t.Errorf("used after a minute: still noted at %s", third)
	}
}

func TestRevokeAPIKey_EndsItForGood(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	old, secret := b.key(t, owner, tenant.ScopeManage)
	fresh, _ := b.key(t, owner, tenant.ScopeManage)

	var revokedAt time.Time
	for i := range 2 { // the second changes nothing and is no action
		key, err := tenant.RevokeAPIKey(t.Context(), b.pool, owner, project.ID, old.ID)
		if err != nil || key.RevokedAt == nil || i > 0 && !key.RevokedAt.Equal(revokedAt) {
			t.Fatalf("RevokeAPIKey = %+v, %v", key, err)
		}
		revokedAt = *key.RevokedAt
	}
	_, err := tenant.AuthenticateKey(t.Context(), b.pool, secret)
	wantError(t, "revoked key", err, tenant.ErrUnknownKey)

	listed, err := tenant.ListAPIKeys(t.Context(), b.pool, project.ID)
	if err != nil || len(listed) != 2 || listed[0].ID != fresh.ID || listed[1].ID != old.ID {
		t.Errorf("keys are %+v, %v, want the live one first", listed, err)
	}
	want := []string{"project.create", "api_key.create", "api_key.create", "api_key.revoke"}
	if diff := cmp.Diff(want, b.actions(t, project.ID)); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

func TestAPIKeys_OnlyOwnersManageTheirOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	acme, owner := b.project(t, "acme")
	key, _ := b.key(t, owner, tenant.ScopePublish)
	evil, eve := b.project(t, "evil")
	manage := tenant.Actor{Kind: tenant.ActorAPIKey, ID: "key_a", ProjectID: acme.ID, Scopes: tenant.Scopes()}
	onCall := b.member(t, acme.ID, "oncall@acme.example", tenant.RoleOnCall)

	for _, tt := range []struct {
		name      string
		actor     tenant.Actor
		projectID string
		create    error
		revoke    error
	}{
		{"on-call", onCall, acme.ID, tenant.ErrForbidden, tenant.ErrForbidden},
		{"a key that may do all", manage, acme.ID, tenant.ErrForbidden, tenant.ErrForbidden},
		{"another owner", eve, acme.ID, store.ErrNotFound, store.ErrNotFound},
		{"another owner, in its own", eve, evil.ID, nil, store.ErrNotFound},
		{"the command line, nowhere", tenant.CLI("root"), "project_missing", store.ErrNotFound, store.ErrNotFound},
	} {
		_, _, err := tenant.CreateAPIKey(t.Context(), b.pool, tt.actor, tt.projectID, tenant.NewAPIKey{Name: "x", Scopes: tenant.Scopes()})
		wantError(t, tt.name+": create", err, tt.create)
		_, err = tenant.RevokeAPIKey(t.Context(), b.pool, tt.actor, tt.projectID, key.ID)
		wantError(t, tt.name+": revoke", err, tt.revoke)
	}
	keys, err := tenant.ListAPIKeys(t.Context(), b.pool, acme.ID)
	if err != nil || len(keys) != 1 || keys[0].RevokedAt != nil {
		t.Errorf("the project's keys are %+v, %v, want the one that works", keys, err)
	}
}

func TestCreateAPIKey_SaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, owner := b.project(t, "acme")
	for i, scopes := range [][]tenant.Scope{nil, {"admin"}, {tenant.ScopeRead, ""}} {
		_, _, err := tenant.CreateAPIKey(t.Context(), b.pool, owner, owner.ProjectID, tenant.NewAPIKey{Name: " ", Scopes: scopes})
		t.Run(fmt.Sprint(i), func(t *testing.T) { wantInvalid(t, err, "name", "scopes") })
	}
}

func TestCreateAPIKey_LeavesTheCallersScopesAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, owner := b.project(t, "acme")
	scopes := []tenant.Scope{tenant.ScopeRead, tenant.ScopePublish, tenant.ScopeManage}
	b.key(t, owner, scopes...)
	if want := []tenant.Scope{tenant.ScopeRead, tenant.ScopePublish, tenant.ScopeManage}; !slices.Equal(scopes, want) {
		t.Errorf("the caller's scopes are now %v", scopes)
	}
}
