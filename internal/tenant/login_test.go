package tenant_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

const wrongPassword = "wrong horse battery staple"

// throttled reports how long err says to wait, 0 when it is not a *tenant.ThrottledError.
func throttled(err error) time.Duration {
	var t *tenant.ThrottledError
	if errors.As(err, &t) {
		return t.RetryAfter
	}
	return 0
}

func TestAuthenticate_ReturnsTheUser(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := b.user(t, "ana@acme.example")
	got, err := b.accounts.Authenticate(t.Context(), " ANA@acme.example", goodPassword, "192.0.2.7")
	if err != nil {
		t.Fatalf("Authenticate: %v", err)
	}
	if got.ID != want.ID || got.LastLoginAt == nil || !got.LastLoginAt.Equal(b.clock.Now()) {
		t.Errorf("user is %+v, want %s, logged in at %s", got, want.ID, b.clock.Now())
	}
	if actions := b.actions(t, ""); actions[len(actions)-1] != "user.log_in" {
		t.Errorf("audit log ends in %v, want user.log_in", actions)
	}
}

func TestAuthenticate_SaysTheSameWhateverIsWrong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "ana@acme.example")
	if _, err := b.accounts.CreateUser(t.Context(), tenant.CLI("test"), tenant.NewUser{Email: "nopassword@acme.example"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.accounts.SignUp(t.Context(), "unconfirmed@acme.example", "192.0.2.7"); err != nil {
		t.Fatal(err)
	}
	b.user(t, "withdrawn@acme.example")
	b.exec(t, `update users set email_confirmed_at = null where email = 'withdrawn@acme.example'`)

	for _, tt := range []struct{ email, password string }{
		{"ana@acme.example", wrongPassword},
		{"ana@acme.example", ""},
		{"ana@acme.example", strings.Repeat("x", 5000)},
		{"nobody@acme.example", goodPassword},
		{"nopassword@acme.example", ""},
		{"nopassword@acme.example", goodPassword},
		{"unconfirmed@acme.example", goodPassword},
		{"withdrawn@acme.example", goodPassword},
		{"no address", goodPassword},
		{"", ""},
		{"'; drop table users; --", goodPassword},
	} {
		_, err := b.accounts.Authenticate(t.Context(), tt.email, tt.password, "192.0.2.7")
		if err != tenant.ErrWrongLogin {
			t.Errorf("Authenticate(%q, %.20q): %v, want ErrWrongLogin itself", tt.email, tt.password, err)
		}
	}
}

func TestAuthenticate_ThrottlesAnAccountWhetherOrNotItExists(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "ana@acme.example")
	for _, email := range []string{"ana@acme.example", "nobody@acme.example"} {
		address := 0
		try := func(password string) error {
			address++ // each try from elsewhere: this is about the account
			_, err := b.accounts.Authenticate(t.Context(), email, password, fmt.Sprintf("192.0.2.%d", address))
			return err
		}
		for range 5 {
			wantError(t, email, try(wrongPassword), tenant.ErrWrongLogin)
		}
		for _, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
			if got := throttled(try(goodPassword)); got != wait {
				t.Errorf("%s: told to wait %s, want %s", email, got, wait)
			}
			b.clock.Advance(wait)
			wantError(t, email, try(wrongPassword), tenant.ErrWrongLogin)
		}
	}
}

func TestAuthenticate_SuccessForgetsTheAccountsFailures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "ana@acme.example")
	for round := range 4 {
		for range 4 {
			_, err := b.accounts.Authenticate(t.Context(), "ana@acme.example", wrongPassword, "192.0.2.7")
			wantError(t, "wrong password", err, tenant.ErrWrongLogin)
		}
		if _, err := b.accounts.Authenticate(t.Context(), "ana@acme.example", goodPassword, "192.0.2.7"); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

func TestAuthenticate_ThrottlesAnAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "ana@acme.example")
	guess := func(i int, address string) error {
		_, err := b.accounts.Authenticate(t.Context(), fmt.Sprintf("user%d@acme.example", i), wrongPassword, address)
		return err
	}
	for i := range 30 {
		wantError(t, "guess", guess(i, "192.0.2.7"), tenant.ErrWrongLogin)
	}
	if got := throttled(guess(30, "192.0.2.7")); got != time.Minute {
		t.Errorf("after 30 failures the address waits %s, want 1m", got)
	}
	wantError(t, "another address", guess(31, "192.0.2.8"), tenant.ErrWrongLogin)
	if n := b.count(t, `select count(*) from login_throttle where key like 'account:%'`); n != 31 {
		t.Errorf("%d accounts were counted, want 31: a refused address counts against no account", n)
	}

	// A log-in that works does not clear the address: an attacker may own an account too.
	b.clock.Advance(time.Minute)
	if _, err := b.accounts.Authenticate(t.Context(), "ana@acme.example", goodPassword, "192.0.2.7"); err != nil {
		t.Fatalf("log-in after the wait: %v", err)
	}
	wantError(t, "next guess", guess(32, "192.0.2.7"), tenant.ErrWrongLogin)
	if got := throttled(guess(33, "192.0.2.7")); got != 2*time.Minute {
		t.Errorf("after the next failure the address waits %s, want 2m", got)
	}
}

func TestAuthenticate_AnOfficeThatLogsInNeverWaits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "ana@acme.example")
	for i := range 40 {
		if _, err := b.accounts.Authenticate(t.Context(), "ana@acme.example", goodPassword, "192.0.2.7"); err != nil {
			t.Fatalf("log-in %d: %v", i, err)
		}
	}
}

func TestAuthenticate_ABurstGetsNoMoreGuessesThanARow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "ana@acme.example")
	errs := atOnce(20, func(i int) error {
		_, err := b.accounts.Authenticate(t.Context(), "ana@acme.example", wrongPassword, fmt.Sprintf("192.0.2.%d", i))
		return err
	})
	looked, refused := 0, 0
	for _, err := range errs {
		switch {
		case errors.Is(err, tenant.ErrWrongLogin):
			looked++
		case throttled(err) == time.Minute:
			refused++
		default:
			t.Errorf("unexpected answer: %v", err)
		}
	}
	if looked != 5 || refused != 15 {
		t.Errorf("%d guesses were looked at and %d refused, want 5 and 15", looked, refused)
	}
}

func TestAuthenticate_RenewsAHashOfAnotherCost(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user := b.user(t, "ana@acme.example")
	dearer := tenant.NewAccounts(tenant.AccountsOptions{
		Pool:      b.pool,
		Passwords: tenant.NewPasswords(tenant.Argon2Params{Time: 2, MemoryKiB: 128, Threads: 1}),
	})
	hash := func() (phc string) {
		if err := b.pool.QueryRow(t.Context(), `select password_hash from users where id = $1`, user.ID).Scan(&phc); err != nil {
			t.Fatal(err)
		}
		return phc
	}
	if _, err := dearer.Authenticate(t.Context(), "ana@acme.example", wrongPassword, "192.0.2.7"); !errors.Is(err, tenant.ErrWrongLogin) {
		t.Fatalf("wrong password: %v", err)
	}
	if !strings.Contains(hash(), "$m=64,t=1,") {
		t.Errorf("a wrong password changed the hash to %s", hash())
	}
	for range 2 {
		if _, err := dearer.Authenticate(t.Context(), "ana@acme.example", goodPassword, "192.0.2.7"); err != nil {
			t.Fatalf("Authenticate: %v", err)
		}
		if !strings.Contains(hash(), "$m=128,t=2,") {
			t.Errorf("the hash is %s, want today's cost", hash())
		}
	}
}

func TestAuthenticate_LogInsAtOnceAllSucceed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.user(t, "ana@acme.example")
	dearer := tenant.NewAccounts(tenant.AccountsOptions{
		Pool:      b.pool,
		Passwords: tenant.NewPasswords(tenant.Argon2Params{Time: 2, MemoryKiB: 128, Threads: 1}),
	})
	// The first round finds an old hash that each of them renews; all of them delete and make the same throttle row.
	for range 10 {
		for _, err := range atOnce(4, func(int) error {
			_, err := dearer.Authenticate(t.Context(), "ana@acme.example", goodPassword, "192.0.2.7")
			return err
		}) {
			if err != nil {
				t.Errorf("Authenticate: %v", err)
			}
		}
	}
}

func TestLogInVerified_MakesTheUserOnTheFirstVisit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, err := b.accounts.LogInVerified(t.Context(), "Ana@acme.example", "https://id.example")
	if err != nil || first.EmailConfirmedAt == nil || first.HasPassword || first.Admin {
		t.Fatalf("LogInVerified = %+v, %v", first, err)
	}
	b.clock.Advance(time.Hour)
	again, err := b.accounts.LogInVerified(t.Context(), "ana@acme.example", "https://id.example")
	if err != nil || again.ID != first.ID || !again.LastLoginAt.Equal(b.clock.Now()) || !again.EmailConfirmedAt.Equal(*first.EmailConfirmedAt) {
		t.Errorf("the second visit is %+v, %v", again, err)
	}
	_, err = b.accounts.Authenticate(t.Context(), "ana@acme.example", "", "192.0.2.7")
	wantError(t, "without a password", err, tenant.ErrWrongLogin)

	pending, err := b.accounts.SignUp(t.Context(), "bob@acme.example", "192.0.2.7")
	if err != nil {
		t.Fatal(err)
	}
	confirmed, err := b.accounts.LogInVerified(t.Context(), "bob@acme.example", "https://id.example")
	if err != nil || confirmed.ID != pending.ID || confirmed.EmailConfirmedAt == nil {
		t.Errorf("a pending sign-up becomes %+v, %v", confirmed, err)
	}
	_, err = b.accounts.LogInVerified(t.Context(), "no address", "https://id.example")
	wantInvalid(t, err, "email")
}

func TestChangePassword_NeedsThePresentOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user := b.user(t, "ana@acme.example")
	change := func(current, next string) error {
		return b.accounts.ChangePassword(t.Context(), user, current, next, "192.0.2.7", "")
	}
	wantInvalid(t, change(wrongPassword, "another good password"), "currentPassword")
	wantInvalid(t, change(goodPassword, "short"), "password")
	wantInvalid(t, change(goodPassword, "ana@acme.example"), "password")

	if err := change(goodPassword, "another good password"); err != nil {
		t.Fatalf("ChangePassword: %v", err)
	}
	_, err := b.accounts.Authenticate(t.Context(), user.Email, goodPassword, "192.0.2.7")
	wantError(t, "old password", err, tenant.ErrWrongLogin)
	if _, err := b.accounts.Authenticate(t.Context(), user.Email, "another good password", "192.0.2.7"); err != nil {
		t.Errorf("new password: %v", err)
	}
}

func TestChangePassword_IsThrottledLikeALogIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user := b.user(t, "ana@acme.example")
	change := func(current string) error {
		return b.accounts.ChangePassword(t.Context(), user, current, "another good password", "192.0.2.7", "")
	}
	for range 5 {
		wantInvalid(t, change(wrongPassword), "currentPassword")
	}
	if got := throttled(change(goodPassword)); got != time.Minute {
		t.Errorf("after 5 wrong ones the right one waits %s, want 1m", got)
	}
}

func TestSetPassword_LetsAnUnconfirmedUserIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	user, err := b.accounts.SignUp(t.Context(), "ana@acme.example", "192.0.2.7")
	if err != nil {
		t.Fatal(err)
	}
	wantInvalid(t, b.accounts.SetPassword(t.Context(), tenant.CLI("test"), user.ID, "short"), "password")
	wantError(t, "missing user", b.accounts.SetPassword(t.Context(), tenant.CLI("test"), "user_missing", goodPassword), store.ErrNotFound)
	if err := b.accounts.SetPassword(t.Context(), tenant.CLI("test"), user.ID, goodPassword); err != nil {
		t.Fatalf("SetPassword: %v", err)
	}
	if _, err := b.accounts.Authenticate(t.Context(), user.Email, goodPassword, "192.0.2.7"); err != nil {
		t.Errorf("Authenticate: %v", err)
	}
}
