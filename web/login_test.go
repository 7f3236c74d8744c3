package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"entrega/web"
)

func TestLogin_OpensTheProjectOfWhoHasOne(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.browser()

	first := b.get("/p/" + p.ours.ID + "/tasks?state=discarded")
	if want := "/login?next=%2Fp%2F" + p.ours.ID + "%2Ftasks%3Fstate%3Ddiscarded"; first.status != http.StatusSeeOther || first.location != want {
		t.Fatalf("a stranger's request: status %d to %q, want 303 to %q", first.status, first.location, want)
	}
	login := b.open(first.location)
	answer := b.send(login, "/login", url.Values{"email": {"Owner@Example.com"}, "password": {password}})
	if want := "/p/" + p.ours.ID + "/tasks?state=discarded"; answer.status != http.StatusSeeOther || answer.location != want {
		t.Fatalf("log-in: status %d to %q, want 303 to %q", answer.status, answer.location, want)
	}
	if got := b.open(answer.location).heading(); got != "Tasks" {
		t.Errorf("heading %q, want Tasks", got)
	}
	if got := b.get("/").location; got != "/p/"+p.ours.ID {
		t.Errorf("the first page leads to %q, want the only project", got)
	}
}

func TestLogin_SaysTheSameForUnknownUsersAndWrongPasswords(t *testing.T) {
	t.Parallel()
	p := setup(t)
	wrong := p.browser().post("/login", url.Values{"email": {"owner@example.com"}, "password": {"not the password"}})
	unknown := p.browser().post("/login", url.Values{"email": {"nobody@example.com"}, "password": {"not the password"}})
	if wrong.status != http.StatusUnprocessableEntity || unknown.status != wrong.status {
		t.Errorf("statuses %d and %d, want 422 for both", wrong.status, unknown.status)
	}
	if a, b := strings.ReplaceAll(text(wrong.doc), "owner@", ""), strings.ReplaceAll(text(unknown.doc), "nobody@", ""); a != b {
		t.Errorf("the pages differ:\n%s\n%s", a, b)
	}
	if len(wrong.header.Values("Set-Cookie")) > 0 {
		t.Error("a refused log-in sets a cookie")
	}
}

func TestLogin_IsThrottledWithASentence(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.browser()
	var last *page
	for range 6 {
		last = b.post("/login", url.Values{"email": {"owner@example.com"}, "password": {"not the password"}})
	}
	if last.status != http.StatusTooManyRequests || !last.says("Too many attempts.") || last.header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q, want 429 with a sentence", last.status, last.header.Get("Retry-After"))
	}
	right := b.post("/login", url.Values{"email": {"owner@example.com"}, "password": {password}})
	if right.status != http.StatusTooManyRequests {
		t.Errorf("the right password while throttled: status %d, want 429", right.status)
	}
}

func TestLogin_GivesAPlantedSessionANewToken(t *testing.T) {
	t.Parallel()
	p := setup(t)
	victim := p.as("viewer")
	address, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	planted := victim.http.Jar.Cookies(address)[0]
	victim.post("/login", url.Values{"email": {"owner@example.com"}, "password": {password}})
	if now := victim.http.Jar.Cookies(address)[0]; now.Value == planted.Value {
		t.Fatal("the token is the same after the log-in")
	}
	thief := p.browser()
	thief.http.Jar.SetCookies(address, []*http.Cookie{planted})
	if answer := thief.get("/projects"); answer.status != http.StatusSeeOther {
		t.Errorf("the planted token opens a page: status %d, want 303 to the log-in", answer.status)
	}
}

func TestLogin_CookieIsLockedDown(t *testing.T) {
	t.Parallel()
	p := setup(t)
	plain := p.browser().post("/login", url.Values{"email": {"owner@example.com"}, "password": {password}}).header.Get("Set-Cookie")
	for _, want := range []string{"entrega=", "Path=/;", "HttpOnly", "SameSite=Lax"} {
		if !strings.Contains(plain, want) {
			t.Errorf("cookie %q lacks %s", plain, want)
		}
	}
	p.serve("https")
	secure := p.browser().post("/login", url.Values{"email": {"owner@example.com"}, "password": {password}}).header.Get("Set-Cookie")
	if !strings.HasPrefix(secure, "__Host-entrega=") || !strings.Contains(secure, "Secure") || strings.Contains(secure, "Domain") {
		t.Errorf("cookie %q, want __Host-entrega, Secure, without Domain", secure)
	}
}

func TestLogout_EndsTheSessionEverywhere(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	address, err := url.Parse(p.url)
	if err != nil {
		t.Fatal(err)
	}
	kept := b.http.Jar.Cookies(address)
	if answer := b.post("/logout", nil); answer.status != http.StatusSeeOther || answer.location != "/login" {
		t.Fatalf("log-out: status %d to %q, want 303 to /login", answer.status, answer.location)
	}
	b.http.Jar.SetCookies(address, kept)
	if answer := b.get("/projects"); answer.status != http.StatusSeeOther {
		t.Errorf("the old cookie opens a page: status %d, want 303 to the log-in", answer.status)
	}
}

func TestSession_EndsWhenIdleAndIsNotKeptAliveByThePage(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	// The row as it is after twelve hours without use, less a minute.
	p.exec(`update sessions set expiry = now() + interval '1 minute'`)
	b.do(http.MethodGet, "/p/"+p.ours.ID+"/tasks", nil, http.Header{"X-Fragment": {"rows"}})
	var expiry time.Time
	p.scan(&expiry, `select expiry from sessions`)
	if left := time.Until(expiry); left > time.Minute {
		t.Errorf("a refresh of the page itself prolonged the session: %s left", left)
	}
	p.exec(`update sessions set expiry = now() - interval '1 second'`)
	if answer := b.get("/projects"); answer.status != http.StatusSeeOther {
		t.Errorf("an expired session opens a page: status %d, want 303 to the log-in", answer.status)
	}
}

func TestOwnPath_RefusesEveryAddressThatABrowserReadsAsAnotherSite(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example", "/ /evil.example",
		"javascript:alert(1)", "evil", "///evil.example", "/\x00", "/a\nb", "?next=/", "/%zz"} {
		if web.OwnPath(raw) {
			t.Errorf("OwnPath(%q) = true", raw)
		}
	}
	for _, raw := range []string{"/", "/p/project_1/tasks?state=discarded&q=a%20b", "/p/x/tasks/1?attempt=2#exchange"} {
		if !web.OwnPath(raw) {
			t.Errorf("OwnPath(%q) = false", raw)
		}
	}
}

func TestLogin_NextLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for _, next := range []string{"https://evil.example/", "//evil.example", "/\\evil.example"} {
		answer := p.browser().post("/login", url.Values{"email": {"owner@example.com"}, "password": {password}, "next": {next}})
		if answer.location != "/" {
			t.Errorf("next=%q leads to %q, want /", next, answer.location)
		}
	}
}
