package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"entrega/internal/tenant"
	"entrega/web"
)

// ask sends a request to a route, as a browser would: with what some forms cannot do without.
func (b *browser) ask(r web.Route, path string) *page {
	b.t.Helper()
	if strings.HasSuffix(path, "/bulk") {
		path += "?action=retry"
	}
	if r.Method == http.MethodPost {
		return b.post(path, url.Values{"role": {"viewer"}})
	}
	return b.get(path)
}

func TestRoutes_AskStrangersToLogIn(t *testing.T) {
	t.Parallel()
	p := setup(t)
	ours := p.newThings(p.ours)
	b := p.browser()
	for _, r := range p.server.Routes() {
		if r.Access == "anyone" {
			continue
		}
		path, _ := fill(r.Path, p.ours.ID, ours)
		if answer := b.ask(r, path); answer.status != http.StatusSeeOther || !strings.HasPrefix(answer.location, "/login") {
			t.Errorf("%s %s: status %d to %q, want 303 to the log-in", r.Method, r.Path, answer.status, answer.location)
		}
	}
}

func TestRoutes_AnotherProjectDoesNotExist(t *testing.T) {
	t.Parallel()
	p := setup(t)
	ours, theirs := p.newThings(p.ours), p.newThings(p.theirs)
	b := p.as("owner")
	for _, r := range p.server.Routes() {
		if r.Access != "in project" {
			continue
		}
		foreign, _ := fill(r.Path, p.theirs.ID, theirs)
		missing, what := fill(r.Path, "project_00000000000000000000000000", ours)
		paths := []string{foreign, missing}
		if what != "" { // Our project with an id of theirs, and with one that nobody has.
			mixed, _ := fill(r.Path, p.ours.ID, theirs)
			none, _ := fill(r.Path, p.ours.ID, things{"tasks": "9223372036854775807", "endpoints": "endpoint_none",
				"events": "event_none", "bulk": "bulk_none", "keys": "key_none", "members": "user_none", "requests": "request_none"})
			paths = append(paths, mixed, none)
		}
		for _, path := range paths {
			if answer := b.ask(r, path); answer.status != http.StatusNotFound {
				t.Errorf("%s %s: status %d (%s), want 404", r.Method, path, answer.status, answer.heading())
			}
		}
	}
}

func TestRoutes_EachRoleMayDoWhatItsPermissionsSay(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for name, actor := range map[string]tenant.Actor{
		"owner":   {Kind: tenant.ActorUser, ProjectID: p.ours.ID, Role: tenant.RoleOwner},
		"on-call": {Kind: tenant.ActorUser, ProjectID: p.ours.ID, Role: tenant.RoleOnCall},
		"viewer":  {Kind: tenant.ActorUser, ProjectID: p.ours.ID, Role: tenant.RoleViewer},
		"admin":   {Kind: tenant.ActorUser, ProjectID: p.ours.ID, Admin: true},
	} {
		b := p.as(name)
		for _, r := range p.server.Routes() {
			if strings.HasSuffix(r.Path, "/stream") || r.Access != "in project" && r.Access != "installation" {
				continue
			}
			path, _ := fill(r.Path, p.ours.ID, p.newThings(p.ours))
			needs := r.Needs
			if strings.HasSuffix(r.Path, "/members/:id/remove") {
				needs = tenant.PermManageTeam // Everybody may leave; this is about somebody else.
			}
			allowed := r.Access == "installation" && actor.Admin || r.Access == "in project" && actor.Can(needs)
			answer := b.ask(r, path)
			switch {
			case !allowed && answer.status != http.StatusForbidden:
				t.Errorf("%s: %s %s: status %d, want 403", name, r.Method, r.Path, answer.status)
			case allowed && (answer.status == http.StatusForbidden || answer.status == http.StatusNotFound || answer.status >= 500):
				t.Errorf("%s: %s %s: status %d (%s), want to be let in", name, r.Method, r.Path, answer.status, answer.heading())
			}
		}
	}
}

func TestRoutes_AnswerHeadAndRefuseOtherMethods(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	path := "/p/" + p.ours.ID + "/tasks"
	head := b.do(http.MethodHead, path, nil, nil)
	if head.status != http.StatusOK || head.body != "" {
		t.Errorf("HEAD: status %d with %d bytes, want 200 with none", head.status, len(head.body))
	}
	put := b.do(http.MethodPut, path, url.Values{}, http.Header{"Sec-Fetch-Site": {"same-origin"}})
	if put.status != http.StatusMethodNotAllowed || !strings.Contains(put.header.Get("Allow"), http.MethodGet) {
		t.Errorf("PUT: status %d, Allow %q, want 405 with the methods that are", put.status, put.header.Get("Allow"))
	}
	if answer := b.get("/p/" + p.ours.ID + "/nothing"); answer.status != http.StatusNotFound || answer.heading() != "Not found" {
		t.Errorf("an unknown page: status %d (%s), want 404", answer.status, answer.heading())
	}
}

func TestForms_FromAnotherSiteAreRefused(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b, ours := p.as("owner"), p.newThings(p.ours)
	path := "/p/" + p.ours.ID + "/tasks/" + ours["tasks"] + "/cancel"
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}},
		{"Sec-Fetch-Site": {"same-site"}},
		{"Origin": {"https://evil.example"}},
		{"Origin": {"null"}},
	} {
		if answer := b.do(http.MethodPost, path, url.Values{}, header); answer.status != http.StatusForbidden {
			t.Errorf("with %v: status %d, want 403", header, answer.status)
		}
	}
	var state string
	p.scan(&state, `select state from river_job where id = $1::bigint`, ours["tasks"])
	if state != "available" {
		t.Errorf("the task is %s, want it untouched", state)
	}
	if answer := b.do(http.MethodPost, path, url.Values{}, http.Header{"Origin": {p.url}}); answer.status != http.StatusSeeOther {
		t.Errorf("from the panel itself: status %d, want 303", answer.status)
	}
}

func TestForms_TooLargeOrMalformedAreRefused(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	large := b.post("/p/"+p.ours.ID+"/events/test", url.Values{"type": {"order.created"}, "data": {strings.Repeat("x", 2<<20)}})
	if large.status != http.StatusRequestEntityTooLarge {
		t.Errorf("2 MiB: status %d, want 413", large.status)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/projects", strings.NewReader("name=%zz"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Sec-Fetch-Site": {"same-origin"}}
	resp, err := b.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a malformed form: status %d, want 400", resp.StatusCode)
	}
}

func TestAnswers_CarryTheSecurityHeaders(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	for _, path := range []string{"/login", "/projects", "/p/" + p.ours.ID + "/tasks", "/nothing", "/livez"} {
		h := b.get(path).header
		for name, want := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	page := b.open("/projects")
	if got := page.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q, want no-store", got)
	}
	for n := range page.doc.Descendants() {
		if attr(n, "style") != "" || n.Data == "style" || strings.HasPrefix(attr(n, "href"), "javascript:") || n.Data == "script" && n.FirstChild != nil {
			t.Errorf("the page has %s, which its policy forbids", n.Data)
		}
	}
}

func TestRequestID_KeepsTheCallersWhenItIsWellFormed(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.browser()
	for given, kept := range map[string]bool{"req-0123456789": true, "a b": false, "<script>": false, "": false, strings.Repeat("x", 65): false} {
		got := b.do(http.MethodGet, "/login", nil, http.Header{"X-Request-Id": {given}}).header.Get("X-Request-Id")
		if (got == given) != kept || got == "" {
			t.Errorf("X-Request-Id %q came back as %q, want kept: %t", given, got, kept)
		}
	}
}
