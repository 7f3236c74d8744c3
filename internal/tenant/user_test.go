package tenant_test

import (
	"testing"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

func TestCreateUser_NormalisesAndConfirmsTheAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user, err := b.accounts.CreateUser(t.Context(), tenant.CLI("test"), tenant.NewUser{Email: " Ana@ACME.example ", Admin: true})
	if err != nil {
		t.Fatalf("CreateUser: %v", err)
	}
	if user.Email != "ana@acme.example" || !user.Admin || user.HasPassword || user.EmailConfirmedAt == nil {
		t.Errorf("user is %+v", user)
	}
	for _, written := range []string{"ana@acme.example", "ANA@acme.EXAMPLE"} {
		if found, err := tenant.UserByEmail(t.Context(), b.pool, written); err != nil || found.ID != user.ID {
			t.Errorf("UserByEmail(%s) = %s, %v, want %s", written, found.ID, err, user.ID)
		}
	}
	if got := b.actions(t, ""); len(got) != 1 || got[0] != "user.create" {
		t.Errorf("audit log holds %v, want user.create", got)
	}
}

func TestCreateUser_RefusesAnAddressThatIsTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "ana@acme.example")
	_, err := b.accounts.CreateUser(t.Context(), tenant.CLI("test"), tenant.NewUser{Email: "ANA@acme.example"})
	wantConflict(t, err, "email_taken")
	if n := b.count(t, `select count(*) from audit_log`); n != 1 {
		t.Errorf("%d audit rows, want the one of the first user", n)
	}
}

func TestCreateUser_SaysAllThatIsWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.accounts.CreateUser(t.Context(), tenant.CLI("test"), tenant.NewUser{Email: "ana", Password: "short"})
	wantInvalid(t, err, "email", "password")
}

func TestCreateUser_IsForAdminsOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	project, owner := b.project(t, "acme")
	key := tenant.Actor{Kind: tenant.ActorAPIKey, ID: "key_a", ProjectID: project.ID, Scopes: tenant.Scopes()}
	for _, actor := range []tenant.Actor{owner, key, {}} {
		_, err := b.accounts.CreateUser(t.Context(), actor, tenant.NewUser{Email: "eve@evil.example", Admin: true})
		wantError(t, "CreateUser", err, tenant.ErrForbidden)
		wantError(t, "SetPassword", b.accounts.SetPassword(t.Context(), actor, owner.ID, goodPassword), tenant.ErrForbidden)
		_, err = b.accounts.SetAdmin(t.Context(), actor, owner.ID, true)
		wantError(t, "SetAdmin", err, tenant.ErrForbidden)
	}
}

func TestUserByID_MissingIsNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := tenant.UserByID(t.Context(), b.pool, "user_missing")
	wantError(t, "UserByID", err, store.ErrNotFound)
	_, err = tenant.UserByEmail(t.Context(), b.pool, "nobody@acme.example")
	wantError(t, "UserByEmail", err, store.ErrNotFound)
	_, err = tenant.UserByEmail(t.Context(), b.pool, "no address")
	wantError(t, "UserByEmail", err, store.ErrNotFound)
}

func TestSetAdmin_KeepsTheLastAdmin(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.admin(t, "ana@acme.example")
	_, err := b.accounts.SetAdmin(t.Context(), first, first.ID, false)
	wantConflict(t, err, "last_admin")

	second := b.admin(t, "bob@acme.example")
	pair := []tenant.Actor{first, second}
	errs := b.queued(t, `select from users for update`, 2, func(i int) error {
		_, err := b.accounts.SetAdmin(t.Context(), pair[1-i], pair[i].ID, false)
		return err
	})
	if countNil(errs) != 1 {
		t.Errorf("two admins demoted each other at once: %v, want exactly one success", errs)
	}
	if n := b.count(t, `select count(*) from users where is_admin`); n != 1 {
		t.Errorf("%d admins are left, want 1", n)
	}
	_, err = b.accounts.SetAdmin(t.Context(), tenant.CLI("test"), "user_missing", true)
	wantError(t, "SetAdmin", err, store.ErrNotFound)
}
