package main

import (
	"fmt"
	"net/http"
	"testing"
)

// TestPanel_People walks what people do in the panel, in a real browser, before the product as they run it. Each test has a
// project of its own.
func TestPanel_People(t *testing.T) {
	t.Parallel()
	town := openTown(t)
	for name, test := range map[string]func(*testing.T, *installation){
		"FailingTask_IsUnderstoodRetriedAndCompletesInView": retryInView,
		"DisabledEndpoint_IsReactivatedAndRedelivered":      redeliver,
		"Admin_ReactivatesAnEndpointOfAnyProject":           reactivateAsAdmin,
		"BulkRetry_AsksForAWordAndRunsToTheEnd":             retryInBulk,
		"OnCall_CannotCreateKeys":                           onCallMakesNoKeys,
		"Viewer_SeesMaskedPayloadsAndCannotAct":             viewerOnlyLooks,
		"Keyboard_DoesAllOfIt":                              byKeyboard,
		"Scripts_AreNotNeeded":                              withoutScripts,
		"Live_KeepsTheFocusedRowAndNewerOnesWait":           keepsTheFocusedRow,
		"Live_CatchesUpWhenARowIsLetGo":                     catchesUp,
		"Live_KeepsWhatIsPressed":                           keepsWhatIsPressed,
		"Live_HiddenTabClosesItsStream":                     sleepsWhenHidden,
		"Live_PollsWithoutAStream":                          asksWithoutAStream,
		"Live_SixTabsLoadAndFollow":                         servesSixTabs,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, town.on(t))
		})
	}
}

func retryInView(t *testing.T, in *installation) {
	s := in.openShop("Northwind")
	receiver := newCustomer(t, says(http.StatusInternalServerError, "the stock service is away"))
	s.endpoint(receiver.URL+"/hooks", "Northwind warehouse", nil)
	event := s.publish("order.created", map[string]any{"orderId": "SO-10482"})
	task := string(s.settled(event, "retrying", 1)[0].ID)

	b := s.visitor()
	b.open(s.page("/tasks"))
	b.at("/login")
	b.fill("E-mail", owner)
	b.fill("Password", browserPassword)
	b.click("Log in")
	b.at(s.page("/tasks"))
	b.click("Overview")
	b.at(s.page(""))
	b.reads("Northwind warehouse")
	b.reads("failing since")
	b.click("Tasks")
	b.rowReads(task, "Retryable")
	b.rowReads(task, "500 in")
	b.click("order.created")
	b.at(s.page("/tasks/%s", task))
	b.reads("Attempt 1 of 18 answered 500.")
	b.reads("the stock service is away")
	b.reads("SO-10482")

	b.mark()
	receiver.answers(says(http.StatusOK, "thanks"))
	b.click("Retry now")
	b.state("Completed")
	b.await("the attempt that was made by hand", rowHas, "2", "manual")
	b.unchanged()
	if n := receiver.requests.Load(); n != 2 {
		t.Errorf("the receiver got %d requests, want 2", n)
	}
	if b.offers("Retry now") {
		t.Error("a completed task offers a retry")
	}
}

func redeliver(t *testing.T, in *installation) {
	s := in.openShop("Contoso")
	receiver := newCustomer(t, says(http.StatusGone, "this hook was removed"))
	endpoint := s.endpoint(receiver.URL, "Contoso returns", nil)
	discarded := s.publish("order.returned", map[string]any{"n": 1})
	s.settled(discarded, "exhausted", 1)
	missed := s.publish("order.returned", map[string]any{"n": 2})

	b := s.browser(owner)
	b.open(s.page("/endpoints/%s", endpoint))
	b.state("Disabled")
	b.reads("410")
	b.reads("1 delivery missed while it was disabled")
	receiver.answers(says(http.StatusOK, ""))
	b.click("Reactivate")
	b.reads("The endpoint is active again.")
	b.reads("reactivated the endpoint")
	b.click("Redeliver 2")
	b.reads("2 deliveries will be sent again: 1 discarded, 1 missed.")
	b.click("Redeliver 2")
	b.state("Completed")
	b.reads("2 of 2 redelivered.")
	for _, event := range []string{discarded, missed} {
		s.settled(event, "delivered", 1)
	}
	b.open(s.page("/endpoints/%s", endpoint))
	b.state("Healthy")
}

func reactivateAsAdmin(t *testing.T, in *installation) {
	s := in.openShop("Fabrikam")
	receiver := newCustomer(t, says(http.StatusGone, ""))
	endpoint := s.endpoint(receiver.URL, "Fabrikam ledger", nil)
	s.settled(s.publish("invoice.paid", map[string]any{"n": 1}), "exhausted", 1)
	receiver.answers(says(http.StatusOK, ""))

	b := s.browser(admin)
	b.open("/admin/disabled")
	b.rowReads(endpoint, "Fabrikam ledger")
	b.click("Reactivate Fabrikam ledger")
	b.await("the row to be gone", `(key) => document.querySelector("tr[data-key=" + key + "]") === null`, endpoint)
	b.open(s.page("/endpoints/%s", endpoint))
	b.reads("reactivated the endpoint")
	b.reads(admin)
	s.settled(s.publish("invoice.paid", map[string]any{"n": 2}), "delivered", 1)
	b.state("Healthy")
}

func retryInBulk(t *testing.T, in *installation) {
	const many = 500
	s := in.openShop("Tailspin")
	receiver := newCustomer(t, says(http.StatusBadRequest, "unknown field"))
	endpoint := s.endpoint(receiver.URL, "Tailspin feed", map[string]any{"maxInFlight": 64})
	items := make([]map[string]any, many)
	for i := range items {
		items[i] = map[string]any{"type": "price.changed", "data": map[string]any{"sku": fmt.Sprintf("A-%d", i)}}
	}
	s.call(s.key, "POST", "/v1/events/batch", map[string]any{"events": items}, nil, http.StatusAccepted)

	b := s.browser(owner)
	b.open(s.page("/tasks?state=discarded"))
	b.await("a task for each event", tabCounts, "All", many)
	s.call(s.key, "POST", "/v1/endpoints/"+endpoint+"/disable", map[string]any{"reason": "every answer is 400"}, nil, http.StatusOK)
	b.await("all of them to be discarded", tabCounts, "Discarded", many)
	receiver.answers(says(http.StatusOK, ""))
	s.call(s.key, "POST", "/v1/endpoints/"+endpoint+"/reactivate", map[string]any{"reason": "mended"}, nil, http.StatusOK)
	b.open(s.page("/tasks?state=discarded"))
	b.click("Retry all 500")
	b.reads("500 tasks will be retried")

	b.fill("Type retry to confirm", "yes")
	b.excuse("status of 422")
	b.click("Retry 500")
	b.reads("Type the word retry to go on.")
	b.fill("Type retry to confirm", "retry")
	b.click("Retry 500")
	b.await("a progress bar", `() => document.querySelector("progress")?.max === 500`)
	b.state("Completed")
	b.reads("500 of 500 retried.")
	if done := ask[float64](b, `() => document.querySelector("progress").position`); done != 1 {
		t.Errorf("the progress bar stands at %.2f, want 1", done)
	}
	b.click("View tasks")
	b.at(s.page("/tasks"))
	b.await("all of them to be delivered", tabCounts, "Completed", many)
	b.await("none to be left discarded", `() => [...document.querySelectorAll(".tabs a")].some((a) => a.innerText.replace(/\s+/g, " ").trim() === "Discarded 0")`)
	if got := receiver.requests.Load(); got < many {
		t.Errorf("the receiver got %d requests, want one per event at least", got)
	}
}

// tabCounts tells whether the tab of a state counts so many tasks at least.
const tabCounts = `(state, least) => [...document.querySelectorAll(".tabs a")].some((a) => a.innerText.trim().startsWith(state) && Number(a.querySelector(".n").textContent.replaceAll(",", "")) >= least)`
