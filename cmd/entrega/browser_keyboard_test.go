package main

import (
	"net/http"
	"slices"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// focused is the name of what has the focus, as it is read out.
const focused = `() => {
	const el = document.activeElement, label = el.labels?.[0]?.innerText ?? el.getAttribute("aria-label") ?? el.innerText ?? "";
	return label.replace(/\s+/g, " ").trim();
}`

func (b *tab) focus() string {
	b.t.Helper()
	return ask[string](b, focused)
}

// tabTo presses Tab until something has the focus, and checks each step on the way: the order is that of the page, and the
// focus is visible.
func (b *tab) tabTo(name string) {
	b.t.Helper()
	var passed []string
	for range 80 {
		b.keys(kb.Tab)
		problem := ask[string](b, `() => {
			const el = document.activeElement, before = window.focusedBefore, r = el.getBoundingClientRect(), style = getComputedStyle(el);
			window.focusedBefore = el;
			if (el === document.body) return "";
			if (before?.isConnected && !(before.compareDocumentPosition(el) & Node.DOCUMENT_POSITION_FOLLOWING)) return "goes back";
			if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2) return "shows no focus";
			if (r.width < 2 || r.bottom < 0 || r.top > innerHeight) return "is out of sight";
			return "";
		}`)
		now := b.focus()
		passed = append(passed, now)
		if problem != "" {
			b.t.Errorf("Tab to %q %s", now, problem)
		}
		if now == name {
			return
		}
	}
	b.t.Fatalf("Tab never comes to %q, only to %q", name, slices.Compact(passed))
}

func (b *tab) focusIs(name string) {
	b.t.Helper()
	b.await("the focus on "+name, `(name) => (`+focused+`)() === name`, name)
}

// byKeyboard never touches the mouse.
func byKeyboard(t *testing.T, in *installation) {
	s := in.openShop("Litware")
	receiver := newCustomer(t, says(http.StatusInternalServerError, ""))
	s.endpoint(receiver.URL, "Litware desk", nil)
	other := newCustomer(t, says(http.StatusInternalServerError, ""))
	s.endpoint(other.URL, "Litware store", nil)
	event := s.publish("order.created", map[string]any{"n": 1})
	tasks := s.settled(event, "retrying", 2)
	newest, older := max(tasks[0].ID, tasks[1].ID), min(tasks[0].ID, tasks[1].ID)

	b := s.visitor()
	b.open("/login?next=" + s.page(""))
	b.tabTo("E-mail")
	b.keys(owner)
	b.tabTo("Password")
	b.keys(browserPassword + kb.Enter)
	b.at(s.page(""))

	b.tabTo("Skip to content")
	b.keys(kb.Enter)
	b.await("the focus to be past the navigation", `() => document.activeElement.id === "main"`)
	b.keys(kb.Tab)
	if !ask[bool](b, `() => document.getElementById("main").contains(document.activeElement)`) {
		t.Errorf("Tab after the skip link goes to %q, which is not content", b.focus())
	}
	b.open(s.page("")) // So that Tab starts at the top.
	b.tabTo("Tasks")
	b.keys(kb.Enter)
	b.at(s.page("/tasks"))

	b.keys("/")
	b.focusIs("Search by id, event or endpoint")
	b.keys("jk?r")
	if got := ask[string](b, `() => document.activeElement.value`); got != "jk?r" {
		t.Errorf("the search field holds %q, want what was typed", got)
	}
	if ask[bool](b, `() => document.querySelector("dialog[open]") !== null`) {
		t.Error("a key typed into a field opened a dialog")
	}
	b.open(s.page("/tasks"))
	b.keys("j")
	b.await("the first row", rowHasFocus, newest)
	b.keys("j")
	b.await("the second row", rowHasFocus, older)
	b.keys("k")
	b.await("the first row again", rowHasFocus, newest)

	b.keys("?")
	b.reads("next row, row before")
	b.keys(kb.Escape)
	b.await("the help to close", noDialog)
	b.await("the row to have its focus back", rowHasFocus, newest)

	receiver.answers(says(http.StatusOK, ""))
	other.answers(says(http.StatusOK, ""))
	b.keys("r")
	b.rowReads(string(newest), "Completed")
	b.await("the focus to stay in the row", rowHasFocus, newest)
	b.keys("j" + kb.Enter)
	b.at(s.page("/tasks/%s", older))
	b.tabTo("Cancel")
	b.keys(kb.Enter)
	b.reads("Cancel this task?")
	b.focusIs("Not now")
	b.keys(kb.Escape)
	b.await("the dialog to close", noDialog)
	b.focusIs("Cancel")
	b.keys("r")
	b.state("Completed")

	b.open(s.page(""))
	b.tabTo(ask[string](b, `() => document.querySelector(".user summary").innerText.replace(/\s+/g, " ").trim()`))
	b.keys(kb.Enter)
	b.await("the menu to open", `() => document.querySelector(".user").open`)
	b.keys(kb.Escape)
	b.await("the menu to close", `() => !document.querySelector(".user").open && document.activeElement.matches(".user summary")`)
}

const (
	rowHasFocus = `(key) => document.activeElement.closest("tr")?.dataset.key === key`
	noDialog    = `() => document.querySelector("dialog[open]") === null`
)
