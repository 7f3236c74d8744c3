package views

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"golang.org/x/net/html"
)

// render writes a component and parses what it wrote.
func render(t *testing.T, c templ.Component) (*html.Node, string) {
	t.Helper()
	var b bytes.Buffer
	if err := c.Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	doc, err := html.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	return doc, text
}

// each calls visit for every element below n, in document order.
func each(n *html.Node, visit func(*html.Node)) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode {
			visit(d)
		}
	}
}

func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func has(n *html.Node, name string) bool {
	_, ok := attr(n, name)
	return ok
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(b.String())
}

func children(n *html.Node, tag string) []*html.Node {
	var found []*html.Node
	each(n, func(d *html.Node) {
		if d.Data == tag {
			found = append(found, d)
		}
	})
	return found
}

func within(n *html.Node, tag string) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.Data == tag {
			return true
		}
	}
	return false
}

func TestPages_HostileStringsStayText(t *testing.T) {
	t.Parallel()
	corpus := map[string]string{
		"markup":     `"'><script>alert(1)</script><img src=x onerror=alert(1)><svg onload=alert(1)></textarea></title></pre>`,
		"javascript": "javascript:alert(1)",
		"JavaScript": "\tJaVaScRiPt:alert(1)",
		"data":       "data:text/html,<script>alert(1)</script>",
	}
	for kind, hostile := range corpus {
		for _, s := range allSamplePages(func(string) string { return hostile }) {
			doc, _ := render(t, s.page)
			shown := false
			for n := range doc.Descendants() {
				if n.Type == html.TextNode && strings.Contains(n.Data, strings.TrimSpace(hostile)) {
					shown = true
				}
			}
			each(doc, func(n *html.Node) {
				if n.Data == "script" {
					if src, _ := attr(n, "src"); src != "panel.js" || n.FirstChild != nil {
						t.Errorf("%s, %s: a script of its own: %s", s.name, kind, textOf(n))
					}
				}
				switch n.Data {
				case "iframe":
					sandbox, sandboxed := attr(n, "sandbox")
					if src, _ := attr(n, "src"); !sandboxed || sandbox != "" || !strings.HasPrefix(src, "/") || has(n, "srcdoc") {
						t.Errorf("%s, %s: a frame that is not the panel's own, in a sandbox", s.name, kind)
					}
				case "img", "object", "embed", "style", "base":
					t.Errorf("%s, %s: the element <%s> came out of data", s.name, kind, n.Data)
				}
				for _, a := range n.Attr {
					if a.Val == hostile && a.Key == "value" {
						shown = true
					}
					switch {
					case strings.HasPrefix(a.Key, "on"), a.Key == "style":
						t.Errorf("%s, %s: <%s> has the attribute %s", s.name, kind, n.Data, a.Key)
					case a.Key == "href", a.Key == "src", a.Key == "action", a.Key == "formaction":
						value := strings.ToLower(strings.TrimSpace(a.Val))
						if strings.HasPrefix(value, "javascript:") || strings.HasPrefix(value, "data:") {
							t.Errorf("%s, %s: <%s %s=%q>", s.name, kind, n.Data, a.Key, a.Val)
						}
					}
				}
			})
			if !shown && s.name != "alerts-empty" && s.name != "setup" {
				t.Errorf("%s, %s: the hostile string is shown nowhere, so nothing was tested", s.name, kind)
			}
		}
	}
}

// The panel's Content-Security-Policy has no 'unsafe-inline'.
func TestPages_HaveNoInlineStyleOrScript(t *testing.T) {
	t.Parallel()
	for _, s := range allSamplePages(plainText) {
		doc, _ := render(t, s.page)
		each(doc, func(n *html.Node) {
			if has(n, "style") || n.Data == "style" {
				t.Errorf("%s: <%s> is styled inline", s.name, n.Data)
			}
			if n.Data == "script" && n.FirstChild != nil {
				t.Errorf("%s: inline script", s.name)
			}
		})
	}
}

func TestPages_SayPageAndProjectInTheTitle(t *testing.T) {
	t.Parallel()
	doc, _ := render(t, Tasks(sampleTasks(plainText)))
	if got, want := textOf(children(doc, "title")[0]), "Tasks · Acme Market · Entrega"; got != want {
		t.Errorf("title is %q, want %q", got, want)
	}
}

func TestPages_HaveOneMainHeadingAndSkipNoLevel(t *testing.T) {
	t.Parallel()
	for _, s := range allSamplePages(plainText) {
		doc, _ := render(t, s.page)
		level, mains := 0, 0
		each(doc, func(n *html.Node) {
			if len(n.Data) != 2 || n.Data[0] != 'h' || n.Data[1] < '1' || n.Data[1] > '6' || within(n, "dialog") {
				return
			}
			next := int(n.Data[1] - '0')
			if next == 1 {
				mains++
			}
			if next > level+1 {
				t.Errorf("%s: heading %q jumps from level %d to %d", s.name, textOf(n), level, next)
			}
			level = next
		})
		if mains != 1 {
			t.Errorf("%s: %d main headings, want 1", s.name, mains)
		}
	}
}

func TestPages_TablesHaveCaptionsAndScopes(t *testing.T) {
	t.Parallel()
	tables := 0
	for _, s := range allSamplePages(plainText) {
		doc, _ := render(t, s.page)
		for _, table := range children(doc, "table") {
			tables++
			if c := children(table, "caption"); len(c) != 1 || textOf(c[0]) == "" {
				t.Errorf("%s: a table without a caption: %.60s", s.name, textOf(table))
			}
			for _, th := range children(table, "th") {
				if scope, _ := attr(th, "scope"); scope != "col" && scope != "row" {
					t.Errorf("%s: header %q has no scope", s.name, textOf(th))
				}
				if textOf(th) == "" {
					t.Errorf("%s: an empty header in %.60s", s.name, textOf(table))
				}
			}
		}
	}
	if tables == 0 {
		t.Error("no table was looked at")
	}
}

func TestPages_FieldsAreLabelled(t *testing.T) {
	t.Parallel()
	for _, s := range allSamplePages(plainText) {
		doc, _ := render(t, s.page)
		labels := map[string]bool{}
		for _, l := range children(doc, "label") {
			if id, ok := attr(l, "for"); ok && textOf(l) != "" {
				labels[id] = true
			}
		}
		each(doc, func(n *html.Node) {
			switch n.Data {
			case "input", "select", "textarea":
			default:
				return
			}
			if kind, _ := attr(n, "type"); kind == "hidden" {
				return
			}
			id, _ := attr(n, "id")
			if !labels[id] && !has(n, "aria-label") && !within(n, "label") {
				name, _ := attr(n, "name")
				t.Errorf("%s: the field %q has no label", s.name, name)
			}
		})
	}
}

func TestPages_ControlsHaveNamesAndIDsAreUnique(t *testing.T) {
	t.Parallel()
	for _, s := range allSamplePages(plainText) {
		doc, _ := render(t, s.page)
		seen := map[string]bool{}
		each(doc, func(n *html.Node) {
			if id, ok := attr(n, "id"); ok {
				if seen[id] {
					t.Errorf("%s: the id %q stands twice", s.name, id)
				}
				seen[id] = true
			}
			switch n.Data {
			case "a", "button", "summary":
				if label, _ := attr(n, "aria-label"); textOf(n) == "" && label == "" {
					t.Errorf("%s: a <%s> without a name", s.name, n.Data)
				}
			case "svg":
				if role, _ := attr(n, "role"); role == "img" && len(children(n, "title")) != 1 {
					t.Errorf("%s: a chart without a title", s.name)
				} else if role == "" && !has(n, "aria-hidden") {
					t.Errorf("%s: a picture that is neither named nor hidden", s.name)
				}
			}
		})
		each(doc, func(n *html.Node) {
			for _, name := range []string{"aria-labelledby", "aria-describedby", "form"} {
				value, ok := attr(n, name)
				for id := range strings.FieldsSeq(value) {
					if ok && !seen[id] {
						t.Errorf("%s: %s of <%s> names %q, which is nowhere", s.name, name, n.Data, id)
					}
				}
			}
		})
	}
}

func TestPages_LeaveOutWhatARoleMayNotDo(t *testing.T) {
	t.Parallel()
	tasks := sampleTasks(plainText)
	tasks.CanBulkRetry, tasks.CanBulkCancel, tasks.CanExport = false, false, false
	for i := range tasks.Rows {
		tasks.Rows[i].CanRetry, tasks.Rows[i].CanCancel = false, false
	}
	task := sampleTask(plainText)
	task.CanRetry, task.CanCancel = false, false
	endpoint := sampleEndpoint(plainText, Failing)
	endpoint.CanEdit, endpoint.CanTest, endpoint.CanPause, endpoint.CanDisable = false, false, false, false
	endpoint.CanRedeliver, endpoint.CanRotate, endpoint.CanDelete = false, false, false
	for i := range endpoint.Deliveries {
		endpoint.Deliveries[i].CanRetry = false
	}
	for name, page := range map[string]templ.Component{"tasks": Tasks(tasks), "task": Task(task), "endpoint": Endpoint(endpoint)} {
		doc, text := render(t, page)
		for _, main := range children(doc, "main") {
			for _, form := range children(main, "form") {
				id, _ := attr(form, "id")
				if method, _ := attr(form, "method"); method == "post" && id != "row-act" {
					t.Errorf("%s: a viewer is offered the form %v", name, form.Attr)
				}
			}
			for _, b := range children(main, "button") {
				if has(b, "formaction") {
					t.Errorf("%s: a viewer is offered the button %q", name, textOf(b))
				}
			}
		}
		if strings.Contains(text, "/bulk") || strings.Contains(text, "/edit") || strings.Contains(text, "/redeliver") {
			t.Errorf("%s: a viewer is linked to an action", name)
		}
	}
}

func TestTask_SaysWhyItCannotBeRetried(t *testing.T) {
	t.Parallel()
	p := sampleTask(plainText)
	p.CanRetry, p.RetryRefusal = false, "Its endpoint is disabled; reactivate it first."
	_, text := render(t, Task(p))
	if !strings.Contains(text, p.RetryRefusal) {
		t.Error("the refusal is not on the page")
	}
	if strings.Contains(text, "Retry now") {
		t.Error("the button is offered beside its refusal")
	}
}

func TestNavigation_ShowsOnlyWhatIsListed(t *testing.T) {
	t.Parallel()
	p := sampleTasks(plainText)
	p.Layout.Nav = []NavItem{{Section: SectionTasks}, {Section: SectionAlerts, Badge: 1204, BadgeNote: "open alerts"}}
	doc, _ := render(t, Tasks(p))
	var links []string
	for _, nav := range children(doc, "nav") {
		if id, _ := attr(nav, "aria-labelledby"); strings.HasPrefix(id, "nav-") {
			for _, a := range children(nav, "a") {
				href, _ := attr(a, "href")
				links = append(links, href)
			}
		}
	}
	want := []string{TasksURL(p.Layout.Project.ID, TaskFilter{}), AlertsURL(p.Layout.Project.ID, "")}
	if strings.Join(links, " ") != strings.Join(want, " ") {
		t.Errorf("navigation links to %v, want %v", links, want)
	}
}
