package main

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// idInPath is what tells one page of a kind from another: a TypeID, or the number of a task.
var idInPath = regexp.MustCompile(`[a-z]+_[0-9a-z]{26}|\b\d+\b`)

// kindOfPage is an address without ids and without the values of its query.
func kindOfPage(path string) string {
	path, _, _ = strings.Cut(path, "#")
	path, query, _ := strings.Cut(path, "?")
	var names []string
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	return idInPath.ReplaceAllString(path, ":id") + "?" + strings.Join(slices.Compact(names), "&")
}

// linksOnPage are those that lead to a page of the panel: not to a download, and not to a mail as its reader sees it.
const linksOnPage = `() => [...document.querySelectorAll("a[href]:not([download])")].map((a) => a.getAttribute("href")).filter((to) => to.startsWith("/") && !/\.json$|\/html$/.test(to))`

// walk opens the given pages, and then one page of each kind that a link leads to, and looks at each. A link that leads
// nowhere fails the test. It returns the kinds it saw.
func (b *tab) walk(from []string, look func(path string)) []string {
	b.t.Helper()
	var seen []string
	ways := slices.Clone(from)
	for i := 0; i < len(ways); i++ {
		path, kind := ways[i], kindOfPage(ways[i])
		if i >= len(from) && slices.Contains(seen, kind) {
			continue
		}
		seen = append(seen, kind)
		if status := b.visit(path); status != http.StatusOK {
			b.t.Errorf("%s: status %d", path, status)
			continue
		}
		look(path)
		ways = append(ways, ask[[]string](b, linksOnPage)...)
	}
	slices.Sort(seen)
	return slices.Compact(seen)
}

// actions are the addresses that the forms and buttons of the page post to.
func (b *tab) actions() []string {
	b.t.Helper()
	return ask[[]string](b, `() => [
		...[...document.querySelectorAll("form[method=post][action]")].map((f) => f.getAttribute("action")),
		...[...document.querySelectorAll("button[formaction]")].map((button) => button.getAttribute("formaction")),
	]`)
}
