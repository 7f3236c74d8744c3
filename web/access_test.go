package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
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
