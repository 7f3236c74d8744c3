package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"entrega/internal/tenant"
)

func TestKeys_AreShownOnceAndRevoked(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	keys := "/p/" + p.ours.ID + "/keys"
	made := b.send(b.open(keys), keys, url.Values{"name": {"checkout"}, "scope": {"publish", "read"}})
	if made.status != http.StatusOK || made.heading() != "API key created" {
		t.Fatalf("status %d (%s), want the key", made.status, made.heading())
	}
	secret := text(find(made.doc, "pre")[0])
	actor, err := tenant.AuthenticateKey(p.ctx, p.pool, secret)
	if err != nil || actor.ProjectID != p.ours.ID || !actor.Can(tenant.PermPublish) || !actor.Can(tenant.PermSee) || actor.Can(tenant.PermManageEndpoints) {
		t.Fatalf("the key %q is %+v, %v, want one that publishes and reads", secret, actor, err)
	}
	if made.header.Get("Cache-Control") != "no-store" {
		t.Error("the page with the key may be kept by a cache")
	}
	list := b.open(keys)
	if list.says(secret) || !list.says("checkout") || !list.says("by owner@example.com") {
		t.Error("the list shows the key itself, or not what there is to know")
	}
	revoked := b.submit(list, keys+"/"+actor.ID+"/revoke", nil)
	if !strings.Contains(revoked.flash(), "The key checkout was revoked.") || revoked.form(keys+"/"+actor.ID+"/revoke") != nil || !revoked.says("revoked") {
		t.Errorf("flash %q, want the key in the list, revoked", revoked.flash())
	}
	if _, err := tenant.AuthenticateKey(p.ctx, p.pool, secret); err == nil {
		t.Error("the key still works")
	}
}

func TestKeys_TheFormSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	keys := "/p/" + p.ours.ID + "/keys"
	for name, form := range map[string]url.Values{"no scope": {"name": {"checkout"}, "scope": nil}, "no name": {"name": {""}, "scope": {"read"}}, "a scope that is not": {"name": {"x"}, "scope": {"root"}}} {
		answer := b.send(b.open(keys), keys, form)
		if answer.status != http.StatusUnprocessableEntity || answer.sentences() == "" {
			t.Errorf("%s: status %d (%s), want 422 with a sentence", name, answer.status, answer.sentences())
		}
	}
	var n int
	p.scan(&n, `select count(*) from api_keys`)
	if n != 0 {
		t.Errorf("%d keys were made, want none", n)
	}
}

func TestKeys_OnlyOwnersMakeThem(t *testing.T) {
	t.Parallel()
	p := setup(t)
	keys := "/p/" + p.ours.ID + "/keys"
	for _, name := range []string{"on-call", "viewer"} {
		b := p.as(name)
		if b.open(keys).form(keys) != nil {
			t.Errorf("%s is offered to make a key", name)
		}
		if answer := b.post(keys, url.Values{"name": {"mine"}, "scope": {"manage"}}); answer.status != http.StatusForbidden {
			t.Errorf("%s makes a key: status %d, want 403", name, answer.status)
		}
	}
}
