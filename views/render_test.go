package views

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func renderParts(t *testing.T, names string) (string, []string) {
	t.Helper()
	var b bytes.Buffer
	if err := Render(context.Background(), &b, Tasks(sampleTasks(plainText)), names); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	doc, err := html.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	each(doc, func(n *html.Node) {
		if name, ok := attr(n, "data-live"); ok {
			parts = append(parts, name)
		}
	})
	return text, parts
}

func TestRender_WithoutNamesIsTheWholePage(t *testing.T) {
	t.Parallel()
	text, parts := renderParts(t, "")
	if !strings.HasPrefix(text, "<!doctype html>") {
		t.Errorf("page begins with %.30q", text)
	}
	if got, want := strings.Join(parts, " "), "nav tabs rows"; got != want {
		t.Errorf("live parts are %q, want %q", got, want)
	}
}

func TestRender_WithNamesIsOnlyThoseParts(t *testing.T) {
	t.Parallel()
	text, parts := renderParts(t, "rows")
	if got := strings.Join(parts, " "); got != "rows" || !strings.HasPrefix(text, `<div data-live="rows"`) {
		t.Errorf("live parts are %q in %.60q, want rows alone", got, text)
	}
	_, parts = renderParts(t, "tabs, rows")
	if got := strings.Join(parts, " "); got != "tabs rows" {
		t.Errorf("live parts are %q, want tabs and rows", got)
	}
}

func TestRender_UnknownNameWritesNothing(t *testing.T) {
	t.Parallel()
	if text, _ := renderParts(t, "settings"); text != "" {
		t.Errorf("wrote %.60q, want nothing", text)
	}
}
