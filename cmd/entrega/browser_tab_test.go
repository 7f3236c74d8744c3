package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const (
	// browserPatience is how long a test waits for what a person sees within a second. The machine may be busy.
	browserPatience = 60 * time.Second
	// browserGlance is how often a test looks whether it is there.
	browserGlance = 25 * time.Millisecond
)

// tab is one page in the browser, as a person has it before them. Whatever the browser complains about fails the test: an
// exception, a dialog, an error on the console, a broken content security policy, a resource that did not load.
type tab struct {
	t    testing.TB
	ctx  context.Context
	base string

	mu         sync.Mutex
	complaints []string
	excused    []string
	// streams are the open streams of hints, and asked is how many parts of pages were fetched.
	streams map[network.RequestID]bool
	asked   int
}

// newTab opens an empty page with cookies of its own, or beside the tabs whose context is given.
func newTab(t testing.TB, base string, beside *tab, options ...chromedp.ContextOption) *tab {
	t.Helper()
	b := &tab{t: t, base: base, streams: map[network.RequestID]bool{}}
	parent := theChromium(t)
	options = append(options, chromedp.WithListener(b.hear))
	if beside == nil {
		options = append(options, chromedp.WithNewBrowserContext())
	} else {
		parent = beside.ctx
	}
	ctx, cancel := chromedp.NewContext(parent, options...)
	b.ctx = ctx
	t.Cleanup(func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complaints {
			t.Errorf("the browser complains: %s", c)
		}
	})
	// The page lives as long as the context of its first command.
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	return b
}

// hear takes in what the browser tells. It must not wait.
func (b *tab) hear(ev any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch ev := ev.(type) {
	case *page.EventJavascriptDialogOpening:
		b.complain("a dialog: " + ev.Message)
		go func() { // The page stands still until it is answered.
			_ = chromedp.Do(b.ctx, command(page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}))
		}()
	case *runtime.EventExceptionThrown:
		b.complain("an exception: " + describeException(ev.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if ev.Type == runtime.ConsoleAPICalledTypeError || ev.Type == runtime.ConsoleAPICalledTypeWarning || ev.Type == runtime.ConsoleAPICalledTypeAssert {
			b.complain(fmt.Sprintf("console.%s", ev.Type))
		}
	case *log.EventEntryAdded:
		if ev.Entry.Level == log.EntryLevelError {
			b.complain(fmt.Sprintf("%s: %s %s", ev.Entry.Source, ev.Entry.Text, ev.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		switch ev.Type {
		case network.ResourceTypeEventSource:
			b.streams[ev.RequestID] = true
		case network.ResourceTypeFetch:
			b.asked++
		}
	case *network.EventLoadingFinished:
		delete(b.streams, ev.RequestID)
	case *network.EventLoadingFailed:
		delete(b.streams, ev.RequestID)
	}
}

func describeException(d *runtime.ExceptionDetails) string {
	if d.Exception != nil && d.Exception.Description != "" {
		return d.Exception.Description
	}
	return d.Text
}

// complain must be called with the lock held.
func (b *tab) complain(text string) {
	for _, e := range b.excused {
		if strings.Contains(text, e) {
			return
		}
	}
	if !slices.Contains(b.complaints, text) {
		b.complaints = append(b.complaints, text)
	}
}

// excuse lets complaints pass that hold a text, where a test provokes them.
func (b *tab) excuse(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.excused = append(b.excused, text)
}

func (b *tab) openStreams() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.streams)
}

func (b *tab) partsAsked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

// command makes an action of a command of the protocol whose answer does not matter.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, c, params)
		return chromedp.Void{}, err
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.describe())
	}
}

// visit goes to an address, waits until the page is loaded, and returns its status.
func (b *tab) visit(path string) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	answer, err := chromedp.RunResponse(ctx, chromedp.Navigate(b.base+path))
	if err != nil {
		b.t.Fatalf("go to %s: %v", path, err)
	}
	return int(answer.Status)
}

// open visits a page that must be there.
func (b *tab) open(path string) {
	b.t.Helper()
	if status := b.visit(path); status != http.StatusOK {
		b.t.Fatalf("GET %s: status %d\n%s", path, status, b.describe())
	}
	// Chromium drops keys and clicks that come before the page is painted, which is after it is loaded.
	b.await("the page to be painted", `() => document.visibilityState !== "visible" || performance.getEntriesByType("paint").length > 0`)
}

// tryAsk calls a JavaScript function in the page. Its error is no failure while a page is being left for another.
func tryAsk[T any](b *tab, function string, args ...any) (T, error) {
	raw := make([]string, len(args))
	for i, a := range args {
		encoded, err := json.Marshal(a)
		if err != nil {
			b.t.Fatal(err)
		}
		raw[i] = string(encoded)
	}
	ctx, cancel := context.WithTimeout(b.ctx, browserPatience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T]("("+function+")("+strings.Join(raw, ", ")+")", chromedp.EvalAwaitPromise))
}

func ask[T any](b *tab, function string, args ...any) T {
	b.t.Helper()
	answer, err := tryAsk[T](b, function, args...)
	if err != nil {
		b.t.Fatalf("%v in\n%s\n%s", err, function, b.describe())
	}
	return answer
}

// await looks until a JavaScript function of the page returns true, over changes of the page.
func (b *tab) await(what, function string, args ...any) {
	b.t.Helper()
	b.awaitIn(what, func() (bool, error) { return tryAsk[bool](b, function, args...) })
}

func (b *tab) awaitIn(what string, look func() (bool, error)) {
	b.t.Helper()
	timeout := time.NewTimer(browserPatience)
	defer timeout.Stop()
	glance := time.NewTicker(browserGlance)
	defer glance.Stop()
	for {
		ok, err := look()
		if ok && err == nil {
			return
		}
		select {
		case <-glance.C:
		case <-timeout.C:
			b.t.Fatalf("waited in vain for %s (%v)\n%s", what, err, b.describe())
		}
	}
}

// describe is what a person would say of the page when a test fails.
func (b *tab) describe() string {
	text, err := tryAsk[string](b, `() => location.href + " (" + document.visibilityState + ")\n" + (document.querySelector("dialog[open]") ?? document.querySelector("main") ?? document.body).innerText.slice(0, 2500)`)
	if err != nil {
		return fmt.Sprintf("(the page cannot be read: %v)", err)
	}
	return text
}
