package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
)

const (
	owner, onCall, viewer, admin = "owner@shop.example", "on-call@shop.example", "viewer@shop.example", "admin@entrega.example"
	browserPassword              = "correct horse battery staple"
)

// slowPolicy is the standard profile with waits that no test lives to see, so that what fails stays failed until it is acted on.
const slowPolicy = `kind: webhook.deliver
profile: standard
attempts: 18
waits: [2h, 5h, 10h]
jitter: 10%
timeout: {total: 10s, connect: 3s}
horizon: 168h
retry_after: {cap: 10h}
disable_endpoint: {failing_for: 120h}
classes: {http.4xx: discard, http.408: retry, http.410: gone, http.429: snooze, http.503: snooze, endpoint_disabled: discard, blocked: discard, configuration: discard}
`

// openTown starts an installation whose receivers may be on this machine, with people who can log in.
func openTown(t *testing.T) *installation {
	t.Helper()
	theChromium(t) // Without a browser there is nothing to start.
	policies := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(policies, []byte(slowPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	in := install(t, "ENTREGA_ALLOW_HTTP=true", "ENTREGA_EGRESS_ALLOW=127.0.0.1", "ENTREGA_POLICIES="+policies)
	in.start()
	for _, email := range []string{owner, onCall, viewer} {
		in.person(email)
	}
	in.person(admin, "--admin")
	return in
}

// on is the same installation for another test, which fails by itself.
func (in *installation) on(t *testing.T) *installation {
	other := *in
	other.t, other.serve = t, nil
	return &other
}

func (in *installation) person(email string, flags ...string) {
	in.t.Helper()
	args := append([]string{"user", "create", "--email", email, "--password-stdin"}, flags...)
	if out, err := in.tryCommand(browserPassword+"\n", args...); err != nil {
		in.t.Fatalf("%v\n%s", err, out)
	}
}

// client is a person without a browser, who is logged in.
func (in *installation) client(email string) *http.Client {
	in.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		in.t.Fatal(err)
	}
	c := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	in.postForm(c, "/login", url.Values{"email": {email}, "password": {browserPassword}})
	return c
}

// send posts a form as a browser does from a page of the panel. Nobody needs the answer's body.
func (in *installation) send(c *http.Client, path string, form url.Values) *http.Response {
	in.t.Helper()
	req, err := http.NewRequestWithContext(in.t.Context(), http.MethodPost, in.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		in.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Sec-Fetch-Site": {"same-origin"}}
	res, err := c.Do(req)
	if err != nil {
		in.t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// postForm sends a form that must be answered with a redirect, and returns where it leads.
func (in *installation) postForm(c *http.Client, path string, form url.Values) string {
	in.t.Helper()
	res := in.send(c, path, form)
	if res.StatusCode != http.StatusSeeOther {
		in.t.Fatalf("POST %s: %s, want 303", path, res.Status)
	}
	return res.Header.Get("Location")
}

// visitor is somebody who is not logged in.
func (in *installation) visitor() *tab {
	in.t.Helper()
	return newTab(in.t, in.url, nil)
}

// browser is somebody who has logged in already. Tests of the log-in itself use visitor.
func (in *installation) browser(email string) *tab {
	in.t.Helper()
	b := in.visitor()
	here, err := url.Parse(in.url)
	if err != nil {
		in.t.Fatal(err)
	}
	for _, c := range in.client(email).Jar.Cookies(here) {
		b.do(command(network.SetCookie, network.SetCookieParams{Name: c.Name, Value: c.Value, URL: in.url}))
	}
	return b
}

// shop is a project of its own, so that tests can share an installation.
type shop struct {
	*installation
	id, key string
}

func (in *installation) openShop(name string) *shop {
	in.t.Helper()
	var p struct{ ProjectID, APIKey string }
	if out := in.command("project", "create", "--name", name, "--owner", owner, "--json"); json.Unmarshal([]byte(out), &p) != nil {
		in.t.Fatalf("project create --json says\n%s", out)
	}
	return &shop{installation: in, id: p.ProjectID, key: p.APIKey}
}

// page is an address in the shop's part of the panel.
func (s *shop) page(format string, args ...any) string {
	return "/p/" + s.id + fmt.Sprintf(format, args...)
}

// hire lets somebody into the project the way people do: they ask, and the owner approves.
func (s *shop) hire(email, role string) {
	s.t.Helper()
	s.postForm(s.client(email), "/projects/access", url.Values{"project": {s.id}, "reason": {"I look after deliveries"}})
	boss := s.client(owner)
	s.postForm(boss, s.page("/team/requests/%s/approve", s.requestOf(boss)), url.Values{"role": {role}})
}

// fetch reads a page without a browser.
func (in *installation) fetch(c *http.Client, path string) string {
	in.t.Helper()
	req, err := http.NewRequestWithContext(in.t.Context(), http.MethodGet, in.url+path, nil)
	if err != nil {
		in.t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		in.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		in.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		in.t.Fatalf("GET %s: %s\n%s", path, res.Status, body)
	}
	return string(body)
}

// until looks again and again until something is so.
func (in *installation) until(what string, ok func() bool) {
	in.t.Helper()
	timeout := time.NewTimer(browserPatience)
	defer timeout.Stop()
	glance := time.NewTicker(browserGlance)
	defer glance.Stop()
	for !ok() {
		select {
		case <-glance.C:
		case <-timeout.C:
			in.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// requestOf reads the id of the newest access request off the team's page.
func (s *shop) requestOf(c *http.Client) string {
	s.t.Helper()
	body := s.fetch(c, s.page("/team"))
	_, rest, found := strings.Cut(body, "/team/requests/")
	if !found {
		s.t.Fatal("the team's page lists no access request")
	}
	id, _, _ := strings.Cut(rest, "/")
	return id
}

// endpoint makes an endpoint; extra overrides its settings.
func (s *shop) endpoint(address, description string, extra map[string]any) string {
	s.t.Helper()
	settings := map[string]any{"url": address, "description": description}
	for name, value := range extra {
		settings[name] = value
	}
	var e struct{ ID string }
	s.call(s.key, "POST", "/v1/endpoints", settings, &e, http.StatusCreated)
	return e.ID
}

// publish hands an event over and returns its id.
func (s *shop) publish(eventType string, data any) string {
	s.t.Helper()
	var p struct{ ID string }
	s.call(s.key, "POST", "/v1/events", map[string]any{"type": eventType, "data": data}, &p, http.StatusAccepted)
	return p.ID
}

// delivery is a task as the API tells it.
type delivery struct {
	ID         json64 `json:"id"`
	EventID    string `json:"eventId"`
	EndpointID string `json:"endpointId"`
	Status     string `json:"status"`
	Reason     string `json:"reason"`
}

// json64 is a task's number, whether the API writes it as text or not.
type json64 string

func (n *json64) UnmarshalJSON(raw []byte) error {
	*n = json64(strings.Trim(string(raw), `"`))
	return nil
}

// settled waits until an event has as many deliveries as said, all in a status, and returns them.
func (s *shop) settled(event, status string, count int) []delivery {
	s.t.Helper()
	var list struct{ Data []delivery }
	s.until(strconv.Itoa(count)+" deliveries that are "+status, func() bool {
		s.call(s.key, "GET", "/v1/deliveries?limit=200&eventId="+event, nil, &list, http.StatusOK)
		for _, d := range list.Data {
			if d.Status != status {
				return false
			}
		}
		return len(list.Data) == count
	})
	return list.Data
}

// settledTask waits until a task is in a status.
func (s *shop) settledTask(task, status string) {
	s.t.Helper()
	s.until("task "+task+" to be "+status, func() bool {
		var d delivery
		s.call(s.key, "GET", "/v1/deliveries/"+task, nil, &d, http.StatusOK)
		return d.Status == status
	})
}

// customer is a receiver whose answer may change, and who counts what it got.
type customer struct {
	*httptest.Server
	answer   atomic.Pointer[http.HandlerFunc]
	requests atomic.Int64
}

func newCustomer(t testing.TB, answer http.HandlerFunc) *customer {
	t.Helper()
	c := &customer{}
	c.answers(answer)
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		(*c.answer.Load())(w, r)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *customer) answers(answer http.HandlerFunc) { c.answer.Store(&answer) }

// says answers with a status and a body.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // The caller may be gone.
	}
}
