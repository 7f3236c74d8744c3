package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAPI_TakesJSONOnly(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	for contentType, status := range map[string]int{
		"application/json":                  202,
		"Application/JSON; charset=UTF-8":   202,
		"application/json; charset=latin1":  415,
		"application/x-www-form-urlencoded": 415,
		"text/plain":                        415,
		"application/json, text/plain":      415,
		"/":                                 415,
	} {
		a := c.with("Content-Type", contentType).do("POST", "/v1/events", anEvent)
		if status == 202 {
			a.is(202)
			continue
		}
		a.problem(415, "unsupported_media_type")
	}
	c.with("Content-Encoding", "gzip").do("POST", "/v1/events", anEvent).problem(415, "unsupported_media_type")
	c.with("Content-Encoding", "identity").do("POST", "/v1/events", anEvent).is(202)
}

func TestAPI_AnswersJSONOnly(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	for accept, status := range map[string]int{
		"application/json":    200,
		"*/*":                 200,
		"application/*;q=0.5": 200,
		"text/html, application/xml;q=0.9, */*;q=0.8": 200,
		"text/html":            406,
		"application/json;q=0": 406,
		"application/yaml":     406,
		"nonsense":             406,
	} {
		a := c.with("Accept", accept).do("GET", "/v1/events", nil)
		if status == 200 {
			if media := a.is(200).header.Get("Content-Type"); media != "application/json" {
				t.Errorf("%s gets %s", accept, media)
			}
			continue
		}
		a.problem(406, "not_acceptable")
	}
	// Refused before anything is done.
	c.with("Accept", "text/html").do("POST", "/v1/events", anEvent).problem(406, "not_acceptable")
	var stored int
	if p.scan(&stored, `select count(*) from events`); stored != 0 {
		t.Error("an event was stored whose publisher got a refusal")
	}
}

func TestAPI_UnknownPathsAndMethodsAreProblems(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	for _, path := range []string{"/v1", "/v1/", "/v1/nothing", "/v1/events/a/b/c", "/v1/events/"} {
		c.do("GET", path, nil).problem(404, "not_found")
	}
	for call, allow := range map[string][]string{
		"DELETE /v1/events":          {"GET", "POST"},
		"PUT /v1/endpoints/x":        {"DELETE", "GET", "PATCH"},
		"GET /v1/deliveries/1/retry": {"POST"},
	} {
		method, path, _ := strings.Cut(call, " ")
		a := c.do(method, path, nil)
		a.problem(405, "method_not_allowed")
		for _, m := range allow {
			if !strings.Contains(a.header.Get("Allow"), m) {
				t.Errorf("%s: Allow is %q", call, a.header.Get("Allow"))
			}
		}
	}
}

func TestAPI_KeepsTheCallersRequestID(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours).with("X-Request-Id", "caller-42-abc")
	a := c.do("GET", "/v1/events/none", nil)
	a.problem(404, "not_found")
	if a.text("requestId") != "caller-42-abc" {
		t.Errorf("%s", a.raw)
	}
	if got := c.do("GET", "/v1/events", nil).is(200).header.Get("X-Request-Id"); got != "caller-42-abc" {
		t.Errorf("a success has the id %q", got)
	}
}

func TestAPI_MistakesOfOursTellNothingOfTheInside(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	p.exec(`alter table events rename to events_elsewhere`)
	for _, a := range []answered{c.do("GET", "/v1/events", nil), c.do("POST", "/v1/events", anEvent), c.do("POST", "/v1/events/batch", `{"events":[`+anEvent+`]}`)} {
		a.problem(500, "internal")
		if strings.Contains(string(a.raw), "relation") || strings.Contains(string(a.raw), "SQLSTATE") {
			t.Errorf("%s", a.raw)
		}
	}
}

// raw sends bytes as they are and reads what comes back.
func (p *panel) raw(request string) *http.Response {
	p.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		p.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		p.t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return response
}

func TestAPI_OddRequestsOnTheWire(t *testing.T) {
	t.Parallel()
	p := setup(t)
	key := p.api(p.ours).key
	head := "POST /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + "\r\n"
	chunk := func(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }
	for name, test := range map[string]struct {
		request string
		status  int
	}{
		"chunked, without a type":      {head + "Transfer-Encoding: chunked\r\n\r\n" + chunk(anEvent[:10]) + chunk(anEvent[10:]) + "0\r\n\r\n", 202},
		"a broken chunk":               {head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		"chunks beyond the bound":      {head + "Transfer-Encoding: chunked\r\n\r\n" + chunk(strings.Repeat(" ", 256<<10)) + chunk("  "), 413},
		"a length beyond the bound":    {head + "Content-Length: 300000\r\n\r\n", 413},
		"a length beyond any int":      {head + "Content-Length: 99999999999999999999\r\n\r\n", 400},
		"no body":                      {head + "\r\n", 400},
		"an empty body":                {head + "Content-Length: 0\r\n\r\n", 400},
		"blanks around":                {head + "Content-Length: " + fmt.Sprint(len(anEvent)+4) + "\r\n\r\n\r\n" + anEvent + "\t ", 202},
		"two keys":                     {head + "Authorization: Bearer x\r\nContent-Length: 2\r\n\r\n{}", 422},
		"two idempotency keys":         {head + "Idempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: " + fmt.Sprint(len(anEvent)) + "\r\n\r\n" + anEvent, 422},
		"an announced body that waits": {head + "Expect: 100-continue\r\nContent-Length: 300000\r\n\r\n", 413},
		"a path that climbs":           {"GET /v1/../v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + "\r\n\r\n", 404},
		"HTTP/1.0":                     {"GET /v1/policies HTTP/1.0\r\nAuthorization: Bearer " + key + "\r\n\r\n", 200},
	} {
		if response := p.raw(test.request); response.StatusCode != test.status {
			body, _ := io.ReadAll(response.Body)
			t.Errorf("%s: %d %s, want %d", name, response.StatusCode, body, test.status)
		}
	}
}

func TestDocs_ShowEveryCallAndNeedNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	p := setup(t)
	page := (&apiClient{p: p}).do("GET", "/docs", nil).is(200)
	html := string(page.raw)
	for _, op := range p.operations() {
		if !strings.Contains(html, `id="`+op.id+`"`) || !strings.Contains(html, "<code>"+op.path+"</code>") {
			t.Errorf("the page does not show %s %s", op.method, op.path)
		}
	}
	for _, foreign := range []string{`src="http`, `src="//`, `href="http`, "<style", "style=", "onclick=", "<script>"} {
		if strings.Contains(html, foreign) {
			t.Errorf("the page has %s", foreign)
		}
	}
	policy := page.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the page's policy is %q", policy)
	}
	document := (&apiClient{p: p}).do("GET", "/openapi.json", nil).is(200)
	if diff := cmp.Diff("3.1.0", document.text("openapi")); diff != "" || document.header.Get("Content-Type") != "application/json" {
		t.Error(diff, document.header.Get("Content-Type"))
	}
}
