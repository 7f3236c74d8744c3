package web_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// browser is a person without scripts: it keeps cookies, reads pages, and sends the forms that are on them.
type browser struct {
	t    *testing.T
	base string
	http *http.Client
}

// page is one answer.
type page struct {
	t        *testing.T
	status   int
	header   http.Header
	location string
	body     string
	doc      *html.Node
}

func (p *panel) browser() *browser {
	p.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return &browser{t: p.t, base: p.url, http: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// as is the browser of somebody who has logged in.
func (p *panel) as(name string) *browser {
	p.t.Helper()
	b := p.browser()
	answer := b.post("/login", url.Values{"email": {name + "@example.com"}, "password": {password}})
	if answer.status != http.StatusSeeOther || answer.location != "/" {
		p.t.Fatalf("log in as %s: status %d to %q, want 303 to /", name, answer.status, answer.location)
	}
	return b
}

func (b *browser) get(path string) *page { return b.do(http.MethodGet, path, nil, nil) }

// post sends a form as a browser does from a page of the same site.
func (b *browser) post(path string, form url.Values) *page {
	return b.do(http.MethodPost, path, form, http.Header{"Sec-Fetch-Site": {"same-origin"}})
}

func (b *browser) do(method, path string, form url.Values, header http.Header) *page {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.base+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	doc, err := html.Parse(strings.NewReader(string(raw)))
	if err != nil {
		b.t.Fatal(err)
	}
	return &page{t: b.t, status: resp.StatusCode, header: resp.Header, location: resp.Header.Get("Location"), body: string(raw), doc: doc}
}

// open gets a page that must be there.
func (b *browser) open(path string) *page {
	b.t.Helper()
	answer := b.get(path)
	if answer.status != http.StatusOK {
		b.t.Fatalf("GET %s: status %d (%s), want 200", path, answer.status, answer.heading())
	}
	return answer
}

// submit sends the form of a page that has this action, with its hidden and prefilled fields as they are, and follows the
// redirect that must come.
func (b *browser) submit(on *page, action string, fields url.Values) *page {
	b.t.Helper()
	answer := b.send(on, action, fields)
	if answer.status != http.StatusSeeOther {
		b.t.Fatalf("POST %s: status %d (%s), want 303", action, answer.status, answer.heading())
	}
	return b.open(answer.location)
}

// send is submit without following.
func (b *browser) send(on *page, action string, fields url.Values) *page {
	b.t.Helper()
	form := on.form(action)
	if form == nil {
		b.t.Fatalf("the page %q has no form that posts to %s", on.heading(), action)
	}
	values := formValues(form)
	for name, v := range fields {
		values[name] = v
	}
	return b.post(action, values)
}

// form finds the form that posts to an address, by itself or through a button of its own.
func (p *page) form(action string) *html.Node {
	for _, f := range find(p.doc, "form") {
		if attr(f, "action") == action && attr(f, "method") == "post" {
			return f
		}
	}
	for _, button := range find(p.doc, "button") {
		if attr(button, "formaction") == action {
			return p.byID(attr(button, "form"))
		}
	}
	return nil
}

// actions are the addresses that the page's forms and buttons post to.
func (p *page) actions() []string {
	var all []string
	for n := range p.doc.Descendants() {
		switch {
		case n.Data == "form" && attr(n, "method") == "post" && attr(n, "action") != "":
			all = append(all, attr(n, "action"))
		case n.Data == "button" && attr(n, "formaction") != "":
			all = append(all, attr(n, "formaction"))
		}
	}
	return all
}

// heading is the page's h1.
func (p *page) heading() string {
	if h := find(p.doc, "h1"); len(h) > 0 {
		return text(h[0])
	}
	return ""
}

// flash is the sentence that answers the last action.
func (p *page) flash() string { return text(p.byID("flash")) }

func (p *page) byID(id string) *html.Node {
	for n := range p.doc.Descendants() {
		if attr(n, "id") == id {
			return n
		}
	}
	return nil
}

// live is the part of the page with this name.
func (p *page) live(name string) *html.Node { return p.byID("live-" + name) }

// says tells whether the page shows a text.
func (p *page) says(s string) bool { return strings.Contains(text(p.doc), s) }

// sentence is the line that tells what happened.
func (p *page) sentence() string {
	for n := range p.doc.Descendants() {
		if attr(n, "class") == "sentence" {
			return text(n)
		}
	}
	return ""
}

// rows are the table rows of the page, each by its data-key.
func (p *page) rows() map[string]string {
	rows := map[string]string{}
	for _, r := range find(p.doc, "tr") {
		if key := attr(r, "data-key"); key != "" {
			rows[key] = text(r)
		}
	}
	return rows
}

func formValues(form *html.Node) url.Values {
	values := url.Values{}
	for n := range form.Descendants() {
		name := attr(n, "name")
		if n.Type != html.ElementNode || name == "" {
			continue
		}
		switch n.Data {
		case "input":
			if kind := attr(n, "type"); (kind != "checkbox" && kind != "radio") || has(n, "checked") {
				values.Add(name, attr(n, "value"))
			}
		case "textarea":
			values.Add(name, strings.TrimPrefix(raw(n), "\n"))
		case "select":
			for _, o := range find(n, "option") {
				if has(o, "selected") {
					values.Add(name, attr(o, "value"))
				}
			}
		}
	}
	return values
}

func find(n *html.Node, tag string) []*html.Node {
	var found []*html.Node
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == tag {
			found = append(found, d)
		}
	}
	return found
}

func attr(n *html.Node, name string) string {
	if n == nil {
		return ""
	}
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name {
			return true
		}
	}
	return false
}

// text is what a node shows, with white space as a browser folds it.
func text(n *html.Node) string { return strings.Join(strings.Fields(raw(n)), " ") }

func raw(n *html.Node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode && (d.Parent == nil || d.Parent.Data != "script" && d.Parent.Data != "style") {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
