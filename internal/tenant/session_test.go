package tenant_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

func (b bundle) manager() *scs.SessionManager {
	m := scs.New()
	m.Store = tenant.NewSessionStore(b.pool)
	m.IdleTimeout = 12 * time.Hour
	m.Lifetime = 14 * 24 * time.Hour
	return m
}

// logIn makes a session of a user, as a log-in handler does, and returns its token.
func logIn(t *testing.T, m *scs.SessionManager, userID, agent string) string {
	t.Helper()
	ctx := load(t, m, "")
	m.Put(ctx, tenant.SessionUserID, userID)
	m.Put(ctx, tenant.SessionUserAgent, agent)
	m.Put(ctx, tenant.SessionAddress, "192.0.2.7")
	return commit(t, m, ctx)
}

func load(t *testing.T, m *scs.SessionManager, token string) context.Context {
	t.Helper()
	ctx, err := m.Load(t.Context(), token)
	if err != nil {
		t.Fatalf("load session: %v", err)
	}
	return ctx
}

func commit(t *testing.T, m *scs.SessionManager, ctx context.Context) string {
	t.Helper()
	token, _, err := m.Commit(ctx)
	if err != nil {
		t.Fatalf("commit session: %v", err)
	}
	return token
}

// userOf is who a token is logged in as.
func userOf(t *testing.T, m *scs.SessionManager, token string) string {
	t.Helper()
	return m.GetString(load(t, m, token), tenant.SessionUserID)
}

func TestSessions_AreListedWithWhereTheyAre(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.manager()
	phone := logIn(t, m, "user_ana", "Phone")
	laptop := logIn(t, m, "user_ana", "Laptop")
	logIn(t, m, "user_bob", "Phone")
	commit(t, m, func() context.Context { // a visitor who is not logged in
		ctx := load(t, m, "")
		m.Put(ctx, "next", "/tasks")
		return ctx
	}())
	b.exec(t, `update sessions set seen_at = seen_at - interval '1 hour'`)
	commit(t, m, load(t, m, phone))

	sessions, err := tenant.ListSessions(t.Context(), b.pool, "user_ana")
	if err != nil || len(sessions) != 2 {
		t.Fatalf("ListSessions = %+v, %v, want two", sessions, err)
	}
	for i, want := range []struct{ token, agent string }{{phone, "Phone"}, {laptop, "Laptop"}} {
		s := sessions[i]
		if s.ID != tenant.SessionID(want.token) || s.UserAgent != want.agent || s.Address != "192.0.2.7" {
			t.Errorf("session %d is %+v, want %s, used last first", i, s, want.agent)
		}
		if life := s.ExpiresAt.Sub(s.CreatedAt); life < 11*time.Hour || life > 13*time.Hour {
			t.Errorf("an idle session lives %s, want 12h", life)
		}
	}
}

func TestSessions_TheDatabaseHoldsNoToken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.manager()
	token := logIn(t, m, "user_ana", "Phone")
	if n := b.count(t, `select count(*) from sessions s where position($1 in s::text) > 0`, token); n != 0 {
		t.Error("the sessions table holds the token itself")
	}
	var key string
	if err := b.pool.QueryRow(t.Context(), `select token from sessions`).Scan(&key); err != nil {
		t.Fatal(err)
	}
	if got := userOf(t, m, key); got != "" {
		t.Errorf("what the database holds opens the session of %s", got)
	}
	if got := userOf(t, m, token); got != "user_ana" {
		t.Errorf("the token opens the session of %q", got)
	}
}

func TestSessions_RenewalLeavesOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.manager()
	old := logIn(t, m, "user_ana", "Phone")
	ctx := load(t, m, old)
	if err := m.RenewToken(ctx); err != nil {
		t.Fatal(err)
	}
	renewed := commit(t, m, ctx)
	if userOf(t, m, old) != "" || userOf(t, m, renewed) != "user_ana" {
		t.Errorf("the old token is %q, the new one %q", userOf(t, m, old), userOf(t, m, renewed))
	}
	if sessions, err := tenant.ListSessions(t.Context(), b.pool, "user_ana"); err != nil || len(sessions) != 1 {
		t.Errorf("sessions are %+v, %v, want one", sessions, err)
	}
}

// A request that began before the session ended commits it afterwards.
func TestSessions_ALateCommitDoesNotReviveAnEndedOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.manager()
	actor := tenant.ActorOf(b.user(t, "ana@acme.example"))
	for name, end := range map[string]func(token string) error{
		"log-out": func(token string) error { return m.Destroy(load(t, m, token)) },
		"revoked": func(token string) error {
			return tenant.RevokeSession(t.Context(), b.pool, actor, tenant.SessionID(token))
		},
		"revoked from elsewhere": func(string) error {
			_, err := tenant.RevokeOtherSessions(t.Context(), b.pool, actor, "another token")
			return err
		},
		"password set": func(string) error {
			return b.accounts.SetPassword(t.Context(), tenant.CLI("test"), actor.ID, goodPassword)
		},
	} {
		token := logIn(t, m, actor.ID, "Phone")
		underWay := load(t, m, token)
		if err := end(token); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		commit(t, m, underWay)
		if got := userOf(t, m, token); got != "" {
			t.Errorf("%s: the session is alive again, as %s", name, got)
		}
	}
	if n := b.count(t, `select count(*) from sessions where data <> ''`); n != 0 {
		t.Errorf("%d ended sessions keep their data", n)
	}
}

func TestRevokeSession_IsForOnesOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.manager()
	ana, bob := tenant.ActorOf(b.user(t, "ana@acme.example")), tenant.ActorOf(b.user(t, "bob@acme.example"))
	token := logIn(t, m, ana.ID, "Phone")

	for name, id := range map[string]string{"another's": tenant.SessionID(token), "missing": "missing", "token": token} {
		wantError(t, name, tenant.RevokeSession(t.Context(), b.pool, bob, id), store.ErrNotFound)
	}
	if got := userOf(t, m, token); got != ana.ID {
		t.Fatalf("the session is now of %q", got)
	}
	if err := tenant.RevokeSession(t.Context(), b.pool, ana, tenant.SessionID(token)); err != nil {
		t.Errorf("own session: %v", err)
	}
	wantError(t, "revoked twice", tenant.RevokeSession(t.Context(), b.pool, ana, tenant.SessionID(token)), store.ErrNotFound)
}

func TestRevokeOtherSessions_KeepsTheOneInUse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.manager()
	ana := b.user(t, "ana@acme.example")
	bobs := logIn(t, m, "user_bob", "Phone")
	var tokens []string
	for i := range 3 {
		tokens = append(tokens, logIn(t, m, ana.ID, fmt.Sprint(i)))
	}
	n, err := tenant.RevokeOtherSessions(t.Context(), b.pool, tenant.ActorOf(ana), tokens[1])
	if err != nil || n != 2 {
		t.Errorf("RevokeOtherSessions = %d, %v, want 2", n, err)
	}
	if a, b, c := userOf(t, m, tokens[0]), userOf(t, m, tokens[1]), userOf(t, m, tokens[2]); a != "" || b != ana.ID || c != "" {
		t.Errorf("sessions are %q, %q, %q, want only the second alive", a, b, c)
	}

	tokens[0] = logIn(t, m, ana.ID, "again")
	if err := b.accounts.ChangePassword(t.Context(), ana, goodPassword, "another good password", "192.0.2.7", tokens[1]); err != nil {
		t.Fatal(err)
	}
	if a, b := userOf(t, m, tokens[0]), userOf(t, m, tokens[1]); a != "" || b != ana.ID {
		t.Errorf("after a change of password sessions are %q, %q, want only the second alive", a, b)
	}
	if got := userOf(t, m, bobs); got != "user_bob" {
		t.Errorf("another user's session is now of %q", got)
	}
}

func TestSessionStore_WithoutAContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := tenant.NewSessionStore(b.pool)
	data, err := scs.GobCodec{}.Encode(time.Now().Add(time.Hour), map[string]any{tenant.SessionUserID: "user_ana"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Commit("token", data, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got, found, err := s.Find("token"); err != nil || !found || string(got) != string(data) {
		t.Errorf("Find: found %v, %v", found, err)
	}
	if err := s.Delete("token"); err != nil {
		t.Fatal(err)
	}
	if _, found, err := s.Find("token"); err != nil || found {
		t.Errorf("Find after Delete: found %v, %v", found, err)
	}
	if err := s.Commit("other", []byte("not a session"), time.Now().Add(time.Hour)); err == nil {
		t.Error("Commit takes what is no session")
	}
}

func TestSweep_DeletesWhatCanNoLongerMatter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	m := b.manager()
	ended := logIn(t, m, "user_ana", "ended")
	if err := m.Destroy(load(t, m, ended)); err != nil {
		t.Fatal(err)
	}
	logIn(t, m, "user_ana", "live")
	expired := logIn(t, m, "user_ana", "expired")
	b.exec(t, `update sessions set expiry = now() - interval '1 second' where token = $1`, tenant.SessionID(expired))
	if userOf(t, m, expired) != "" {
		t.Error("an expired session is alive")
	}
	b.link(t, b.accounts.SetUpLink)
	if _, err := b.accounts.Authenticate(t.Context(), "nobody@acme.example", wrongPassword, "192.0.2.7"); err == nil {
		t.Fatal("nobody logged in")
	}

	for _, tt := range []struct {
		after time.Duration
		swept int64
	}{
		{0, 1},                            // the expired session
		{24*time.Hour + time.Second, 4},   // the other two sessions, and both throttle counts
		{8*24*time.Hour + time.Second, 1}, // the link, a week after its end
		{9 * 24 * time.Hour, 0},
	} {
		n, err := tenant.Sweep(t.Context(), b.pool, b.clock.Now().Add(tt.after))
		if err != nil || n != tt.swept {
			t.Errorf("after %s: swept %d, %v, want %d", tt.after, n, err, tt.swept)
		}
	}
}
