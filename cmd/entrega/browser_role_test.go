package main

import (
	"net/http"
	"strings"
	"testing"
)

// stock gives a shop something of most kinds, and returns the id of its failing task. What a viewer must not see is in each
// place where it could be shown.
func (s *shop) stock(receiver *customer) (task string) {
	s.t.Helper()
	endpoint := s.endpoint(receiver.URL+"/hooks/secret-path", "", map[string]any{"eventTypes": []string{"order.created"}, "headers": map[string]string{"X-Token": "secret-header"}})
	task = string(s.settled(s.publish("order.created", map[string]any{"orderId": "secret-order"}), "retrying", 1)[0].ID)
	gone := newCustomer(s.t, says(http.StatusGone, "secret-answer"))
	s.endpoint(gone.URL+"/hooks/secret-path", "Withdrawn", map[string]any{"eventTypes": []string{"order.withdrawn"}})
	s.settled(s.publish("order.withdrawn", map[string]any{"orderId": "secret-order"}), "exhausted", 1)
	s.call(s.key, "POST", "/v1/endpoints/"+endpoint+"/rotate-secret", map[string]any{"overlapHours": 24}, nil, http.StatusOK)
	s.call(s.key, "POST", "/v1/notifications", map[string]any{"orderId": "SO-1", "to": "secret-person@acme.example", "subject": "secret-subject", "text": "secret-text"}, nil,
		http.StatusAccepted)
	return task
}

func onCallMakesNoKeys(t *testing.T, in *installation) {
	s := in.openShop("Proseware")
	receiver := newCustomer(t, says(http.StatusInternalServerError, "secret-answer"))
	task := s.stock(receiver)
	s.hire(onCall, "on-call")

	b := s.browser(onCall)
	b.excuse("status of 403")
	b.open(s.page("/keys"))
	b.reads("Made with the project")
	for _, name := range []string{"New API key", "Revoke"} {
		if b.offers(name) {
			t.Errorf("on-call staff are offered %s", name)
		}
	}
	if status := b.forge(s.page("/keys"), "name=mine&scope=manage"); status != http.StatusForbidden {
		t.Errorf("a forged new key: status %d, want 403", status)
	}
	b.open(s.page("/keys"))
	if n := ask[int](b, `() => document.querySelectorAll("tbody tr").length`); n != 1 {
		t.Errorf("there are %d keys, want the one that the owner made", n)
	}

	b.open(s.page("/tasks/%s", task))
	b.reads("secret-order")
	receiver.answers(says(http.StatusOK, ""))
	b.click("Retry now")
	b.state("Completed")
}

func viewerOnlyLooks(t *testing.T, in *installation) {
	s := in.openShop("Wingtip")
	task := s.stock(newCustomer(t, says(http.StatusInternalServerError, "secret-answer")))
	s.hire(viewer, "viewer")

	boss := s.browser(owner)
	offered := map[string]bool{}
	boss.walk([]string{s.page(""), s.page("/tasks/%s", task)}, func(string) {
		for _, action := range boss.actions() {
			offered[action] = strings.HasPrefix(action, s.page("/"))
		}
	})

	b := s.browser(viewer)
	own := map[string]bool{}
	b.walk([]string{s.page(""), s.page("/tasks/%s", task)}, func(path string) {
		if shown := ask[string](b, `() => document.documentElement.outerHTML`); strings.Contains(shown, "secret-") {
			_, rest, _ := strings.Cut(shown, "secret-")
			t.Errorf("%s shows a viewer secret-%s", path, rest[:min(len(rest), 20)])
		}
		for _, action := range b.actions() {
			own[action] = strings.HasPrefix(action, s.page("/"))
		}
	})
	b.open(s.page("/tasks/%s", task))
	b.reads("The body is masked for viewers.")

	b.excuse("status of 403")
	forged := 0
	for action, here := range offered {
		if !here || own[action] {
			continue
		}
		forged++
		if status := b.forge(action, "role=owner&name=x&scope=manage&type=a&data=1&confirm=retry"); status != http.StatusForbidden {
			t.Errorf("a viewer's forged POST %s: status %d, want 403", action, status)
		}
	}
	for action, here := range own {
		if here && !(strings.Contains(action, "/team/members/") && strings.HasSuffix(action, "/remove")) {
			t.Errorf("a viewer is offered %s", action)
		}
	}
	for _, what := range []string{"/retry", "/cancel", "/redeliver", "/reactivate", "/rotate-secret", "/keys", "/settings", "/events/test", "/endpoints", "/delete", "/acknowledge"} {
		found := false
		for action := range offered {
			found = found || strings.HasSuffix(action, what)
		}
		if !found {
			t.Errorf("the owner's pages offer nothing that ends in %s, so it was not forged", what)
		}
	}
	t.Logf("%d actions forged", forged)
}
