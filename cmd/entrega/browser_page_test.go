package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
)

// TestPanel_Pages walks every page of the panel. The pages are full, and all that is written on them is hostile.
func TestPanel_Pages(t *testing.T) {
	t.Parallel()
	g := openTown(t).openGallery()
	for name, test := range map[string]func(*testing.T, *gallery){
		"Hostile_TextStaysText":                      staysText,
		"Axe_FindsNothingSeriousInEitherTheme":       isAccessible,
		"Narrow_NoPageScrollsSidewaysAt390":          fitsAPhone,
		"Dark_FollowsTheSystemAndIsNotTheLightTheme": hasTwoThemes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := *g
			own.shop = &shop{installation: g.installation.on(t), id: g.id, key: g.key}
			test(t, &own)
		})
	}
}

// axeFile is where `make setup-test` puts axe-core.
var axeFile = filepath.Join("..", "..", ".tools", "node_modules", "axe-core", "axe.min.js")

// axeFinding is a rule that a page breaks, with the first places.
type axeFinding struct {
	ID, Impact, Help string
	Places           []string
}

// runAxe finds what is serious or critical. Only rules about colour can differ between themes.
const runAxe = `async (only) => {
	const options = { resultTypes: ["violations"], ...(only.length ? { runOnly: { type: "rule", values: only } } : {}) };
	const found = await axe.run(document, options);
	return found.violations.filter((v) => v.impact === "serious" || v.impact === "critical")
		.map((v) => ({ id: v.id, impact: v.impact, help: v.help, places: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160) + " " + (n.any[0]?.message ?? "")) }));
}`

func isAccessible(t *testing.T, g *gallery) {
	axe, err := os.ReadFile(axeFile)
	if err != nil {
		t.Fatalf("axe-core is not there: `make setup-test` installs it (%v)", err)
	}
	b := g.browser(admin)
	b.scheme("light")
	check := func(path, theme string, only ...string) {
		t.Helper()
		for _, f := range ask[[]axeFinding](b, runAxe, append([]string{}, only...)) {
			t.Errorf("%s, %s: %s (%s): %s\n\t%s", path, theme, f.ID, f.Impact, f.Help, strings.Join(f.Places, "\n\t"))
		}
	}
	both := func(path string) {
		t.Helper()
		_ = ask[bool](b, `() => { `+string(axe)+`; return true; }`)
		check(path, "light")
		b.scheme("dark")
		check(path, "dark", "color-contrast", "link-in-text-block")
		b.scheme("light")
	}
	seen := b.walk(append(g.pages, "/account", "/docs"), both)
	for _, kind := range everyPage {
		if !slices.ContainsFunc(seen, func(s string) bool { page, _, _ := strings.Cut(s, "?"); return page == kind }) {
			t.Errorf("no link leads to %s, so it was not looked at", kind)
		}
	}

	// What opens on a page.
	b.open(g.pages[1])
	b.keys("?")
	b.reads("next row, row before")
	both("the help")
	b.open(g.page("/keys"))
	b.click("New API key")
	b.reads("Scopes")
	both("the form of a new key")
	b.open(g.pages[1])
	b.click("Cancel")
	b.reads("Cancel this task?")
	both("the question before a cancel")

	stranger := g.visitor()
	b = stranger
	for _, path := range []string{"/login", "/login?next=/projects", "/signup", "/signup?sent=1"} {
		b.open(path)
		both(path)
	}
	b.excuse("status of 410")
	b.visit("/confirm/spent")
	both("/confirm/spent")
}

// everyPage are the kinds of pages that a walk from link to link must come to.
var everyPage = []string{
	"/p/:id", "/p/:id/tasks", "/p/:id/tasks/:id", "/p/:id/bulk", "/p/:id/bulk/:id", "/p/:id/events", "/p/:id/events/:id", "/p/:id/endpoints", "/p/:id/endpoints/new",
	"/p/:id/endpoints/:id", "/p/:id/endpoints/:id/edit", "/p/:id/endpoints/:id/redeliver", "/p/:id/alerts", "/p/:id/health", "/p/:id/periodic", "/p/:id/policies",
	"/p/:id/policies/webhook.deliver/standard", "/p/:id/simulate", "/p/:id/team", "/p/:id/keys", "/p/:id/audit", "/p/:id/settings",
	"/p/:id/mail", "/p/:id/mail/:id", "/p/:id/suppressions", "/p/:id/settings/mail",
	"/projects", "/account", "/admin/projects", "/admin/disabled", "/admin/system", "/admin/audit", "/admin/account-mail",
}

func fitsAPhone(t *testing.T, g *gallery) {
	b := g.browser(admin)
	b.do(command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 1}))
	b.walk(append(g.pages, "/account"), func(path string) {
		wide := ask[[]string](b, `() => document.scrollingElement.scrollWidth <= innerWidth ? [] : [document.scrollingElement.scrollWidth + " px",
			...[...document.querySelectorAll("body *")].filter((el) => el.getBoundingClientRect().right > innerWidth + 1 && !el.parentElement.closest(".scroll, .tabs, .navs, pre"))
				.slice(0, 4).map((el) => el.outerHTML.slice(0, 160))]`)
		if len(wide) > 0 {
			t.Errorf("%s is wider than the screen: %s", path, strings.Join(wide, "\n\t"))
		}
	})
}

func hasTwoThemes(t *testing.T, g *gallery) {
	b := g.browser(admin)
	grounds := map[string]float64{}
	for _, theme := range []string{"light", "dark"} {
		b.scheme(theme)
		b.open(g.pages[0])
		grounds[theme] = ask[float64](b, `() => {
			const shade = (el, what) => getComputedStyle(el)[what].match(/[\d.]+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 765;
			const ground = shade(document.body, "backgroundColor"), ink = shade(document.querySelector("h1"), "color");
			return Math.abs(ground - ink) > 0.6 ? ground : -1;
		}`)
	}
	if grounds["light"] < 0.9 || grounds["dark"] > 0.2 || grounds["dark"] < 0 {
		t.Errorf("the grounds have the shades %v (0 is black; -1 has no contrast), want one light and one dark", grounds)
	}
}

// scheme sets the theme that the system asks for, without motion.
func (b *tab) scheme(name string) {
	b.t.Helper()
	b.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}}))
}
