package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/web"
)

// verdict is what an answer means for somebody's rights.
type verdict string

const (
	letIn        verdict = "let in"
	askedToLogIn verdict = "asked to log in"
	refused      verdict = "refused"
	hidden       verdict = "not there"
	broken       verdict = "broken"
)

// target says whose things a request names.
type target string

const (
	own     target = "own"                         // our project, our id
	foreign target = "another project's"           // their project, their id
	mixed   target = "ours with another project's" // our project, their id
	noID    target = "ours with a missing"         // our project, an id that nobody has
	noSuch  target = "a missing project's"         // a project that nobody has, our id
)

// ofInstallation are ids that belong to no project and are the same in every one.
func ofInstallation(what string) bool {
	return what == "periodic" || what == "queues" || what == "people" || what == "account-mail"
}

// TestMatrix_EveryRouteForEveryRoleAndId walks every route of the panel as everybody, with ids of one's own, of another
// project, and of nobody.
func TestMatrix_EveryRouteForEveryRoleAndId(t *testing.T) {
	t.Parallel()
	p := setup(t)
	m := &matrix{mine: p.newThings(p.ours), others: p.newThings(p.theirs), routes: p.server.Routes()}
	in := func(role tenant.Role) tenant.Actor {
		return tenant.Actor{Kind: tenant.ActorUser, ProjectID: p.ours.ID, Role: role}
	}
	for name, actor := range map[string]tenant.Actor{
		"anonymous": {},
		"viewer":    in(tenant.RoleViewer),
		"on-call":   in(tenant.RoleOnCall),
		"owner":     in(tenant.RoleOwner),
		"admin":     {Kind: tenant.ActorUser, Admin: true},
		"stranger":  {Kind: tenant.ActorUser, ProjectID: p.theirs.ID, Role: tenant.RoleOwner},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := *p
			mine.t = t
			v := &visitor{matrix: m, panel: &mine, name: name, actor: actor, browser: mine.browser()}
			if name != "anonymous" {
				v.session = p.users[name].ID
				v.browser = mine.as(name)
			}
			for _, r := range m.routes {
				v.walk(r)
			}
		})
	}
}

// matrix is what all visitors share.
type matrix struct {
	mine, others things
	routes       []web.Route
}

// visitor is somebody who walks the routes.
type visitor struct {
	*matrix
	*panel
	name    string
	actor   tenant.Actor
	browser *browser
	// session is the user whose sessions are this visitor's own, "" for none.
	session string
}

// walk asks for a route with every kind of id that it can have.
func (v *visitor) walk(r web.Route) {
	if r.Path == "/logout" && v.session != "" {
		return // It would end the walk; log-out has a test of its own.
	}
	targets := []target{own}
	_, what := fill(r.Path, "", v.mine)
	if strings.Contains(r.Path, ":project") {
		targets = append(targets, foreign, noSuch)
	}
	if what != "" {
		targets = append(targets, noID)
	}
	if what != "" && what != "sessions" && !ofInstallation(what) {
		targets = append(targets, mixed)
	}
	if what == "sessions" {
		targets = append(targets, foreign)
	}
	for _, t := range targets {
		want := v.want(r, what, t)
		got, status := v.ask(r, v.address(r, what, t, want))
		if r.Access == "anyone" && got == hidden {
			got = letIn // A page that this installation has not, the same for everybody.
		}
		if got != want {
			v.t.Errorf("%s, %s id: %s %s: %s (%d), want %s", v.name, t, r.Method, r.Path, got, status, want)
		}
	}
}

// address fills a route. What may change something gets things of its own, so that no visitor spoils them for another.
func (v *visitor) address(r web.Route, what string, t target, want verdict) string {
	ours, theirs := v.mine, v.others
	if r.Method == http.MethodPost && want == letIn {
		ours, theirs = v.newThings(v.ours), v.newThings(v.theirs)
	}
	if what == "sessions" {
		ours, theirs = things{what: v.newSession(v.session)}, things{what: v.newSession(store.NewID("user"))}
	}
	if what != "" && ours[what] == "" {
		v.t.Fatalf("%s %s: there is none of %q to ask for: newThings must make one", r.Method, r.Path, what)
	}
	project, all := v.ours.ID, ours
	switch t {
	case foreign:
		project, all = v.theirs.ID, theirs
	case mixed:
		all = theirs
	case noID:
		all = things{what: missing(ours[what])}
	case noSuch:
		project = "project_00000000000000000000000000"
	}
	path, _ := fill(r.Path, project, all)
	return path
}

// missing makes an id of the same form that nobody has.
func missing(id string) string {
	if strings.Trim(id, "0123456789") == "" {
		return "9223372036854775807"
	}
	kind, _, _ := strings.Cut(id, "_")
	return kind + "_00000000000000000000000000"
}

// want is what the rules of 4-panel.md and 6-safety.md say.
func (v *visitor) want(r web.Route, what string, t target) verdict {
	switch {
	case r.Access == "anyone":
		return letIn
	case v.session == "":
		return askedToLogIn
	case r.Access == "logged in":
		return found(t)
	case r.Access == "installation" && !v.actor.Admin:
		return refused
	case r.Access == "installation":
		return foundByAdmin(t, what)
	case t == noSuch:
		return hidden
	}
	project := v.ours.ID
	if t == foreign {
		project = v.theirs.ID
	}
	if v.actor.ProjectID != project && !v.actor.Admin {
		return hidden
	}
	needs := r.Needs
	if strings.HasSuffix(r.Path, "/members/:id/remove") {
		needs = tenant.PermManageTeam // Everybody may leave; these are other people.
	}
	if !v.actor.In(project).Can(needs) {
		return refused
	}
	if t == foreign {
		return letIn // It is this visitor's own project, or that of an admin like any other.
	}
	return found(t)
}

func found(t target) verdict {
	if t == own {
		return letIn
	}
	return hidden
}

// foundByAdmin knows that to an admin another project's things are as good as any.
func foundByAdmin(t target, what string) verdict {
	if t == own || t == foreign {
		return letIn
	}
	return hidden
}

// ask sends a request, as a browser would, and reads what the answer means.
func (v *visitor) ask(r web.Route, path string) (verdict, int) {
	v.t.Helper()
	ctx, cancel := context.WithCancel(v.t.Context())
	defer cancel() // This also ends a stream.
	var body io.Reader
	if r.Method == http.MethodPost {
		body = strings.NewReader(url.Values{"role": {"viewer"}}.Encode())
	}
	if strings.HasSuffix(path, "/bulk") {
		path += "?action=retry"
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, v.browser.base+path, body)
	if err != nil {
		v.t.Fatal(err)
	}
	if body != nil {
		req.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Sec-Fetch-Site": {"same-origin"}}
	}
	resp, err := v.browser.http.Do(req)
	if err != nil {
		v.t.Fatal(fmt.Errorf("%s %s: %w", r.Method, r.Path, err))
	}
	defer resp.Body.Close()
	if !strings.HasSuffix(r.Path, "/stream") {
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			v.t.Fatal(fmt.Errorf("%s %s: %w", r.Method, r.Path, err))
		}
	}
	switch status := resp.StatusCode; {
	case status >= http.StatusInternalServerError:
		return broken, status
	case status == http.StatusNotFound:
		return hidden, status
	case status == http.StatusForbidden:
		return refused, status
	case status == http.StatusSeeOther && strings.HasPrefix(resp.Header.Get("Location"), "/login") && r.Path != "/logout":
		return askedToLogIn, status
	default:
		return letIn, status
	}
}

// TestMatrix_NoFormComesFromAnotherSite sends every form as another site would make the browser of somebody who may do all.
func TestMatrix_NoFormComesFromAnotherSite(t *testing.T) {
	t.Parallel()
	p := setup(t)
	ours := p.newThings(p.ours)
	ours["sessions"] = p.newSession(p.users["admin"].ID)
	b := p.as("admin")
	for _, r := range p.server.Routes() {
		if r.Method != http.MethodPost {
			continue
		}
		path, _ := fill(r.Path, p.ours.ID, ours)
		for _, header := range []http.Header{{"Sec-Fetch-Site": {"cross-site"}}, {"Origin": {"https://evil.example"}}} {
			answer := b.do(r.Method, path, url.Values{}, header)
			if answer.status != http.StatusForbidden || !answer.says("This form was sent from another site.") {
				t.Errorf("%s with %v: status %d (%s), want 403", r.Path, header, answer.status, answer.heading())
			}
		}
	}
}

// newSession makes a session of a user, and returns its id.
func (p *panel) newSession(user string) string {
	p.t.Helper()
	id := tenant.SessionID(store.NewID("token"))
	p.exec(`insert into sessions (token, data, expiry, user_id) values ($1, '', now() + interval '1 hour', $2)`, id, user)
	return id
}
