package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// hostile is text that does harm wherever a page takes it for markup: it ends what it may stand in, runs a script, and leaves
// an element of its own. It carries the name of its field.
func hostile(field string) string {
	return `'"></title><img src=x onerror=alert(1)><x-hole>` + field
}

// vicious are more ways to break out, for texts that may be long.
var vicious = []string{
	`</textarea></style></script><script>alert(1)</script><x-hole>`, `<svg onload=alert(1)><x-hole>`, `<iframe srcdoc="<script>parent.alert(1)</script>"></iframe><x-hole>`,
	`javascript:alert(1)//<x-hole>`, `<!--><x-hole>-->`, `]]><x-hole>`, `<a href="javascript:alert(1)" onfocus=alert(1) autofocus><x-hole>`, `${alert(1)}{{7*7}}<x-hole>`,
	"\u202e<x-hole>", `&lt;x-hole&gt;&#60;x-hole&#62;`, `<form action=//evil.example><button formaction=javascript:alert(1)>Retry</button></form><x-hole>`,
}

// gallery is a project with something of everything that pages show, each text of it hostile.
type gallery struct {
	*shop
	// pages are those that show a state which the walk from link to link may miss.
	pages []string
	mail  []string
	// texts are what must be found, as text, on some page.
	texts map[string]string
}

// openGallery fills a project. Its people are those of the town, and another who asks to join.
func (in *installation) openGallery() *gallery {
	in.t.Helper()
	g := &gallery{shop: in.openShop(hostile("project")), texts: map[string]string{}}
	for _, field := range []string{"project", "description", "subscriber", "header", "answer", "answer-header", "retry-after", "location", "metadata-key", "metadata",
		"key", "request", "disable", "reactivate", "order", "mail-subject", "mail-text"} {
		g.texts[field] = hostile(field)
	}
	for i, v := range vicious {
		g.texts["payload "+strconv.Itoa(i)] = strings.ReplaceAll(v, `"`, `\"`) // as it stands in JSON
	}
	ids := g.endpoints()
	event := g.publishHostile()
	g.tasks(event, ids)
	g.people()
	g.mails()
	g.pages = append(g.pages, g.page(""), g.page("/endpoints/%s", ids["failing"]), g.page("/endpoints/%s", ids["gone"]), g.page("/endpoints/%s", ids["paused"]),
		g.page("/endpoints/%s", ids["busy"]), g.page("/endpoints/%s/redeliver", ids["gone"]), g.page("/events/%s", event), g.page("/tasks?q=%s", url.QueryEscape(hostile("q"))),
		g.page("/endpoints?q=%s", url.QueryEscape(hostile("q"))), g.page("/bulk?action=cancel&state=retryable"), g.page("/alerts?state=all"), g.page("/audit?q=%s", url.QueryEscape(hostile("q"))))
	return g
}

// endpoints makes receivers in every condition and returns the endpoints' ids by it.
func (g *gallery) endpoints() map[string]string {
	g.t.Helper()
	answer := func(status int, header http.Header) string {
		return newCustomer(g.t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Answer", hostile("answer-header"))
			w.Header().Set("Content-Type", "text/html")
			for name, values := range header {
				w.Header()[name] = values
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, hostile("answer")+strings.Join(vicious, "\n"))
		}).URL + "/a-long-path/" + strings.Repeat("without-a-break", 8) + "?q=" + url.QueryEscape(hostile("query"))
	}
	ids := map[string]string{}
	for _, e := range []struct {
		name, address string
		extra         map[string]any
	}{
		{"failing", answer(http.StatusServiceUnavailable, http.Header{"Retry-After": {hostile("retry-after")}}), map[string]any{"headers": map[string]string{"X-Note": hostile("header")}}},
		{"redirecting", answer(http.StatusFound, http.Header{"Location": {hostile("location")}}), nil},
		{"gone", answer(http.StatusGone, nil), nil},
		{"refusing", answer(http.StatusUnauthorized, nil), map[string]any{"ratePerSecond": 5, "timeoutSeconds": 20}},
		{"busy", answer(http.StatusTooManyRequests, http.Header{"Retry-After": {"3600"}}), nil},
		{"fine", answer(http.StatusOK, nil), map[string]any{"maxInFlight": 8, "profile": "compact"}},
		{"paused", answer(http.StatusOK, nil), map[string]any{"subscriber": ""}},
		{"other", answer(http.StatusOK, nil), map[string]any{"eventTypes": []string{"invoice.paid", "a-rather-long-type-of-event.with-many-parts.that-is-not-published.by_anyone"}}},
	} {
		settings := map[string]any{"subscriber": hostile("subscriber")}
		for name, value := range e.extra {
			settings[name] = value
		}
		ids[e.name] = g.endpoint(e.address, hostile("description"), settings)
	}
	g.postForm(g.client(owner), g.page("/endpoints/%s/pause", ids["paused"]), nil)
	g.call(g.key, "POST", "/v1/endpoints/"+ids["fine"]+"/rotate-secret", map[string]any{"overlapHours": 24}, nil, http.StatusOK)
	g.call(g.key, "POST", "/v1/endpoints/"+ids["other"]+"/disable", map[string]any{"reason": hostile("disable")}, nil, http.StatusOK)
	g.call(g.key, "POST", "/v1/endpoints/"+ids["other"]+"/reactivate", map[string]any{"reason": hostile("reactivate")}, nil, http.StatusOK)
	return ids
}

// publishHostile publishes an event whose bytes no encoder has made harmless, and sees a hostile type refused.
func (g *gallery) publishHostile() string {
	g.t.Helper()
	var data bytes.Buffer
	encode := json.NewEncoder(&data)
	encode.SetEscapeHTML(false)
	if err := encode.Encode(map[string]any{"type": "order.created", "subscriber": hostile("subscriber"), "metadata": map[string]string{hostile("metadata-key"): hostile("metadata")},
		"data": map[string]any{"lines": vicious, hostile("data-key"): 1, "padding": strings.Repeat("x", 20<<10)}}); err != nil {
		g.t.Fatal(err)
	}
	var p struct{ ID string }
	g.callRaw("/v1/events", data.Bytes(), &p, http.StatusAccepted)
	g.call(g.key, "POST", "/v1/events", map[string]any{"type": hostile("type"), "data": 1}, nil, http.StatusUnprocessableEntity)
	return p.ID
}

// tasks waits until the event has done its harm, then cancels, retries and redelivers.
func (g *gallery) tasks(event string, ids map[string]string) {
	g.t.Helper()
	want := map[string]string{ids["failing"]: "retrying", ids["redirecting"]: "retrying", ids["gone"]: "exhausted", ids["refusing"]: "exhausted", ids["busy"]: "retrying",
		ids["fine"]: "delivered", ids["paused"]: "pending"}
	tasks := map[string]string{}
	g.until("the event to be everywhere", func() bool {
		var list struct{ Data []delivery }
		g.call(g.key, "GET", "/v1/deliveries?eventId="+event, nil, &list, http.StatusOK)
		matching := 0
		for _, d := range list.Data {
			tasks[d.EndpointID] = string(d.ID)
			if want[d.EndpointID] == d.Status {
				matching++
			}
		}
		return matching == len(want)
	})
	cancelled := g.settled(g.publish("order.withdrawn", map[string]any{"n": 1}), "pending", 1)[0].ID // Only the paused one takes events of nobody in particular.
	g.call(g.key, "POST", "/v1/deliveries/"+string(cancelled)+"/cancel", nil, nil, http.StatusOK)
	for _, task := range append([]string{string(cancelled)}, tasks[ids["failing"]], tasks[ids["redirecting"]], tasks[ids["gone"]], tasks[ids["busy"]], tasks[ids["fine"]], tasks[ids["paused"]]) {
		g.pages = append(g.pages, g.page("/tasks/%s", task))
	}
	g.pages = append(g.pages, g.postForm(g.client(owner), g.page("/bulk?action=retry&state=discarded"), nil))
	g.until("the alerts", func() bool {
		var list struct{ Data []struct{ ID, Kind string } }
		g.call(g.key, "GET", "/v1/alerts", nil, &list, http.StatusOK)
		kinds := map[string]string{}
		for _, a := range list.Data {
			kinds[a.Kind] = a.ID
		}
		return len(kinds) >= 2
	})
}

// people makes a key, and somebody who asks to join and is still waiting.
func (g *gallery) people() {
	g.t.Helper()
	key := url.Values{"name": {hostile("key")}, "scope": {"read"}}
	if res := g.send(g.client(owner), g.page("/keys"), key); res.StatusCode != http.StatusOK {
		g.t.Fatalf("make a key: %s", res.Status)
	}
	g.hire(viewer, "viewer")
	g.postForm(g.client(onCall), "/projects/access", url.Values{"project": {g.id}, "reason": {hostile("request")}})
}

// mails sends one that is taken and one that bounces, which suppresses its recipient.
func (g *gallery) mails() {
	g.t.Helper()
	for _, to := range []string{"sales@acme.example", "bounce@simulate.invalid"} {
		var n struct{ ID string }
		g.call(g.key, "POST", "/v1/notifications", map[string]any{"orderId": hostile("order"), "to": to, "subject": hostile("mail-subject"), "text": hostile("mail-text"),
			"html": hostile("html") + strings.Join(vicious, "")}, &n, http.StatusAccepted)
		g.mail = append(g.mail, n.ID)
		g.pages = append(g.pages, g.page("/mail/%s", n.ID), g.page("/mail/%s?view=text", n.ID))
	}
}

// staysText walks every page of the panel with the gallery's texts on them.
func staysText(t *testing.T, g *gallery) {
	b := g.browser(admin)
	// A mail is shown as its author meant it, and runs nothing all the same: a dialog would fail the test, while what the browser
	// refuses to load or run there is as it should be.
	b.excuse("/html")
	found := map[string]bool{}
	look := func(path string) {
		if hole := ask[string](b, `() => document.querySelector("x-hole, img[src=x], [onerror], [onload], [onfocus], iframe:not([sandbox='']), iframe[srcdoc], a[href^='javascript:' i], [formaction^='javascript:' i]")?.parentElement.outerHTML ?? ""`); hole != "" {
			t.Errorf("%s: text has become markup: %.300s", path, hole)
		}
		shown := ask[string](b, `() => document.documentElement.textContent + [...document.querySelectorAll("input, textarea")].map((field) => field.value).join(" ")`)
		for field, text := range g.texts {
			found[field] = found[field] || strings.Contains(shown, text)
		}
	}
	b.walk(g.pages, look)
	for field := range g.texts {
		if !found[field] {
			t.Errorf("no page shows the text of %q, so nothing is known of it", field)
		}
	}

	// Parts that come later go through the same door.
	task := g.pages[1]
	b.open(task)
	b.mark()
	b.click("Retry now")
	b.reads("will be tried again now")
	b.await("the attempt", rowHas, "2", "manual")
	b.unchanged()
	look(task)

	b.open(g.page("/mail/%s/html", g.mail[0]))

	for _, path := range []string{"/login?next=" + url.QueryEscape(hostile("next")), "/signup", g.page("/tasks/%s", url.PathEscape(hostile("id"))), "/p/" + url.PathEscape(hostile("project"))} {
		b.excuse("status of 404")
		b.visit(path)
		look(path)
	}
}

// callRaw is call with a body as it is.
func (s *shop) callRaw(path string, body []byte, out any, want int) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + s.key}, "Content-Type": {"application/json"}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if res.StatusCode != want {
		s.t.Fatalf("POST %s: %s, want %d\n%s", path, res.Status, want, answer)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		s.t.Fatal(fmt.Errorf("POST %s: %w", path, err))
	}
}
