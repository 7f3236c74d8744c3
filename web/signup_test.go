package web_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"entrega/internal/tenant"
	"entrega/web"
)

// journal keeps what the server logs.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

// text is all that was logged.
func (j *journal) text() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

// links are the confirmation links in the log, oldest first.
func (j *journal) links() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var links []string
	for line := range strings.Lines(j.buf.String()) {
		if _, rest, ok := strings.Cut(line, "link="); ok {
			link, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			links = append(links, link)
		}
	}
	return links
}

// withJournal serves the panel anew and keeps its log.
func (p *panel) withJournal() *journal {
	p.t.Helper()
	j := &journal{}
	p.serve("http", func(o *web.Options) { o.Logger = slog.New(slog.NewTextHandler(j, nil)) })
	return j
}

func TestSignUp_ConfirmsTheAddressAndLogsIn(t *testing.T) {
	t.Parallel()
	p := setup(t)
	j := p.withJournal()
	b := p.browser()
	if !b.open("/login").says("Sign up") {
		t.Error("the log-in page does not lead to the sign-up")
	}
	sent := b.submit(b.open("/signup"), "/signup", url.Values{"email": {"Rui@Acme.example"}})
	if sent.heading() != "One step is left" {
		t.Fatalf("heading %q, want that one step is left", sent.heading())
	}
	links := j.links()
	if len(links) != 1 {
		t.Fatalf("%d links in the log, want 1", len(links))
	}
	link := strings.TrimPrefix(links[0], p.url)

	for range 2 { // A scanner that follows the link uses nothing up.
		if page := b.open(link); page.heading() != "Choose a password" || !page.says("rui@acme.example") {
			t.Fatalf("the link opens %q, want the choice of a password", page.heading())
		}
	}
	weak := b.send(b.open(link), link, url.Values{"password": {"short"}})
	if weak.status != http.StatusUnprocessableEntity || !strings.Contains(weak.sentences(), "A password needs") {
		t.Errorf("a weak password: status %d (%s), want 422 with a sentence", weak.status, weak.sentences())
	}
	in := b.submit(b.open(link), link, url.Values{"password": {password}})
	if in.heading() != "Projects" || !strings.Contains(in.flash(), "Your address is confirmed.") {
		t.Errorf("after the confirmation: %q with %q, want the projects and a sentence", in.heading(), in.flash())
	}
	if spent := p.browser().get(link); spent.status != http.StatusGone || spent.heading() != "This link is spent" {
		t.Errorf("the link again: status %d (%s), want 410", spent.status, spent.heading())
	}
	if again := p.browser().post("/login", url.Values{"email": {"rui@acme.example"}, "password": {password}}); again.location != "/" {
		t.Errorf("log-in with the new password: status %d, want 303", again.status)
	}
}

func TestSignUp_SaysTheSameForKnownAddresses(t *testing.T) {
	t.Parallel()
	p := setup(t)
	j := p.withJournal()
	pages := map[string]string{}
	for _, email := range []string{"owner@example.com", "new@example.com", "new@example.com"} {
		b := p.browser()
		answer := b.post("/signup", url.Values{"email": {email}})
		if answer.status != http.StatusSeeOther {
			t.Fatalf("%s: status %d, want 303", email, answer.status)
		}
		pages[email] += answer.location + b.open(answer.location).body
	}
	if pages["owner@example.com"]+pages["owner@example.com"] != pages["new@example.com"] {
		t.Error("the answers for a known and an unknown address differ")
	}
	if n := len(j.links()); n != 2 {
		t.Errorf("%d links in the log, want one for each sign-up of the new address", n)
	}
	bad := p.browser().post("/signup", url.Values{"email": {"no address"}})
	if bad.status != http.StatusUnprocessableEntity || bad.sentences() == "" {
		t.Errorf("no address: status %d (%s), want 422 with a sentence", bad.status, bad.sentences())
	}
}

func TestSignUp_IsThrottled(t *testing.T) {
	t.Parallel()
	p := setup(t)
	var last *page
	for range 40 {
		if last = p.browser().post("/signup", url.Values{"email": {"rui@acme.example"}}); last.status != http.StatusSeeOther {
			break
		}
	}
	if last.status != http.StatusTooManyRequests || last.header.Get("Retry-After") == "" || last.sentences() == "" {
		t.Errorf("status %d, Retry-After %q (%s), want 429 with a sentence", last.status, last.header.Get("Retry-After"), last.sentences())
	}
}

func TestSignUp_ClosedThereIsNone(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.serve("http", func(o *web.Options) { o.SignUpClosed = true })
	b := p.browser()
	if page := b.get("/signup"); page.status != http.StatusNotFound {
		t.Errorf("the page: status %d, want 404", page.status)
	}
	if answer := b.post("/signup", url.Values{"email": {"rui@acme.example"}}); answer.status != http.StatusNotFound {
		t.Errorf("the form: status %d, want 404", answer.status)
	}
	if b.open("/login").says("Sign up") {
		t.Error("the log-in page leads to the sign-up")
	}
	var users int
	p.scan(&users, `select count(*) from users where email = 'rui@acme.example'`)
	if users != 0 {
		t.Error("a user was made all the same")
	}
}

func TestConfirm_AnAdminHandsOverANewLink(t *testing.T) {
	t.Parallel()
	p := setup(t)
	user, err := p.accounts.SignUp(p.ctx, "rui@acme.example", "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	admin := p.as("admin")
	system := admin.open("/admin/system")
	if !system.says("rui@acme.example") {
		t.Fatal("the page System does not list who waits")
	}
	made := admin.send(system, "/admin/people/"+user.ID+"/link", nil)
	if made.status != http.StatusOK || !made.says("It is not shown again") {
		t.Fatalf("status %d (%s), want the link, once", made.status, made.heading())
	}
	link := text(find(made.doc, "pre")[0])
	path, ok := strings.CutPrefix(link, p.url)
	if !ok || !strings.HasPrefix(path, "/confirm/") {
		t.Fatalf("the link is %q, want one of this panel", link)
	}
	b := p.browser()
	if in := b.submit(b.open(path), path, url.Values{"password": {password}}); in.heading() != "Projects" {
		t.Errorf("the link leads to %q, want the projects", in.heading())
	}
	if admin.open("/admin/system").says("rui@acme.example") {
		t.Error("the page System still lists who has confirmed")
	}
	late := admin.post("/admin/people/"+user.ID+"/link", url.Values{"return": {"/admin/system"}})
	if late.location != "/admin/system" || !strings.Contains(admin.open(late.location).flash(), "confirmed already") {
		t.Errorf("a link for who has confirmed: status %d to %q, want a sentence", late.status, late.location)
	}
	var actor string
	p.scan(&actor, `select actor_name from audit_log where action = 'user.make_link' order by id limit 1`)
	if actor != "admin@example.com" {
		t.Errorf("the audit log says that %q made the link, want the admin", actor)
	}
}

func TestSetUp_MakesTheFirstAdminOnce(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.exec(`update users set is_admin = false`)
	token, err := p.accounts.SetUpLink(p.ctx)
	if err != nil || token == "" {
		t.Fatalf("no link to set up with: %v", err)
	}
	unused, err := p.accounts.SetUpLink(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	path := "/setup/" + token
	b := p.browser()
	weak := b.send(b.open(path), path, url.Values{"email": {"first@acme.example"}, "password": {"short"}})
	if weak.status != http.StatusUnprocessableEntity || weak.sentences() == "" {
		t.Errorf("a weak password: status %d (%s), want 422 with a sentence", weak.status, weak.sentences())
	}
	in := b.submit(weak, path, url.Values{"password": {password}}) // The address is still in the form.
	if in.heading() != "Projects" || b.get("/admin/system").status != http.StatusOK {
		t.Errorf("after the set-up: %q, want to be in as the admin", in.heading())
	}
	if user, err := tenant.UserByEmail(p.ctx, p.pool, "first@acme.example"); err != nil || !user.Admin {
		t.Errorf("the user is %+v, %v, want an admin", user, err)
	}
	for _, again := range []string{path, "/setup/" + unused} {
		if spent := p.browser().get(again); spent.status != http.StatusGone || spent.heading() != "Entrega is set up" || spent.leads("To the log-in") != "/login" {
			t.Errorf("a link after the set-up: status %d (%s), want 410 and the way to the log-in", spent.status, spent.heading())
		}
	}
}
