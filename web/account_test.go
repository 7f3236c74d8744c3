package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestAccount_ListsSessionsAndEndsThem(t *testing.T) {
	t.Parallel()
	p := setup(t)
	here, phone, laptop, other := p.as("owner"), p.as("owner"), p.as("owner"), p.as("viewer")
	page := here.open("/account")
	if !page.says("owner@example.com") || !page.says("127.0.0.1") || !page.says("(this one)") || page.form("/logout") == nil {
		t.Error("the page lacks the address of the account or of a session, or does not mark this one")
	}
	var forms []string
	for _, f := range find(page.doc, "form") {
		if strings.HasPrefix(attr(f, "action"), "/account/sessions/") && strings.HasSuffix(attr(f, "action"), "/revoke") {
			forms = append(forms, attr(f, "action"))
		}
	}
	if len(forms) != 2 {
		t.Fatalf("%d sessions can be ended, want the two others", len(forms))
	}
	if one := here.submit(page, forms[0], nil); one.flash() != "That session was logged out." {
		t.Errorf("flash %q", one.flash())
	}
	in := func(b *browser) bool { return b.get("/projects").status == http.StatusOK }
	if in(phone) == in(laptop) {
		t.Error("not exactly one of the two other sessions has ended")
	}
	if twice := here.post(forms[0], nil); twice.status != http.StatusNotFound {
		t.Errorf("ending it twice: status %d, want 404", twice.status)
	}
	if foreign := other.post(forms[1], nil); foreign.status != http.StatusNotFound {
		t.Errorf("somebody else ends it: status %d, want 404", foreign.status)
	}
	rest := here.submit(here.open("/account"), "/account/sessions/revoke-others", nil)
	if in(phone) || in(laptop) || !in(here) || !in(other) || rest.flash() != "1 other session was logged out." {
		t.Errorf("flash %q, want every other session of this user ended and no more", rest.flash())
	}
}

func TestAccount_ChangesThePassword(t *testing.T) {
	t.Parallel()
	p := setup(t)
	here, elsewhere := p.as("owner"), p.as("owner")
	const next = "a new and longer one"
	for name, test := range map[string]struct{ current, next, says string }{
		"wrong present one": {"not the password", next, "This is not your present password."},
		"weak new one":      {password, "short", "A password needs"},
	} {
		answer := here.send(here.open("/account"), "/account/password", url.Values{"current": {test.current}, "password": {test.next}})
		if answer.status != http.StatusUnprocessableEntity || !strings.Contains(answer.sentences(), test.says) {
			t.Errorf("%s: status %d (%s), want 422 that says %q", name, answer.status, answer.sentences(), test.says)
		}
	}
	done := here.submit(here.open("/account"), "/account/password", url.Values{"current": {password}, "password": {next}})
	if done.heading() != "Account" || !strings.Contains(done.flash(), "The password was changed.") {
		t.Errorf("%q with %q, want to stay logged in", done.heading(), done.flash())
	}
	if elsewhere.get("/projects").status == http.StatusOK {
		t.Error("another session goes on")
	}
	if old := p.browser().post("/login", url.Values{"email": {"owner@example.com"}, "password": {password}}); old.status != http.StatusUnprocessableEntity {
		t.Errorf("the old password: status %d, want 422", old.status)
	}
	if now := p.browser().post("/login", url.Values{"email": {"owner@example.com"}, "password": {next}}); now.status != http.StatusSeeOther {
		t.Errorf("the new password: status %d, want 303", now.status)
	}
}

func TestAccount_GuessingThePasswordIsThrottled(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	var last *page
	for range 8 {
		last = b.post("/account/password", url.Values{"current": {"not the password"}, "password": {"a new and longer one"}})
	}
	if last.status != http.StatusTooManyRequests || !strings.Contains(last.sentences(), "Too many attempts.") {
		t.Errorf("status %d (%s), want 429 with a sentence", last.status, last.sentences())
	}
}

func TestAccount_NamesBrowsersAsPeopleKnowThem(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for agent, want := range map[string]string{
		"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0":                                                           "Firefox on Linux",
		"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0":        "Edge on Windows",
		"Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile Safari/604.1": "Safari on iPhone",
		"Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36":                     "Chrome on Android",
		"<script>alert(1)</script>": "Browser",
	} {
		b := p.browser()
		b.do(http.MethodPost, "/login", url.Values{"email": {"viewer@example.com"}, "password": {password}},
			http.Header{"Sec-Fetch-Site": {"same-origin"}, "User-Agent": {agent}})
		row := ""
		for _, r := range find(b.open("/account").doc, "tr") {
			if strings.Contains(text(r), "(this one)") {
				row = text(r)
			}
		}
		if !strings.HasPrefix(row, want) {
			t.Errorf("%s: the row reads %q, want %q", agent, row, want)
		}
	}
}

func TestAccount_NewAddressIsAskedForAndConfirmed(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	taken := b.send(b.open("/account"), "/account/email", url.Values{"email": {"owner@example.com"}})
	if taken.status != http.StatusUnprocessableEntity || !strings.Contains(taken.sentences(), "your address already") {
		t.Errorf("the same address: status %d (%s), want 422 with a sentence", taken.status, taken.sentences())
	}
	asked := b.submit(b.open("/account"), "/account/email", url.Values{"email": {"Fresh@example.com"}})
	if !strings.Contains(asked.flash(), "sends no mail") {
		t.Errorf("flash %q, want that nothing is sent here", asked.flash())
	}
	var to string
	p.scan(&to, `select r.address from notifications n join mail_recipients r on r.project_id = n.project_id and r.ref = n.recipient_ref where n.kind = 'owner.email_confirmation'`)
	if to != "fresh@example.com" {
		t.Errorf("the mail goes to %q", to)
	}
	token, err := p.accounts.ChangeEmailLink(p.ctx, p.users["owner"].ID, "fresh@example.com")
	if err != nil {
		t.Fatal(err)
	}
	link := "/confirm/address/" + token
	if page := b.open(link); page.heading() != "Move to this address?" || !page.says("fresh@example.com") {
		t.Errorf("the link opens %q", page.heading())
	}
	if done := b.submit(b.open(link), link, nil); !strings.Contains(done.flash(), "fresh@example.com now") {
		t.Errorf("flash %q", done.flash())
	}
	if spent := b.get(link); spent.status != http.StatusGone {
		t.Errorf("the link again: status %d, want 410", spent.status)
	}
}
