package main

import (
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Lists here are narrowed to deliveries: a list that has shown the fan-out already would hold the delivery back as a newer row.

// listsTask tells whether a list shows a task.
const listsTask = `(key) => document.querySelector("tr[data-key=" + CSS.escape(key) + "]") !== null`

// keepsTheFocusedRow holds a row, first with the focus and then with a selection, while everything changes around it.
func keepsTheFocusedRow(t *testing.T, in *installation) {
	s := in.openShop("Adatum")
	first, second := newCustomer(t, says(http.StatusInternalServerError, "")), newCustomer(t, says(http.StatusInternalServerError, ""))
	s.endpoint(first.URL, "Adatum one", nil)
	s.endpoint(second.URL, "Adatum two", nil)
	tasks := s.settled(s.publish("order.created", map[string]any{"n": 1}), "retrying", 2)
	hand, free := string(max(tasks[0].ID, tasks[1].ID)), string(min(tasks[0].ID, tasks[1].ID))

	b := s.browser(owner)
	b.open(s.page("/tasks?kind=webhook.deliver"))
	b.keys("j")
	b.await("the newest row in hand", rowHasFocus, hand)
	b.await("a mark on that row", `(key) => { const row = document.querySelector("tr[data-key=" + CSS.escape(key) + "]"); row.inHand = true; return true; }`, hand)

	first.answers(says(http.StatusOK, ""))
	second.answers(says(http.StatusOK, ""))
	for _, task := range []string{hand, free} {
		s.call(s.key, "POST", "/v1/deliveries/"+task+"/retry", nil, nil, http.StatusAccepted)
	}
	b.rowReads(free, "Completed")
	s.settledTask(hand, "delivered")
	published := s.publish("order.created", map[string]any{"n": 2})
	later := s.settled(published, "delivered", 2)
	b.reads("2 newer: show")
	if !ask[bool](b, `(key) => { const row = document.activeElement.closest("tr"); return row?.dataset.key === key && row.inHand === true && row.innerText.includes("Retryable"); }`, hand) {
		t.Errorf("the row in hand was replaced, or lost its focus to %q", b.focus())
	}
	if ask[bool](b, listsTask, string(later[0].ID)) {
		t.Error("a newer row pushed itself in")
	}

	b.click("2 newer: show")
	for _, d := range later {
		b.rowReads(string(d.ID), "Completed")
	}
	b.rowReads(hand, "Completed")
	if ask[bool](b, `() => document.querySelector(".newer") !== null`) {
		t.Error("the button for newer rows stays after its work")
	}
}

// catchesUp lets go of a row that was held, and sees what became of it.
func catchesUp(t *testing.T, in *installation) {
	s := in.openShop("Lucerne")
	receiver := newCustomer(t, says(http.StatusInternalServerError, ""))
	s.endpoint(receiver.URL, "Lucerne", nil)
	task := string(s.settled(s.publish("order.created", map[string]any{"n": 1}), "retrying", 1)[0].ID)

	b := s.browser(owner)
	b.open(s.page("/tasks?kind=webhook.deliver"))
	b.rowReads(task, "Retryable")
	b.await("a selection in the row", `(key) => { getSelection().selectAllChildren(document.querySelector("tr[data-key=" + CSS.escape(key) + "] td")); return !getSelection().isCollapsed; }`, task)
	receiver.answers(says(http.StatusOK, ""))
	s.call(s.key, "POST", "/v1/deliveries/"+task+"/retry", nil, nil, http.StatusAccepted)
	b.await("the count beside it", tabCounts, "Completed", 1)
	if !ask[bool](b, rowHas, task, "Retryable") {
		t.Error("the row with the selection was replaced")
	}
	b.await("the selection to end", `() => { getSelection().removeAllRanges(); return true; }`)
	b.rowReads(task, "Completed")
}

// keepsWhatIsPressed changes the page while a link on it is pressed, after something else was done there.
func keepsWhatIsPressed(t *testing.T, in *installation) {
	s := in.openShop("Wingtip")
	receiver := newCustomer(t, says(http.StatusOK, ""))
	endpoint := s.endpoint(receiver.URL, "Wingtip toys", nil)

	b := s.browser(owner)
	b.open(s.page("/endpoints/%s", endpoint))
	b.click("Send test")
	b.reads("Completed")
	b.reads("Healthy")
	release := b.holdDown("Edit")
	s.call(s.key, "PATCH", "/v1/endpoints/"+endpoint, map[string]any{"description": "Wingtip games"}, nil, http.StatusOK)
	s.publish("order.created", map[string]any{"n": 1})
	b.reads("1 newer: show") // By now the page has heard of both.
	release()
	b.at(s.page("/endpoints/%s/edit", endpoint))
}

// sleepsWhenHidden puts another tab in front.
func sleepsWhenHidden(t *testing.T, in *installation) {
	s := in.openShop("Trey")
	receiver := newCustomer(t, says(http.StatusOK, ""))
	s.endpoint(receiver.URL, "Trey Research", nil)

	b := s.browser(owner)
	b.open(s.page("/tasks?kind=webhook.deliver"))
	b.awaitIn("the stream", func() (bool, error) { return b.openStreams() == 1, nil })
	front := newTab(t, s.url, b, chromedp.WithNewWindow(false))
	front.open(s.page("/tasks?kind=webhook.deliver"))
	b.await("the first tab to be hidden", `() => document.hidden`)
	b.awaitIn("its stream to close", func() (bool, error) { return b.openStreams() == 0, nil })
	asked := b.partsAsked()

	task := string(s.settled(s.publish("order.created", map[string]any{"n": 1}), "delivered", 1)[0].ID)
	front.rowReads(task, "Completed")
	if b.partsAsked() != asked || ask[bool](b, listsTask, task) {
		t.Error("the hidden tab went on asking")
	}

	b.do(command(page.BringToFront, cdp.Empty{}))
	b.rowReads(task, "Completed")
	b.awaitIn("the stream again", func() (bool, error) { return b.openStreams() == 1, nil })
}

// asksWithoutAStream blocks the stream as a proxy that buffers does.
func asksWithoutAStream(t *testing.T, in *installation) {
	s := in.openShop("Margie")
	receiver := newCustomer(t, says(http.StatusOK, ""))
	s.endpoint(receiver.URL, "Margie's Travel", nil)

	b := s.browser(owner)
	b.excuse("ERR_BLOCKED_BY_CLIENT")
	b.do(command(network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{{URLPattern: "*://*:*/p/*/stream*", Block: true}}}))
	b.open(s.page("/tasks?kind=webhook.deliver"))
	task := string(s.settled(s.publish("order.created", map[string]any{"n": 1}), "delivered", 1)[0].ID)
	b.rowReads(task, "Completed")
	if n := b.openStreams(); n != 0 {
		t.Errorf("%d streams are open, want them blocked", n)
	}
}

// servesSixTabs opens as many pages as a browser has connections to one host over HTTP/1.1.
func servesSixTabs(t *testing.T, in *installation) {
	s := in.openShop("Alpine")
	receiver := newCustomer(t, says(http.StatusOK, ""))
	s.endpoint(receiver.URL, "Alpine Ski House", nil)
	tabs := []*tab{s.browser(owner)}
	for range 5 {
		tabs = append(tabs, newTab(t, s.url, tabs[0]))
	}
	for _, b := range tabs {
		b.open(s.page("/tasks?kind=webhook.deliver"))
		b.await("the script", `() => document.querySelector("[data-fresh]").textContent.startsWith("Live")`)
	}
	task := string(s.settled(s.publish("order.created", map[string]any{"n": 1}), "delivered", 1)[0].ID)
	for _, b := range tabs {
		b.rowReads(task, "Completed")
	}
	tabs[0].open(s.page("/tasks/%s", task)) // There is a connection left.
}
