package web_test

import (
	"net/http"
	"net/url"
	"testing"
)

func TestSettings_AnOwnerRenamesAndChoosesAProfile(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	settings := "/p/" + p.ours.ID + "/settings"
	saved := b.submit(b.open(settings), settings, url.Values{"name": {"  Acme Shops "}, "profile": {"compact"}})
	if saved.flash() != "The settings were saved." {
		t.Errorf("flash %q", saved.flash())
	}
	form := formValues(b.open(settings).form(settings))
	if form.Get("name") != "Acme Shops" || form.Get("profile") != "compact" {
		t.Errorf("the form holds %v, want what was saved", form)
	}
	for name, change := range map[string]url.Values{"no name": {"name": {" "}}, "a profile that is not": {"profile": {"reckless"}}} {
		answer := b.send(b.open(settings), settings, change)
		if answer.status != http.StatusUnprocessableEntity || answer.sentences() == "" {
			t.Errorf("%s: status %d (%s), want 422 with a sentence", name, answer.status, answer.sentences())
		}
	}
	var name, profile string
	p.scan(&name, `select name from projects where id = $1`, p.ours.ID)
	p.scan(&profile, `select profile from projects where id = $1`, p.ours.ID)
	if name != "Acme Shops" || profile != "compact" {
		t.Errorf("stored are %q and %q after refused changes", name, profile)
	}
}

func TestSettings_ARefusedProfileLeavesTheNameAlone(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	settings := "/p/" + p.ours.ID + "/settings"
	b.send(b.open(settings), settings, url.Values{"name": {"Acme Shops"}, "profile": {"reckless"}})
	var name string
	p.scan(&name, `select name from projects where id = $1`, p.ours.ID)
	if name != "Acme Market" {
		t.Errorf("the project is called %q, want the whole form refused", name)
	}
}

func TestSettings_OthersOnlyRead(t *testing.T) {
	t.Parallel()
	p := setup(t)
	settings := "/p/" + p.ours.ID + "/settings"
	for _, name := range []string{"on-call", "viewer"} {
		b := p.as(name)
		if b.open(settings).form(settings) != nil {
			t.Errorf("%s is offered to change the settings", name)
		}
		if answer := b.post(settings, url.Values{"name": {"Mine"}, "profile": {"compact"}}); answer.status != http.StatusForbidden {
			t.Errorf("%s changes the settings: status %d, want 403", name, answer.status)
		}
	}
}

// The page teaches statements; this runs them as they stand there.
func TestSettings_TheSQLOnThePageWorks(t *testing.T) {
	t.Parallel()
	p := setup(t)
	page := p.as("viewer").open("/p/" + p.ours.ID + "/settings")
	var commands []string
	for _, pre := range find(page.doc, "pre") {
		commands = append(commands, text(pre))
	}
	if len(commands) != 2 {
		t.Fatalf("the page shows %q, want a statement and a grant", commands)
	}
	// A role is the whole server's, so all of it is rolled back.
	tx, err := p.pool.Begin(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(p.ctx)
	run := func(sql string) {
		t.Helper()
		if _, err := tx.Exec(p.ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	run(`create role the_application`)
	run(commands[1])
	run(`set local role the_application`)
	run(commands[0])
	run(`reset role`)
	var kind, data string
	if err := tx.QueryRow(p.ctx, `select type, convert_from(data, 'UTF8') from events where project_id = $1`, p.ours.ID).Scan(&kind, &data); err != nil {
		t.Fatal(err)
	}
	if kind != "order.created" || data != `{"orderId":"SO-10482"}` {
		t.Errorf("the event is %s with %s, want the one that the page names", kind, data)
	}
}
