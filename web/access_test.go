package web_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"entrega/web"
)

func TestRoutes_AnswerHeadAndRefuseOtherMethods(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	path := "/p/" + p.ours.ID + "/tasks"
	head := b.do(http.MethodHead, path, nil, nil)
	if head.status != http.StatusOK || head.body != "" {
		t.Errorf("HEAD: status %d with %d bytes, want 200 with none", head.status, len(head.body))
	}
	put := b.do(http.MethodPut, path, url.Values{}, http.Header{"Sec-Fetch-Site": {"same-origin"}})
	if put.status != http.StatusMethodNotAllowed || !strings.Contains(put.header.Get("Allow"), http.MethodGet) {
		t.Errorf("PUT: status %d, Allow %q, want 405 with the methods that are", put.status, put.header.Get("Allow"))
	}
	if answer := b.get("/p/" + p.ours.ID + "/nothing"); answer.status != http.StatusNotFound || answer.heading() != "Not found" {
		t.Errorf("an unknown page: status %d (%s), want 404", answer.status, answer.heading())
	}
}

func TestForms_FromAnotherSiteAreRefused(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b, ours := p.as("owner"), p.newThings(p.ours)
	path := "/p/" + p.ours.ID + "/tasks/" + ours["tasks"] + "/cancel"
	for _, header := range []http.Header{
		{"Sec-Fetch-Site": {"cross-site"}},
		{"Sec-Fetch-Site": {"same-site"}},
		{"Origin": {"https://evil.example"}},
		{"Origin": {"null"}},
	} {
		if answer := b.do(http.MethodPost, path, url.Values{}, header); answer.status != http.StatusForbidden {
			t.Errorf("with %v: status %d, want 403", header, answer.status)
		}
	}
	var state string
	p.scan(&state, `select state from river_job where id = $1::bigint`, ours["tasks"])
	if state != "available" {
		t.Errorf("the task is %s, want it untouched", state)
	}
	if answer := b.do(http.MethodPost, path, url.Values{}, http.Header{"Origin": {p.url}}); answer.status != http.StatusSeeOther {
		t.Errorf("from the panel itself: status %d, want 303", answer.status)
	}
}

func TestForms_TooLargeOrMalformedAreRefused(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	large := b.post("/p/"+p.ours.ID+"/events/test", url.Values{"type": {"order.created"}, "data": {strings.Repeat("x", 2<<20)}})
	if large.status != http.StatusRequestEntityTooLarge {
		t.Errorf("2 MiB: status %d, want 413", large.status)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/projects", strings.NewReader("name=%zz"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Sec-Fetch-Site": {"same-origin"}}
	resp, err := b.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a malformed form: status %d, want 400", resp.StatusCode)
	}
}

func TestPages_WhatIsNoTextIsRefusedBeforeTheDatabaseSeesIt(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b, admin := p.as("owner"), p.as("admin")
	ours := "/p/" + p.ours.ID
	for _, bad := range []string{"%00", "%ff"} {
		for path, want := range map[string]int{
			"/p/" + bad:                  http.StatusNotFound,
			ours + "/events/" + bad:      http.StatusNotFound,
			ours + "/endpoints/" + bad:   http.StatusNotFound,
			ours + "/tasks?q=" + bad:     http.StatusBadRequest,
			ours + "/tasks.csv?q=" + bad: http.StatusBadRequest,
			ours + "/audit?actor=" + bad: http.StatusBadRequest,
		} {
			if got := b.get(path).status; got != want {
				t.Errorf("%s: status %d, want %d", path, got, want)
			}
		}
		if got := admin.get("/admin/projects?q=" + bad).status; got != http.StatusBadRequest {
			t.Errorf("/admin/projects?q=%s: status %d, want 400", bad, got)
		}
	}
	for _, bad := range []string{"\x00", "\xff"} {
		for path, form := range map[string]url.Values{"/projects/access": {"project": {bad}}, "/login": {"email": {bad}}} {
			if got := b.post(path, form).status; got != http.StatusUnprocessableEntity {
				t.Errorf("%s with %v: status %d, want 422", path, form, got)
			}
		}
	}
}

func TestAnswers_OfTheRouterAreGivenOnce(t *testing.T) {
	t.Parallel()
	p := setup(t)
	var logged strings.Builder
	p.serve("http", func(o *web.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	for path, want := range map[string]int{"/nothing": http.StatusNotFound, "/livez": http.StatusMethodNotAllowed} {
		answer := httptest.NewRecorder()
		p.server.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil))
		if answer.Code != want {
			t.Errorf("POST %s: status %d, want %d", path, answer.Code, want)
		}
	}
	if logged.Len() > 0 {
		t.Errorf("the log complains: %s", logged.String())
	}
}

func TestAnswers_CarryTheSecurityHeaders(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	for _, path := range []string{"/login", "/projects", "/p/" + p.ours.ID + "/tasks", "/nothing", "/livez"} {
		h := b.get(path).header
		for name, want := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
	page := b.open("/projects")
	if got := page.header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q, want no-store", got)
	}
	for n := range page.doc.Descendants() {
		if attr(n, "style") != "" || n.Data == "style" || strings.HasPrefix(attr(n, "href"), "javascript:") || n.Data == "script" && n.FirstChild != nil {
			t.Errorf("the page has %s, which its policy forbids", n.Data)
		}
	}
}

func TestRequestID_KeepsTheCallersWhenItIsWellFormed(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.browser()
	for given, kept := range map[string]bool{"req-0123456789": true, "a b": false, "<script>": false, "": false, strings.Repeat("x", 65): false} {
		got := b.do(http.MethodGet, "/login", nil, http.Header{"X-Request-Id": {given}}).header.Get("X-Request-Id")
		if (got == given) != kept || got == "" {
			t.Errorf("X-Request-Id %q came back as %q, want kept: %t", given, got, kept)
		}
	}
}
