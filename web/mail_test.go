package web_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"entrega/mailer"
	"entrega/web"
)

func TestMail_ListsAndShowsOneWithItsStory(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n := p.start()
	owner := p.as("owner")
	empty := owner.open("/p/" + p.ours.ID + "/mail")
	if !empty.says("No mail yet") || !empty.says("Mail is captured") || !empty.says("/v1/notifications") {
		t.Errorf("an empty list says %q", text(empty.doc))
	}
	id := p.newMail(p.ours.ID, "bounce@simulate.invalid")
	n.await("the feedback", func() bool {
		var told bool
		p.scan(&told, `select feedback is not null from notifications where id = $1`, id)
		return told
	})
	list := owner.open("/p/" + p.ours.ID + "/mail?q=SO-1")
	if row := list.rows()[id]; !strings.Contains(row, "SO-1") || !strings.Contains(row, "b•••@simulate.invalid") || !strings.Contains(row, "Bounced") {
		t.Errorf("the row reads %q", row)
	}
	if found := owner.open("/p/" + p.ours.ID + "/mail?q=Bounce@simulate.invalid"); found.rows()[id] == "" {
		t.Error("the whole address does not find it")
	}
	if other := owner.open("/p/" + p.ours.ID + "/mail?q=SO-2"); !other.says("No mail matches") {
		t.Error("another order finds it")
	}

	page := owner.open("/p/" + p.ours.ID + "/mail/" + id)
	for _, want := range []string{"Simulated by the address. The mail was kept here; nothing was sent.", "Queued", "Attempt 1: captured", "no provider told it", "bounce@simulate.invalid"} {
		if !page.says(want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if frames := find(page.doc, "iframe"); len(frames) != 1 || !has(frames[0], "sandbox") || attr(frames[0], "sandbox") != "" || attr(frames[0], "src") != "/p/"+p.ours.ID+"/mail/"+id+"/html" {
		t.Errorf("the page has %d frames, want one that is sandboxed wholly", len(frames))
	}
	for view, want := range map[string]string{"text": "A new order.", "headers": "Message-ID", "source": "Content-Type: multipart/alternative", "nonsense": "Open it alone"} {
		if side := owner.open("/p/" + p.ours.ID + "/mail/" + id + "?view=" + view); !side.says(want) {
			t.Errorf("its %s lacks %q", view, want)
		}
	}
	html := owner.get("/p/" + p.ours.ID + "/mail/" + id + "/html")
	if policy := html.header.Get("Content-Security-Policy"); html.body != "<p>A new order.</p>" || !strings.HasPrefix(policy, "sandbox; default-src 'none'") {
		t.Errorf("the HTML is %q under %q", html.body, policy)
	}
	source := owner.get("/p/" + p.ours.ID + "/mail/" + id + "/source")
	if !strings.Contains(source.body, "Message-ID: <"+id+"@") || source.header.Get("Content-Type") != "message/rfc822" {
		t.Errorf("the source is %q", source.body)
	}

	seen := p.as("viewer").open("/p/" + p.ours.ID + "/mail/" + id)
	if seen.says("bounce@simulate.invalid") || seen.says("A new order.") || seen.says("New order") || len(seen.actions()) > 1 && strings.Contains(strings.Join(seen.actions(), " "), "send-again") {
		t.Errorf("a viewer sees %q", text(seen.doc))
	}

	again := owner.submit(page, "/p/"+p.ours.ID+"/mail/"+id+"/send-again", nil)
	if !strings.Contains(again.flash(), "This is the new mail") {
		t.Errorf("sent again: %q", again.flash())
	}
}

func TestMail_StoryHasTheFarSidesWords(t *testing.T) {
	t.Parallel()
	p := setup(t)
	answers := make(chan int, 2)
	answers <- http.StatusUnprocessableEntity
	answers <- http.StatusAccepted
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		code := <-answers
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"id":"m-%d","said":"about buyer@acme.example"}`, code)
	}))
	t.Cleanup(server.Close)
	p.useMailer(mailer.Settings{Kind: mailer.API, From: "Shop <mail@shop.example>", API: mailer.APISettings{Shape: mailer.ShapeGeneric, URL: server.URL}})
	n := p.start()
	for _, want := range []string{`It said: {"id":"m-422","said":"about (recipient)"}`, `The far side answered: {"id":"m-202","said":"about (recipient)"}`} {
		id := p.newMail(p.ours.ID, "buyer@acme.example")
		path := "/p/" + p.ours.ID + "/mail/" + id
		n.await("the answer", func() bool {
			var ended bool
			p.scan(&ended, `select accepted_at is not null or ended_reason is not null from notifications where id = $1`, id)
			return ended
		})
		if page := p.as("owner").open(path); !page.says(want) {
			t.Errorf("the page lacks %q: %q", want, text(page.doc))
		}
		if page := p.as("viewer").open(path); page.says("said") || len(find(page.doc, "iframe")) != 0 {
			t.Errorf("a viewer sees %q", text(page.doc))
		}
	}
}

func TestMail_SuppressionsAreRemovedWithAReason(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n := p.start()
	id := p.newMail(p.ours.ID, "reject@simulate.invalid")
	n.await("the suppression", func() bool {
		var there bool
		p.scan(&there, `select exists (select from mail_suppressions where notification_id = $1)`, id)
		return there
	})
	owner := p.as("owner")
	page := owner.open("/p/" + p.ours.ID + "/suppressions")
	if !page.says("reject@simulate.invalid") || !page.says("Hard bounce") {
		t.Fatalf("the page says %q", text(page.doc))
	}
	action := ""
	for _, a := range page.actions() {
		if strings.HasSuffix(a, "/remove") {
			action = a
		}
	}
	done := owner.submit(page, action, url.Values{"reason": {"it was a typo"}})
	if !strings.Contains(done.flash(), "was removed") || !done.says("Nobody is suppressed") {
		t.Errorf("after the removal: %q", done.flash())
	}
}

func TestMail_ErasesARecipient(t *testing.T) {
	t.Parallel()
	p := setup(t)
	id := p.newMail(p.ours.ID, "buyer@acme.example")
	owner := p.as("owner")
	list := owner.open("/p/" + p.ours.ID + "/mail")
	if nobody := owner.submit(list, "/p/"+p.ours.ID+"/recipients/erase", url.Values{"address": {"other@acme.example"}}); !strings.Contains(nobody.flash(), "No mail of this project") {
		t.Errorf("an unknown address: %q", nobody.flash())
	}
	done := owner.submit(owner.open("/p/"+p.ours.ID+"/mail"), "/p/"+p.ours.ID+"/recipients/erase", url.Values{"address": {"buyer@acme.example"}})
	if !strings.Contains(done.flash(), "1 mail") || !done.says("erased") {
		t.Errorf("erased: %q", done.flash())
	}
	if page := owner.open("/p/" + p.ours.ID + "/mail/" + id); page.says("A new order.") || !page.says("Content removed") {
		t.Errorf("the mail still says %q", text(page.doc))
	}
}

func TestMail_TransportIsSetTestedAndCleared(t *testing.T) {
	t.Parallel()
	p := setup(t)
	owner, path := p.as("owner"), "/p/"+p.ours.ID+"/settings/mail"
	form := url.Values{"kind": {"smtp"}, "from": {"Shop <mail@shop.example>"}, "host": {"smtp.example.com"}, "port": {"587"}, "security": {"starttls"},
		"username": {"shop"}, "password": {"top-secret"}, "auth": {"plain"}}
	for field, value := range map[string]string{"host": "10.0.0.1", "port": "22", "from": "nobody"} {
		bad := url.Values{}
		for k, v := range form {
			bad[k] = v
		}
		bad.Set(field, value)
		if answer := owner.send(owner.open(path), path, bad); answer.status != http.StatusUnprocessableEntity || answer.sentences() == "" {
			t.Errorf("%s %s: status %d (%s), want 422 with a sentence", field, value, answer.status, answer.sentences())
		}
	}
	saved := owner.submit(owner.open(path), path, form)
	if !strings.Contains(saved.flash(), "was saved") || !saved.says("smtp.example.com:587") || strings.Contains(saved.body, "top-secret") {
		t.Errorf("saved: %q", saved.flash())
	}
	form.Set("password", "")
	form.Set("port", "465")
	owner.submit(owner.open(path), path, form)
	settings, own, err := p.mailer.SettingsOf(p.ctx, p.pool, p.ours.ID)
	if err != nil || !own || settings.SMTP.Password != "top-secret" || settings.SMTP.Port != 465 {
		t.Errorf("the settings are %+v, %v", settings.SMTP, err)
	}
	test := owner.submit(owner.open(path), path+"/test", url.Values{"to": {"owner@example.com"}})
	if test.heading() != "A test from Entrega" {
		t.Errorf("the test leads to %q", test.heading())
	}
	cleared := owner.submit(owner.open(path), path+"/clear", nil)
	if !strings.Contains(cleared.flash(), "installation's transport") || !cleared.says("Mail is captured") {
		t.Errorf("cleared: %q", cleared.flash())
	}
}

// zone answers a domain check.
type zone map[string][]string

func (z zone) LookupTXT(_ context.Context, name string) ([]string, error) {
	if found, ok := z[name]; ok {
		return found, nil
	}
	return nil, &net.DNSError{Name: name, IsNotFound: true}
}

func (z zone) LookupMX(_ context.Context, name string) ([]*net.MX, error) {
	return nil, &net.DNSError{Name: name, IsNotFound: true}
}

func TestMail_DomainCheckSaysWhatToPutIntoDNS(t *testing.T) {
	t.Parallel()
	p := setup(t)
	m, err := mailer.NewMailer(mailer.MailerOptions{Pool: p.pool, Client: p.client, Box: p.box, Door: p.door, Logger: quiet, Installation: mailer.Settings{Kind: mailer.SMTP,
		From: "Shop <mail@shop.example>", SMTP: mailer.SMTPSettings{Host: "smtp.example.com"}}})
	if err != nil {
		t.Fatal(err)
	}
	p.serve("http", func(o *web.Options) {
		o.Mailer, o.Resolver = m, zone{"shop.example": {"v=spf1 a:smtp.example.com -all"}}
	})
	page := p.as("owner").open("/p/" + p.ours.ID + "/settings/mail?check=1")
	for _, want := range []string{"v=spf1 a:smtp.example.com -all", "_dmarc.shop.example", "v=DMARC1; p=none", "takes no mail"} {
		if !page.says(want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestMail_OfTheInstallationIsTheAdmins(t *testing.T) {
	t.Parallel()
	p := setup(t)
	id := p.newMail("", "somebody@acme.example")
	admin := p.as("admin")
	if list := admin.open("/admin/account-mail"); list.rows()[id] == "" {
		t.Errorf("the list is %v", list.rows())
	}
	if page := admin.open("/admin/account-mail/" + id); !page.says("Waits for its turn.") || !page.says("somebody@acme.example") {
		t.Errorf("the mail says %q", text(page.doc))
	}
	if answer := p.as("owner").get("/admin/account-mail/" + id); answer.status != http.StatusForbidden {
		t.Errorf("an owner is answered %d", answer.status)
	}
}

func TestMail_AboutAccessIsForThoseWhoDecide(t *testing.T) {
	t.Parallel()
	p := setup(t)
	guest := p.as("stranger")
	guest.submit(guest.open("/projects"), "/projects/access", url.Values{"project": {p.ours.ID}, "reason": {"I take over in December."}})
	var id string
	p.scan(&id, `select id from notifications where kind = 'owner.notify' and project_id = $1`, p.ours.ID)
	path := "/p/" + p.ours.ID + "/mail"
	if page := p.as("owner").open(path + "/" + id + "?view=text"); !page.says("I take over in December.") || !page.says("stranger@example.com asks to join") {
		t.Errorf("an owner sees %q", text(page.doc))
	}
	for _, name := range []string{"on-call", "viewer"} {
		b := p.as(name)
		for _, page := range []*page{b.open(path), b.open(path + "/" + id), b.open(path + "/" + id + "?view=text"), b.open(path + "/" + id + "?view=source")} {
			if page.says("stranger@") || page.says("December") {
				t.Errorf("%s sees %q", name, text(page.doc))
			}
		}
		if answer := b.get(path + "/" + id + "/source"); answer.status != http.StatusForbidden {
			t.Errorf("%s gets the source: %d", name, answer.status)
		}
	}
}

func TestMail_CapturedAnswerToARequestIsNotCalledSent(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n := p.start()
	guest, owner, team := p.as("stranger"), p.as("owner"), "/p/"+p.ours.ID+"/team"
	guest.submit(guest.open("/projects"), "/projects/access", url.Values{"project": {p.ours.ID}})
	var id string
	p.scan(&id, `select id from access_requests where state = 'pending'`)
	owner.submit(owner.open(team), team+"/requests/"+id+"/approve", url.Values{"role": {"viewer"}})
	n.await("the answer", func() bool {
		var replied bool
		p.scan(&replied, `select replied_at is not null from access_requests where id = $1`, id)
		return replied
	})
	if row := owner.open(team).rows()[id]; !strings.Contains(row, "captured") || !strings.Contains(row, "tell them yourself") || strings.Contains(row, "accepted") {
		t.Errorf("the row reads %q", row)
	}
}
