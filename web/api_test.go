package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"entrega/internal/tenant"
)

// apiClient is a project's API as a program sees it.
type apiClient struct {
	p       *panel
	key     string
	headers http.Header
}

// api makes a key for a project with the scopes, all of them when none are given.
func (p *panel) api(project tenant.Project, scopes ...tenant.Scope) *apiClient {
	p.t.Helper()
	if len(scopes) == 0 {
		scopes = tenant.Scopes()
	}
	_, key, err := tenant.CreateAPIKey(p.ctx, p.pool, p.ownerOf(project), project.ID, tenant.NewAPIKey{Name: "test", Scopes: scopes})
	if err != nil {
		p.t.Fatal(err)
	}
	return &apiClient{p: p, key: key}
}

// with is the same client with one more header.
func (c *apiClient) with(name, value string) *apiClient {
	headers := c.headers.Clone()
	if headers == nil {
		headers = http.Header{}
	}
	headers.Set(name, value)
	return &apiClient{p: c.p, key: c.key, headers: headers}
}

// answered is an answer of the API.
type answered struct {
	t      *testing.T
	status int
	header http.Header
	raw    []byte
	body   map[string]any
}

// do sends a request; body may be a string, which is sent as it is, or a value to encode.
func (c *apiClient) do(method, path string, body any) answered {
	c.p.t.Helper()
	a, err := c.try(c.p.ctx, method, path, body)
	if err != nil {
		c.p.t.Fatal(err)
	}
	return a
}

func (c *apiClient) try(ctx context.Context, method, path string, body any) (answered, error) {
	var reader io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(body)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			return answered{}, err
		}
		reader = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.p.url+path, reader)
	if err != nil {
		return answered{}, err
	}
	if reader != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	for name, values := range c.headers {
		r.Header[name] = values
	}
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return answered{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return answered{}, err
	}
	a := answered{t: c.p.t, status: response.StatusCode, header: response.Header, raw: raw}
	if strings.Contains(response.Header.Get("Content-Type"), "json") {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber() // An event's data may hold numbers that fit no type of Go.
		if err := decoder.Decode(&a.body); err != nil {
			return answered{}, fmt.Errorf("read the answer %s: %w", raw, err)
		}
	}
	return a, nil
}

// is checks the status and returns the answer.
func (a answered) is(status int) answered {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.raw)
	}
	return a
}

// problem checks that the answer is a problem with the status and code, and returns its sentences by field.
func (a answered) problem(status int, code string) map[string]string {
	a.t.Helper()
	a.is(status)
	if media := a.header.Get("Content-Type"); media != "application/problem+json" {
		a.t.Errorf("a problem comes as %q", media)
	}
	if got := a.text("code"); got != code {
		a.t.Errorf("code %q, want %q: %s", got, code, a.raw)
	}
	if a.text("requestId") == "" || a.text("requestId") != a.header.Get("X-Request-Id") || a.text("title") != http.StatusText(status) ||
		a.text("detail") == "" || a.text("type") != "about:blank" || a.number("status") != int64(status) {
		a.t.Errorf("the problem is not whole: %s", a.raw)
	}
	fields := map[string]string{}
	for _, e := range a.body["errors"].([]any) {
		e := e.(map[string]any)
		fields[e["field"].(string)] = e["detail"].(string)
	}
	return fields
}

// text is a member that is a string, with dots for inner ones; "" for null.
func (a answered) text(path string) string {
	a.t.Helper()
	s, _ := a.at(path).(string)
	return s
}

func (a answered) number(path string) int64 {
	a.t.Helper()
	text, _ := a.at(path).(json.Number)
	n, err := text.Int64()
	if err != nil {
		a.t.Fatalf("%s is no number: %s", path, a.raw)
	}
	return n
}

func (a answered) list(path string) []any {
	a.t.Helper()
	l, ok := a.at(path).([]any)
	if !ok {
		a.t.Fatalf("%s is no list: %s", path, a.raw)
	}
	return l
}

func (a answered) at(path string) any {
	a.t.Helper()
	var v any = a.body
	for name := range strings.SplitSeq(path, ".") {
		object, ok := v.(map[string]any)
		if !ok {
			a.t.Fatalf("there is no %s: %s", path, a.raw)
		}
		if v, ok = object[name]; !ok {
			a.t.Fatalf("there is no %s: %s", path, a.raw)
		}
	}
	return v
}
