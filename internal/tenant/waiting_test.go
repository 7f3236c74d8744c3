package tenant_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/tenant"
)

func TestListWaiting_ShowsAdminsWhoHasNotConfirmed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	admin := b.admin(t, "admin@acme.example")
	for _, email := range []string{"ana@acme.example", "bob@acme.example", "cy@acme.example"} {
		if _, err := b.accounts.SignUp(t.Context(), email, "192.0.2.7"); err != nil {
			t.Fatal(err)
		}
	}
	waiting, err := tenant.ListWaiting(t.Context(), b.pool, admin, 2)
	if err != nil {
		t.Fatal(err)
	}
	var emails []string
	for _, u := range waiting {
		emails = append(emails, u.Email)
	}
	if diff := cmp.Diff([]string{"cy@acme.example", "bob@acme.example"}, emails); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}

	user, err := tenant.UserByEmail(t.Context(), b.pool, "ana@acme.example")
	if err != nil {
		t.Fatal(err)
	}
	_, err = tenant.ListWaiting(t.Context(), b.pool, tenant.ActorOf(user), 2)
	wantError(t, "by somebody else", err, tenant.ErrForbidden)
}
