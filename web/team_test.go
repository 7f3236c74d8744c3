package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"entrega/internal/tenant"
)

// roleOf is the stored role of somebody in our project, "" for none.
func (p *panel) roleOf(name string) string {
	p.t.Helper()
	var role string
	p.scan(&role, `select coalesce((select role from members where project_id = $1 and user_id = $2), '')`, p.ours.ID, p.users[name].ID)
	return role
}

// memberForm is where a member of our project is acted on.
func (p *panel) memberForm(name, action string) string {
	return "/p/" + p.ours.ID + "/team/members/" + p.users[name].ID + "/" + action
}

func TestTeam_AnOwnerChangesRolesAndRemoves(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	team := "/p/" + p.ours.ID + "/team"
	page := b.open(team)
	for _, want := range []string{"owner@example.com (you)", "on-call@example.com", "viewer@example.com"} {
		if !page.says(want) {
			t.Errorf("the page does not list %q", want)
		}
	}
	changed := b.submit(page, p.memberForm("viewer", "role"), url.Values{"role": {"on-call"}})
	if got := p.roleOf("viewer"); got != "on_call" || changed.flash() != "viewer@example.com is on-call now." {
		t.Errorf("role %q, flash %q", got, changed.flash())
	}
	wrong := b.post(p.memberForm("viewer", "role"), url.Values{"role": {"king"}, "return": {team}})
	if flash := b.open(wrong.location).flash(); !strings.Contains(flash, "Choose owner, on-call or viewer.") {
		t.Errorf("a role that there is not: flash %q", flash)
	}
	gone := p.as("viewer")
	removed := b.submit(b.open(team), p.memberForm("viewer", "remove"), nil)
	if got := p.roleOf("viewer"); got != "" || !strings.Contains(removed.flash(), "The member was removed") {
		t.Errorf("role %q, flash %q, want nobody", got, removed.flash())
	}
	if answer := gone.get(team); answer.status != http.StatusNotFound {
		t.Errorf("the page for who was removed: status %d, want 404", answer.status)
	}
}

func TestTeam_TheLastOwnerStays(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	team := "/p/" + p.ours.ID + "/team"
	const says = "This is the last owner. Make someone else an owner first."
	for _, action := range []string{"remove", "role"} {
		answer := b.submit(b.open(team), p.memberForm("owner", action), url.Values{"role": {"viewer"}})
		if got := p.roleOf("owner"); got != "owner" || answer.flash() != says || answer.heading() != "Team" {
			t.Errorf("%s: role %q, flash %q on %q, want the last owner to stay and the page to say why", action, got, answer.flash(), answer.heading())
		}
	}
	b.submit(b.open(team), p.memberForm("on-call", "role"), url.Values{"role": {"owner"}})
	left := b.submit(b.open(team), p.memberForm("owner", "remove"), nil)
	if got := p.roleOf("owner"); got != "" || left.heading() != "Projects" || left.flash() != "You left the project Acme Market." {
		t.Errorf("role %q, %q with %q, want to have left", got, left.heading(), left.flash())
	}
}

func TestTeam_EachRoleSeesWhatItMay(t *testing.T) {
	t.Parallel()
	p := setup(t)
	team := "/p/" + p.ours.ID + "/team"
	if _, err := tenant.RequestAccess(p.ctx, p.pool, tenant.ActorOf(p.users["stranger"]), p.ours.ID, "I audit you."); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ buttons, emails, requests bool }{
		"owner": {true, true, true}, "admin": {true, true, true}, "on-call": {false, true, false}, "viewer": {false, false, false},
	} {
		page := p.as(name).open(team)
		if got := page.form(p.memberForm("owner", "role")) != nil; got != want.buttons {
			t.Errorf("%s: a form to change roles: %t, want %t", name, got, want.buttons)
		}
		if got := page.says("owner@example.com"); got != want.emails {
			t.Errorf("%s: sees the owner's address: %t, want %t", name, got, want.emails)
		}
		if got := page.says("I audit you."); got != want.requests {
			t.Errorf("%s: sees who asks to join: %t, want %t", name, got, want.requests)
		}
		if _, member := map[string]bool{"on-call": true, "viewer": true}[name]; member && page.form(p.memberForm(name, "remove")) == nil {
			t.Errorf("%s: cannot leave", name)
		}
	}
	left := p.as("viewer")
	if answer := left.submit(left.open(team), p.memberForm("viewer", "remove"), nil); answer.heading() != "Projects" || p.roleOf("viewer") != "" {
		t.Errorf("a viewer who leaves is at %q", answer.heading())
	}
}

func TestAccess_IsAskedForAndDecided(t *testing.T) {
	t.Parallel()
	p := setup(t)
	team := "/p/" + p.ours.ID + "/team"
	guest, owner := p.as("stranger"), p.as("owner")

	chooser := guest.open("/projects")
	asked := guest.submit(chooser, "/projects/access", url.Values{"project": {p.ours.ID}, "reason": {"I take over in December."}})
	if !strings.Contains(asked.flash(), "Your request waits") || !asked.says("pending") {
		t.Errorf("flash %q, want the request in the list, pending", asked.flash())
	}
	if asked.says("Acme Market") {
		t.Error("who asks learns the name of the project")
	}
	twice := guest.send(asked, "/projects/access", url.Values{"project": {p.ours.ID}})
	if twice.status != http.StatusUnprocessableEntity || !twice.says("You have asked already.") {
		t.Errorf("asking twice: status %d, want 422 with a sentence", twice.status)
	}
	none := guest.send(asked, "/projects/access", url.Values{"project": {"project_none"}})
	if none.status != http.StatusUnprocessableEntity || !none.says("There is no project with this id.") {
		t.Errorf("a project that is not: status %d, want 422 with a sentence", none.status)
	}

	page := owner.open(team)
	var id string
	p.scan(&id, `select id from access_requests where user_id = $1`, p.users["stranger"].ID)
	if row := page.rows()[id]; !strings.Contains(row, "stranger@example.com") || !strings.Contains(row, "I take over in December.") || !strings.Contains(row, "pending") {
		t.Errorf("the row reads %q", row)
	}
	declined := owner.submit(page, team+"/requests/"+id+"/decline", nil)
	if row := declined.rows()[id]; !strings.Contains(row, "declined") || !strings.Contains(row, "by owner@example.com") || declined.form(team+"/requests/"+id+"/approve") != nil {
		t.Errorf("after the refusal the row reads %q", row)
	}
	if guest.get(team).status != http.StatusNotFound || !guest.open("/projects").says("declined") {
		t.Error("who was refused is in, or is not told")
	}

	guest.submit(guest.open("/projects"), "/projects/access", url.Values{"project": {p.ours.ID}})
	p.scan(&id, `select id from access_requests where user_id = $1 and state = 'pending'`, p.users["stranger"].ID)
	p.exec(`update access_requests set mail_state = 'failed' where id = $1`, id)
	failed := owner.open(team)
	if row := failed.rows()[id]; !strings.Contains(row, "failed") || !strings.Contains(row, "Tell them yourself.") {
		t.Errorf("with a failed mail the row reads %q", row)
	}
	approved := owner.submit(failed, team+"/requests/"+id+"/approve", url.Values{"role": {"on-call"}})
	if approved.flash() != "stranger@example.com is in the project now, as on-call." || p.roleOf("stranger") != "on_call" {
		t.Errorf("flash %q, role %q", approved.flash(), p.roleOf("stranger"))
	}
	late := owner.post(team+"/requests/"+id+"/decline", url.Values{"return": {team}})
	if flash := owner.open(late.location).flash(); !strings.Contains(flash, "This request was approved already, by owner@example.com.") {
		t.Errorf("a second decision: flash %q", flash)
	}
	if heading := guest.open(team).heading(); heading != "Team" {
		t.Errorf("who was let in sees %q", heading)
	}
}
