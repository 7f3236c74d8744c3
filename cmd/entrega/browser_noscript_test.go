package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// withoutScripts does with forms and links alone what the others do with scripts.
func withoutScripts(t *testing.T, in *installation) {
	s := in.openShop("Woodgrove")
	receiver := newCustomer(t, says(http.StatusInternalServerError, "away"))
	endpoint := s.endpoint(receiver.URL, "Woodgrove bank", nil)
	gone := newCustomer(t, says(http.StatusGone, ""))
	withdrawn := s.endpoint(gone.URL, "Woodgrove branch", nil)
	event := s.publish("payment.settled", map[string]any{"n": 1})
	var failing string
	s.until("one delivery that fails and one that is given up", func() bool {
		var list struct{ Data []delivery }
		s.call(s.key, "GET", "/v1/deliveries?eventId="+event, nil, &list, http.StatusOK)
		states := map[string]string{}
		for _, d := range list.Data {
			states[d.EndpointID] = d.Status
			if d.EndpointID == endpoint {
				failing = string(d.ID)
			}
		}
		return states[endpoint] == "retrying" && states[withdrawn] == "exhausted"
	})

	b := s.visitor()
	b.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.open(s.page("/tasks"))
	b.fill("E-mail", owner)
	b.fill("Password", browserPassword)
	b.click("Log in")
	b.at(s.page("/tasks"))
	if !ask[bool](b, `() => document.querySelector("[data-fresh]").textContent.startsWith("As of ")`) {
		t.Error("the script of the page ran")
	}

	b.choose("Endpoint", "Woodgrove bank")
	b.click("Filter")
	b.await("the filter in the address", `(id) => new URLSearchParams(location.search).get("endpoint") === id`, endpoint)
	b.rowReads(failing, "Retryable")
	if n := ask[int](b, `() => document.querySelectorAll("tr[data-key]").length`); n != 1 {
		t.Errorf("the filter leaves %d rows, want 1", n)
	}
	receiver.answers(says(http.StatusOK, ""))
	b.click("Retry task " + failing)
	b.reads("Task " + failing + " will be tried again now.")
	s.settledTask(failing, "delivered")
	b.open(s.page("/tasks/%s", failing))
	b.state("Completed")

	gone.answers(says(http.StatusOK, ""))
	b.open(s.page("/endpoints/%s", withdrawn))
	b.click("Reactivate")
	b.reads("is active again")
	b.click("Redeliver 1")
	b.reads("1 delivery will be sent again")
	b.click("Redeliver 1")
	b.reads("on the way again")
	s.until("the redelivery", func() bool { return gone.requests.Load() == 2 })
	if !strings.HasPrefix(b.path(), s.page("/bulk/")) {
		t.Errorf("redeliver leads to %s", b.path())
	}
	b.open(b.path())
	b.state("Completed")
}
