package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// chromium is the one browser of this package's tests, started by the first that needs it. What it returns is the context that
// its windows are made in.
var chromium = sync.OnceValues(startChromium)

// chromiumRuns is the context to close at the end, where the browser was started.
var chromiumRuns atomic.Pointer[context.Context]

// chromiumNames are the names under which distributions install it.
var chromiumNames = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

func findChromium() (string, error) {
	for _, name := range chromiumNames {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium on this machine: `make setup-test` installs it")
}

// startChromium runs the browser without a screen, with a profile of its own that goes when it ends, and without calls home.
func startChromium() (context.Context, error) {
	path, err := findChromium()
	if err != nil {
		return nil, err
	}
	flags := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path)}
	for _, name := range []string{"headless", "no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update", "disable-sync",
		"no-first-run", "no-default-browser-check", "disable-quic", "disable-dev-shm-usage", "disable-extensions", "disable-background-timer-throttling",
		"disable-backgrounding-occluded-windows", "disable-renderer-backgrounding", "hide-scrollbars", "mute-audio"} {
		flags = append(flags, chromedp.Flag(name, true))
	}
	allocator, _ := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	chromiumRuns.Store(&ctx)
	return ctx, nil
}

// stopChromium ends the browser where it was started.
func stopChromium() error {
	ctx := chromiumRuns.Load()
	if ctx == nil {
		return nil
	}
	return chromedp.Cancel(*ctx)
}

func theChromium(t testing.TB) context.Context {
	t.Helper()
	ctx, err := chromium()
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}
