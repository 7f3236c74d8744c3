package main

import (
	"slices"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// whereIs finds what can be clicked by the name that a person reads or hears, in the dialog where one is open, and returns the
// middle of it once nothing covers it.
const whereIs = `(name, kinds) => {
	const named = (el) => (el.getAttribute("aria-label") ?? el.innerText ?? el.value).replace(/\s+/g, " ").trim();
	const place = document.querySelector("dialog[open]") ?? document;
	for (const el of place.querySelectorAll(kinds)) {
		if (named(el) !== name || !el.checkVisibility()) continue;
		el.scrollIntoView({ block: "nearest", behavior: "instant" });
		const r = el.getClientRects()[0], x = r.x + r.width / 2, y = r.y + r.height / 2;
		const hit = document.elementFromPoint(x, y);
		if (hit && (el.contains(hit) || hit.contains(el))) return [x, y];
	}
	return [];
}`

const (
	controls = "a[href], button, summary"
	labels   = "label"
)

// click presses the link, button or menu of this name with the mouse, as soon as it stands still.
func (b *tab) click(name string) {
	b.t.Helper()
	b.press(name, controls)
}

func (b *tab) press(name, kinds string) {
	b.t.Helper()
	at := b.find(name, kinds)
	b.do(chromedp.MouseClickXY(at[0], at[1]))
}

// find waits for something of this name, and returns where it stands still.
func (b *tab) find(name, kinds string) (at []float64) {
	b.t.Helper()
	b.awaitIn("something to click named "+name, func() (bool, error) {
		now, err := tryAsk[[]float64](b, whereIs, name, kinds)
		stands := len(now) == 2 && slices.Equal(now, at)
		at = now
		return stands, err
	})
	return at
}

// holdDown presses a link or button as click does, and returns what lets it go.
func (b *tab) holdDown(name string) (release func()) {
	b.t.Helper()
	at := b.find(name, controls)
	b.do(command(input.DispatchMouseEvent, mouse(input.DispatchMouseEventTypeMousePressed, at)))
	return func() { b.do(command(input.DispatchMouseEvent, mouse(input.DispatchMouseEventTypeMouseReleased, at))) }
}

func mouse(kind input.DispatchMouseEventType, at []float64) input.DispatchMouseEventParams {
	return input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: 1}
}

// offers tells whether there is something of this name to click.
func (b *tab) offers(name string) bool {
	b.t.Helper()
	return len(ask[[]float64](b, whereIs, name, controls)) == 2
}

// fill clicks a field's label and types.
func (b *tab) fill(label, text string) {
	b.t.Helper()
	b.press(label, labels)
	b.keys(text)
}

// choose takes an option of a filter by typing its first letters, as one does with the list closed.
func (b *tab) choose(name, option string) {
	b.t.Helper()
	if !ask[bool](b, `(name) => { const select = document.querySelector("select[aria-label=" + CSS.escape(name) + "]"); select?.focus(); return select !== null; }`, name) {
		b.t.Fatalf("there is no choice named %s\n%s", name, b.describe())
	}
	b.keys(option)
	b.await("the choice "+option, `(name, option) => document.querySelector("select[aria-label=" + CSS.escape(name) + "]").selectedOptions[0].label === option`, name, option)
}

// keys presses keys one after the other; kb names those that are no character. A press and the character that it types are one
// event, as from a keyboard, so that a page which takes the press keeps the character from being typed.
func (b *tab) keys(keys string) {
	b.t.Helper()
	var steps []chromedp.Action[chromedp.Void]
	for _, r := range keys {
		var down *input.DispatchKeyEventParams
		for _, k := range kb.Encode(r) {
			switch k.Type {
			case kb.KeyRawDown, kb.KeyDown:
				down = k
			case kb.KeyChar:
				down.Type, down.Text, down.UnmodifiedText = kb.KeyDown, k.Text, k.UnmodifiedText
			case kb.KeyUp:
				steps = append(steps, command(input.DispatchKeyEvent, *down), command(input.DispatchKeyEvent, *k))
			}
		}
	}
	b.do(steps...)
}

// reads waits until the page, or the dialog on it, shows a text.
func (b *tab) reads(text string) {
	b.t.Helper()
	b.await("the text "+text, `(text) => (document.querySelector("dialog[open]") ?? document.body).innerText.replace(/\s+/g, " ").includes(text)`, text)
}

// rowReads waits until the table row with a key shows a text.
func (b *tab) rowReads(key, text string) {
	b.t.Helper()
	b.await("the text "+text+" in the row "+key, rowHas, key, text)
}

const rowHas = `(key, text) => (document.querySelector("tr[data-key=" + CSS.escape(key) + "]")?.innerText ?? "").includes(text)`

// state waits until the page's own sentence starts with a state.
func (b *tab) state(word string) {
	b.t.Helper()
	b.await("the state "+word, `(word) => document.querySelector(".sentence")?.innerText.startsWith(word)`, word)
}

// at waits until the page is at an address, whatever its query.
func (b *tab) at(path string) {
	b.t.Helper()
	b.await("the address "+path, `(path) => location.pathname === path && document.readyState === "complete"`, path)
}

// path is where the page is.
func (b *tab) path() string {
	b.t.Helper()
	return ask[string](b, `() => location.pathname + location.search`)
}

// mark notes on the document that it is this one; unchanged fails when another was loaded meanwhile.
func (b *tab) mark() { _ = ask[bool](b, `() => window.stillHere = true`) }

func (b *tab) unchanged() {
	b.t.Helper()
	if !ask[bool](b, `() => window.stillHere === true`) {
		b.t.Error("the page was loaded again")
	}
}

// forge sends a form from within the page, as somebody with the developer tools would, and returns the status.
func (b *tab) forge(path, body string) int {
	b.t.Helper()
	return ask[int](b, `(path, body) => fetch(path, { method: "POST", redirect: "manual", headers: { "Content-Type": "application/x-www-form-urlencoded" }, body })
		.then((answer) => answer.type === "opaqueredirect" ? 303 : answer.status)`, path, body)
}
