package tenant_test

import (
	"testing"
	"time"

	"entrega/internal/tenant"
)

func TestSetUp_MakesTheFirstAdminOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.link(t, b.accounts.SetUpLink)
	second := b.link(t, b.accounts.SetUpLink)
	if first == "" || first == second {
		t.Fatalf("links are %q and %q, want two", first, second)
	}
	if n := b.count(t, `select count(*) from one_time_links where encode(token_hash, 'escape') like '%' || $1 || '%'`, first); n != 0 {
		t.Error("the database holds the token itself")
	}

	_, err := b.accounts.SetUp(t.Context(), first, "ana", "short")
	wantInvalid(t, err, "email", "password")
	user, err := b.accounts.SetUp(t.Context(), first, "ana@acme.example", goodPassword)
	if err != nil {
		t.Fatalf("SetUp: %v", err)
	}
	if !user.Admin {
		t.Error("the user is no admin")
	}
	if _, err := b.accounts.Authenticate(t.Context(), "ana@acme.example", goodPassword, "192.0.2.7"); err != nil {
		t.Errorf("the admin cannot log in: %v", err)
	}

	for name, token := range map[string]string{"same link": first, "other link": second, "no link": "", "made up": "AAAA"} {
		_, err := b.accounts.SetUp(t.Context(), token, "eve@evil.example", goodPassword)
		t.Run(name, func(t *testing.T) { wantConflict(t, err, "link_spent") })
	}
	if token := b.link(t, b.accounts.SetUpLink); token != "" {
		t.Error("there is a set-up link although there is an admin")
	}
}

func TestSetUp_OfTwoAtOnceOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tokens := []string{b.link(t, b.accounts.SetUpLink), b.link(t, b.accounts.SetUpLink)}
	emails := []string{"ana@acme.example", "eve@evil.example"}
	errs := b.queued(t, `select from one_time_links for update`, 2, func(i int) error {
		_, err := b.accounts.SetUp(t.Context(), tokens[i], emails[i], goodPassword)
		return err
	})
	if countNil(errs) != 1 {
		t.Errorf("set-ups at once: %v, want exactly one success", errs)
	}
	for _, err := range errs {
		if err != nil {
			wantConflict(t, err, "link_spent")
		}
	}
	if n := b.count(t, `select count(*) from users`); n != 1 {
		t.Errorf("%d users, want 1", n)
	}
}

func TestSetUp_EndsWithTheDayAndWithAnAdminMadeElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old := b.link(t, b.accounts.SetUpLink)
	b.clock.Advance(24 * time.Hour)
	_, err := b.accounts.SetUp(t.Context(), old, "ana@acme.example", goodPassword)
	wantConflict(t, err, "link_spent")

	fresh := b.link(t, b.accounts.SetUpLink)
	b.clock.Advance(24*time.Hour - time.Second)
	b.admin(t, "admin@acme.example")
	_, err = b.accounts.SetUp(t.Context(), fresh, "ana@acme.example", goodPassword)
	wantConflict(t, err, "link_spent")
}

func TestSignUp_AnswersTheSameForAKnownAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	known := b.user(t, "ana@acme.example")
	for _, email := range []string{"new@acme.example", "NEW@acme.example", "ana@acme.example"} {
		user, err := b.accounts.SignUp(t.Context(), email, "192.0.2.7")
		if err != nil {
			t.Errorf("SignUp(%s): %v", email, err)
		}
		if confirmed := user.EmailConfirmedAt != nil; confirmed != (user.ID == known.ID) {
			t.Errorf("SignUp(%s): confirmed %v", email, confirmed)
		}
	}
	if n := b.count(t, `select count(*) from users`); n != 2 {
		t.Errorf("%d users, want 2", n)
	}
	if n := b.count(t, `select count(*) from audit_log where action = 'user.sign_up'`); n != 1 {
		t.Errorf("%d sign-ups in the audit log, want 1", n)
	}
	_, err := b.accounts.SignUp(t.Context(), "no address", "192.0.2.7")
	wantInvalid(t, err, "email")
	_, err = b.accounts.ConfirmationLink(t.Context(), known.ID)
	wantConflict(t, err, "email_confirmed")
}

func TestSignUp_IsThrottledByAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 10 {
		if _, err := b.accounts.SignUp(t.Context(), "new@acme.example", "2001:db8::1"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := b.accounts.SignUp(t.Context(), "new@acme.example", "2001:db8::2")
	if got := throttled(err); got != 10*time.Minute {
		t.Errorf("the 11th sign-up from a /64 waits %s (%v), want 10m", got, err)
	}
	if _, err := b.accounts.SignUp(t.Context(), "new@acme.example", "2001:db8:0:1::1"); err != nil {
		t.Errorf("another network: %v", err)
	}
}

func TestConfirmEmail_SetsThePasswordOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user, err := b.accounts.SignUp(t.Context(), "ana@acme.example", "192.0.2.7")
	if err != nil {
		t.Fatal(err)
	}
	first, second := b.confirmation(t, user.ID), b.confirmation(t, user.ID)

	link, err := b.accounts.Link(t.Context(), tenant.LinkConfirmEmail, first)
	if err != nil || link.UserID != user.ID {
		t.Errorf("Link = %+v, %v, want the user's", link, err)
	}
	_, err = b.accounts.Link(t.Context(), tenant.LinkSetUp, first)
	wantConflict(t, err, "link_spent")
	_, err = b.accounts.SetUp(t.Context(), first, "eve@evil.example", goodPassword)
	wantConflict(t, err, "link_spent")
	_, err = b.accounts.ConfirmEmail(t.Context(), first, "short")
	wantInvalid(t, err, "password")

	errs := b.queued(t, `select from one_time_links for update`, 2, func(i int) error {
		_, err := b.accounts.ConfirmEmail(t.Context(), []string{first, second}[i], goodPassword)
		return err
	})
	if countNil(errs) != 1 {
		t.Errorf("two confirmations at once: %v, want exactly one success", errs)
	}
	if _, err := b.accounts.Authenticate(t.Context(), user.Email, goodPassword, "192.0.2.7"); err != nil {
		t.Errorf("the user cannot log in: %v", err)
	}
	_, err = b.accounts.ConfirmEmail(t.Context(), second, "another good password")
	wantConflict(t, err, "link_spent")
}

func TestChangeEmail_MovesTheUserUnlessTheAddressIsTaken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user := b.user(t, "ana@acme.example")
	change := func(email string) string {
		token, err := b.accounts.ChangeEmailLink(t.Context(), user.ID, email)
		if err != nil {
			t.Fatalf("ChangeEmailLink: %v", err)
		}
		return token
	}
	_, err := b.accounts.ChangeEmailLink(t.Context(), user.ID, "no address")
	wantInvalid(t, err, "email")

	contested, other := change("Silva@acme.example"), change("lopes@acme.example")
	rival := b.user(t, "silva@acme.example")
	_, err = b.accounts.ChangeEmail(t.Context(), contested)
	wantConflict(t, err, "email_taken")
	b.exec(t, `delete from users where id = $1`, rival.ID)

	moved, err := b.accounts.ChangeEmail(t.Context(), contested)
	if err != nil || moved.ID != user.ID || moved.Email != "silva@acme.example" {
		t.Errorf("ChangeEmail = %+v, %v", moved, err)
	}
	for _, token := range []string{contested, other} {
		_, err := b.accounts.ChangeEmail(t.Context(), token)
		wantConflict(t, err, "link_spent")
	}
}
