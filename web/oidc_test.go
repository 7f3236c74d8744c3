package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"entrega/internal/tenant"
	"entrega/web"
)

// withIssuer serves the panel anew, with an identity provider.
func (p *panel) withIssuer(adjust ...func(*web.Options)) *issuer {
	p.t.Helper()
	i := newIssuer(p.t)
	p.serve("http", append(adjust, func(o *web.Options) {
		o.OIDC = web.OIDC{Issuer: i.URL, ClientID: clientID, ClientSecret: clientSecret, Name: "Acme SSO"}
	})...)
	return i
}

// goTo follows one redirect, to the panel or to the issuer.
func (b *browser) goTo(address string) *page {
	b.t.Helper()
	return b.get(strings.TrimPrefix(address, b.base))
}

// visitIssuer goes to the identity provider as far as it sends the browser back, and returns that address.
func (b *browser) visitIssuer(next string) string {
	b.t.Helper()
	begin := b.get("/login/oidc?" + url.Values{"next": {next}}.Encode())
	if begin.status != http.StatusSeeOther {
		b.t.Fatalf("begin: status %d (%s), want 303 to the provider", begin.status, begin.sentences())
	}
	resp, err := b.http.Get(begin.location)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		b.t.Fatalf("at the provider: status %d, want it to send the browser back", resp.StatusCode)
	}
	return resp.Header.Get("Location")
}

// sentences are what the page complains of.
func (p *page) sentences() string {
	var all []string
	for n := range p.doc.Descendants() {
		if attr(n, "role") == "alert" || strings.HasPrefix(attr(n, "class"), "problem") {
			all = append(all, text(n))
		}
	}
	return strings.Join(all, " ")
}

func TestOIDC_LogsInAnExistingUserAndGoesOn(t *testing.T) {
	t.Parallel()
	p := setup(t)
	i := p.withIssuer()
	i.set("email", "Viewer@Example.com")
	b := p.browser()
	login := b.open("/login?next=/p/" + p.ours.ID + "/tasks")
	link := ""
	for _, a := range find(login.doc, "a") {
		if text(a) == "Continue with Acme SSO" {
			link = attr(a, "href")
		}
	}
	if want := "/login/oidc?next=%2Fp%2F" + p.ours.ID + "%2Ftasks"; link != want {
		t.Fatalf("the log-in page leads to %q, want %q", link, want)
	}
	end := b.goTo(b.visitIssuer("/p/" + p.ours.ID + "/tasks"))
	if end.status != http.StatusSeeOther || end.location != "/p/"+p.ours.ID+"/tasks" {
		t.Fatalf("status %d to %q (%s), want 303 to the page that was asked for", end.status, end.location, end.sentences())
	}
	if got := b.open(end.location).heading(); got != "Tasks" {
		t.Errorf("heading %q, want Tasks", got)
	}
	var name, issuer string
	p.scan(&name, `select actor_name from audit_log where action = 'user.log_in' order by id desc limit 1`)
	p.scan(&issuer, `select detail ->> 'issuer' from audit_log where action = 'user.log_in' order by id desc limit 1`)
	if name != "viewer@example.com" || issuer != i.URL {
		t.Errorf("the audit log has a log-in of %q by %q, want the viewer by the issuer", name, issuer)
	}
}

func TestOIDC_MakesAUserWithoutAPassword(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.withIssuer()
	b := p.browser()
	if end := b.goTo(b.visitIssuer("/")); end.status != http.StatusSeeOther || end.location != "/" {
		t.Fatalf("status %d to %q (%s), want 303 to the first page", end.status, end.location, end.sentences())
	}
	user, err := tenant.UserByEmail(p.ctx, p.pool, "rui@acme.example")
	if err != nil || user.HasPassword || user.Admin || user.EmailConfirmedAt == nil {
		t.Errorf("the user is %+v, %v, want one without password and rights, confirmed", user, err)
	}
	account := b.open("/account")
	if !account.says("Acme SSO") || account.form("/account/password") != nil {
		t.Error("the account page does not say where the user logs in, or asks for a password that there is not")
	}
}

func TestOIDC_ConfirmsAPendingSignUp(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.withIssuer()
	waiting, err := p.accounts.SignUp(p.ctx, "rui@acme.example", "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	b := p.browser()
	b.goTo(b.visitIssuer("/"))
	user, err := tenant.UserByID(p.ctx, p.pool, waiting.ID)
	if err != nil || user.EmailConfirmedAt == nil {
		t.Errorf("the user is %+v, %v, want it confirmed", user, err)
	}
}

func TestOIDC_WithoutSignUpOnlyExistingUsersComeIn(t *testing.T) {
	t.Parallel()
	p := setup(t)
	i := p.withIssuer(func(o *web.Options) { o.SignUpClosed = true })
	b := p.browser()
	end := b.goTo(b.visitIssuer("/"))
	if end.status != http.StatusForbidden || !strings.Contains(end.sentences(), "There is no account for your address here.") {
		t.Errorf("status %d (%s), want a sentence about the account", end.status, end.sentences())
	}
	i.set("email", "owner@example.com")
	if end := b.goTo(b.visitIssuer("/")); end.status != http.StatusSeeOther || end.location != "/" {
		t.Errorf("a user who exists: status %d (%s), want to be let in", end.status, end.sentences())
	}
}

func TestOIDC_RefusesTokensThatAreNotForThisLogIn(t *testing.T) {
	t.Parallel()
	p := setup(t)
	i := p.withIssuer()
	const untrusted = "cannot be trusted"
	for name, test := range map[string]struct {
		change func(i *issuer)
		says   string
	}{
		"wrong nonce":        {func(i *issuer) { i.set("nonce", "another") }, untrusted},
		"no nonce":           {func(i *issuer) { i.set("nonce", nil) }, untrusted},
		"wrong audience":     {func(i *issuer) { i.set("aud", "another-client") }, untrusted},
		"several audiences":  {func(i *issuer) { i.set("aud", []string{clientID, "another-client"}) }, untrusted},
		"another party":      {func(i *issuer) { i.set("azp", "another-client") }, untrusted},
		"wrong issuer":       {func(i *issuer) { i.set("iss", "https://id.evil.example") }, untrusted},
		"expired":            {func(i *issuer) { i.set("exp", time.Now().Add(-time.Minute).Unix()) }, untrusted},
		"not yet":            {func(i *issuer) { i.set("nbf", time.Now().Add(time.Hour).Unix()) }, untrusted},
		"another's key":      {func(i *issuer) { i.wrongKey = true }, untrusted},
		"no signature":       {func(i *issuer) { i.plain = true }, untrusted},
		"unverified e-mail":  {func(i *issuer) { i.set("email_verified", false) }, "does not say that your e-mail address is verified"},
		"unmentioned e-mail": {func(i *issuer) { i.set("email_verified", nil) }, "does not say that your e-mail address is verified"},
		"no e-mail":          {func(i *issuer) { i.set("email", nil) }, "does not say that your e-mail address is verified"},
		"no address":         {func(i *issuer) { i.set("email", "owner") }, "names an e-mail address that cannot be used here"},
	} {
		i.change(func() { i.claims, i.wrongKey, i.plain = map[string]any{"email": "owner@example.com"}, false, false })
		test.change(i)
		b := p.browser()
		end := b.goTo(b.visitIssuer("/"))
		if end.status != http.StatusForbidden || !strings.Contains(end.sentences(), test.says) {
			t.Errorf("%s: status %d (%s), want 403 that says %q", name, end.status, end.sentences(), test.says)
		}
		if answer := b.get("/projects"); !strings.HasPrefix(answer.location, "/login") {
			t.Errorf("%s: a page opens afterwards: status %d", name, answer.status)
		}
	}
	var logIns int
	p.scan(&logIns, `select count(*) from audit_log where action = 'user.log_in'`)
	if logIns != 0 {
		t.Errorf("%d log-ins are recorded, want none", logIns)
	}
}

func TestOIDC_AcceptsAVerificationThatIsWrittenAsText(t *testing.T) {
	t.Parallel()
	p := setup(t)
	i := p.withIssuer()
	i.change(func() { i.claims["email_verified"], i.inParams = "true", true })
	b := p.browser()
	if end := b.goTo(b.visitIssuer("/")); end.status != http.StatusSeeOther || end.location != "/" {
		t.Errorf("status %d (%s), want to be let in", end.status, end.sentences())
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.asked != 1 {
		t.Errorf("the provider was asked %d times for one code, want once", i.asked)
	}
}

func TestOIDC_TheAnswerMustComeBackToTheBrowserThatAsked(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.withIssuer()
	const says = "This log-in was begun in another browser, or too long ago."
	refused := func(what string, answer *page) {
		t.Helper()
		if answer.status != http.StatusForbidden || !strings.Contains(answer.sentences(), says) {
			t.Errorf("%s: status %d to %q (%s), want 403 that says so", what, answer.status, answer.location, answer.sentences())
		}
	}
	attacker, victim := p.browser(), p.browser()
	planted := attacker.visitIssuer("/")
	refused("a browser that asked nothing", victim.goTo(planted))
	victim.visitIssuer("/")
	refused("a browser that asked something else", victim.goTo(planted))

	b := p.browser()
	back := b.visitIssuer("/")
	mixedUp := strings.Replace(back, "iss=", "iss=https%3A%2F%2Fid.evil.example&x=", 1)
	refused("another provider's answer", b.goTo(mixedUp))
	refused("the right answer after a wrong one", b.goTo(back))

	late := p.browser()
	back = late.visitIssuer("/")
	var minutes float64
	p.scan(&minutes, `select extract(epoch from max(expiry) - now()) / 60 from sessions where ended_at is null`)
	if minutes > 10 {
		t.Errorf("the session waits %.0f minutes for the answer, want 10 at most", minutes)
	}
	p.exec(`update sessions set expiry = now() - interval '1 second'`)
	refused("an answer after the session's end", late.goTo(back))
}

func TestOIDC_ACodeWorksOnce(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.withIssuer()
	b := p.browser()
	back := b.visitIssuer("/projects")
	if end := b.goTo(back); end.status != http.StatusSeeOther || end.location != "/projects" {
		t.Fatalf("status %d (%s), want to be let in", end.status, end.sentences())
	}
	if again := b.goTo(back); again.status != http.StatusSeeOther || again.location != "/" {
		t.Errorf("the same page again: status %d to %q, want 303 to the first page, for whoever is logged in", again.status, again.location)
	}
	if again := p.browser().goTo(back); again.status != http.StatusForbidden {
		t.Errorf("the same page in another browser: status %d, want 403", again.status)
	}
}

func TestOIDC_SaysWhenTheProviderDeclinesOrIsDown(t *testing.T) {
	t.Parallel()
	p := setup(t)
	i := p.withIssuer()
	b := p.browser()
	i.change(func() { i.down = true })
	down := b.get("/login/oidc")
	if down.status != http.StatusServiceUnavailable || !strings.Contains(down.sentences(), "Acme SSO does not answer as it should right now.") || down.form("/login") == nil {
		t.Errorf("status %d (%s), want 503 with the log-in page", down.status, down.sentences())
	}
	if strings.Contains(down.body, "127.0.0.1") || strings.Contains(down.body, "Bad Gateway") {
		t.Error("the page shows what the provider is or said")
	}

	i.change(func() { i.down = false })
	back := b.visitIssuer("/")
	i.change(func() { i.down = true })
	if end := b.goTo(back); end.status != http.StatusServiceUnavailable || !strings.Contains(end.sentences(), "does not answer") {
		t.Errorf("down at the exchange: status %d (%s), want 503 with a sentence", end.status, end.sentences())
	}

	i.change(func() { i.down = false })
	state, err := url.Parse(b.visitIssuer("/"))
	if err != nil {
		t.Fatal(err)
	}
	declined := b.get("/login/oidc/callback?" + url.Values{"error": {"access_denied"}, "state": {state.Query().Get("state")}}.Encode())
	if declined.status != http.StatusForbidden || !strings.Contains(declined.sentences(), "Acme SSO did not let you in.") {
		t.Errorf("status %d (%s), want 403 that says so", declined.status, declined.sentences())
	}
}

func TestOIDC_GoesThroughTheDoor(t *testing.T) {
	t.Parallel()
	p := setup(t)
	i := newIssuer(t)
	p.serve("http", func(o *web.Options) {
		o.OIDC = web.OIDC{Issuer: strings.Replace(i.URL, "127.0.0.1", "127.0.0.2", 1), ClientID: clientID, ClientSecret: clientSecret}
	})
	answer := p.browser().get("/login/oidc")
	if answer.status != http.StatusServiceUnavailable {
		t.Errorf("an issuer at an address that is not permitted: status %d, want 503", answer.status)
	}
}

func TestOIDC_NotConfiguredThereIsNone(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.browser()
	for _, path := range []string{"/login/oidc", "/login/oidc/callback?code=1&state=2"} {
		if answer := b.get(path); answer.status != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, answer.status)
		}
	}
	if b.open("/login").says("Continue with") {
		t.Error("the log-in page offers a provider")
	}
}

func TestOIDC_SettingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for _, o := range []web.OIDC{{Issuer: "id.example.com", ClientID: "a", ClientSecret: "b"}, {Issuer: "https://id.example.com", ClientSecret: "b"}, {Issuer: "https://id.example.com", ClientID: "a"}} {
		_, err := web.New(web.Options{Pool: p.pool, Client: p.client, Accounts: p.accounts, Endpoints: p.endpoints, Mailer: p.mailer, Door: p.door, OIDC: o, PublicURL: &url.URL{Scheme: "https", Host: "entrega.example.com"}})
		if err == nil {
			t.Errorf("New takes %+v", o)
		}
	}
}
