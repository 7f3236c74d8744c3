package mailer_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/jobs"
	"entrega/mailer"
)

// mailAPI is a provider: it answers by a rule that the test can change, and drops a second request with the same idempotency key as
// real ones do.
type mailAPI struct {
	b   *bundle
	url string

	mu       sync.Mutex
	answer   http.HandlerFunc
	requests []apiRequest
	mails    map[string]string // by idempotency key
}

type apiRequest struct {
	header http.Header
	body   string
}

func setupAPI(t *testing.T, shape mailer.Shape) (*bundle, *mailAPI) {
	t.Helper()
	return setupShape(t, shape, mailer.APISettings{})
}

// setupShape is setupAPI with more settings than those that every API needs.
func setupShape(t *testing.T, shape mailer.Shape, s mailer.APISettings) (*bundle, *mailAPI) {
	t.Helper()
	a := &mailAPI{mails: map[string]string{}}
	server := httptest.NewServer(http.HandlerFunc(a.serve))
	t.Cleanup(server.Close)
	a.url = server.URL + "/emails"
	s.Shape, s.URL, s.Key = shape, a.url, "key_secret"
	b := setup(t, mailer.Settings{Kind: mailer.API, API: s})
	a.mu.Lock()
	a.b = b
	a.mu.Unlock()
	return b, a
}

func (a *mailAPI) serve(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	a.mu.Lock()
	a.requests = append(a.requests, apiRequest{req.Header, string(body)})
	answer, b := a.answer, a.b
	a.mu.Unlock()
	if b != nil {
		defer b.signal()
	}
	if answer != nil {
		answer(w, req)
		return
	}
	a.take(req)
	_, _ = io.WriteString(w, `{"id":"provider-1","MessageID":"provider-1"}`)
}

// take keeps a mail, once per key.
func (a *mailAPI) take(req *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mails[req.Header.Get("Idempotency-Key")] = "taken"
}

func (a *mailAPI) answers(answer http.HandlerFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

func (a *mailAPI) got() []apiRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]apiRequest(nil), a.requests...)
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "no mail for "+buyer)
	}
}

func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func TestAPI_Answers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		state  jobs.TaskState
		want   string
	}{
		"200":                   {nil, jobs.StateCompleted, "1 success 200 accepted accepted *"},
		"202":                   {status(202), jobs.StateCompleted, "1 success 202 accepted accepted *"},
		"429 with a time":       {status(429, "Retry-After", "120"), jobs.StateSnoozed, "1 throttle 429 snoozed retry_after"},
		"429 without":           {status(429), jobs.StateRetryable, "1 throttle 429 retry_scheduled failed *"},
		"503 with a time":       {status(503, "Retry-After", "120"), jobs.StateSnoozed, "1 throttle 503 snoozed retry_after"},
		"503 without":           {status(503), jobs.StateRetryable, "1 server 503 retry_scheduled failed *"},
		"500":                   {status(500), jobs.StateRetryable, "1 server 500 retry_scheduled failed *"},
		"a reset":               {reset, jobs.StateRetryable, "1 network 0 retry_scheduled failed *"},
		"400":                   {status(400), jobs.StateDiscarded, "1 client 400 permanent_failure rejected *"},
		"404":                   {status(404), jobs.StateDiscarded, "1 client 404 permanent_failure rejected *"},
		"409":                   {status(409), jobs.StateDiscarded, "1 client 409 permanent_failure rejected *"},
		"422":                   {status(422), jobs.StateDiscarded, "1 client 422 permanent_failure rejected *"},
		"401 pauses":            {status(401), jobs.StateSnoozed, "1 client 401 snoozed transport_paused"},
		"403 pauses":            {status(403), jobs.StateSnoozed, "1 client 403 snoozed transport_paused"},
		"302 is never followed": {status(302, "Location", "https://elsewhere.example/"), jobs.StateRetryable, "1 redirect 302 retry_scheduled failed *"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, a := setupAPI(t, mailer.ShapeResend)
			a.answers(tt.answer)
			b.start()
			q := b.notify(order("SO-1", buyer))
			b.reach(q.TaskID, tt.state)
			if diff := cmp.Diff([]string{tt.want}, b.ledger(q.TaskID)); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
			if n := len(a.got()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
			b.wantNowhere(buyer)
			b.wantNowhere("key_secret")
		})
	}
}

func TestAPI_RepeatedKeyMakesOneMail(t *testing.T) {
	t.Parallel()
	b, a := setupAPI(t, mailer.ShapeResend)
	first := true
	a.answers(func(w http.ResponseWriter, req *http.Request) {
		a.take(req)
		if first {
			first = false
			reset(w, req)
			return
		}
		_, _ = io.WriteString(w, `{"id":"provider-1"}`)
	})
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateRetryable)
	b.due()
	b.reach(q.TaskID, jobs.StateCompleted)
	got := a.got()
	if len(got) != 2 || got[0].body != got[1].body || got[0].header.Get("Idempotency-Key") != q.ID || got[1].header.Get("Idempotency-Key") != q.ID {
		t.Errorf("the requests are %+v", got)
	}
	if len(a.mails) != 1 {
		t.Errorf("%d mails, want 1", len(a.mails))
	}
	if value[bool](b, `select possible_duplicate from notifications where id = $1`, q.ID) {
		t.Error("a mail that the key protects is marked as a possible duplicate")
	}
	if id := value[string](b, `select provider_id from notifications where id = $1`, q.ID); id != "provider-1" {
		t.Errorf("the provider's id is %q", id)
	}
}

func TestAPI_ResetWithoutKeysIsAPossibleDuplicate(t *testing.T) {
	t.Parallel()
	b, a := setupAPI(t, mailer.ShapePostmark)
	a.answers(reset)
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateRetryable)
	if !value[bool](b, `select possible_duplicate from notifications where id = $1`, q.ID) {
		t.Error("the mail is not marked as a possible duplicate")
	}
}

func TestAPI_Shapes(t *testing.T) {
	t.Parallel()
	n := order("SO-1", buyer)
	n.Text, n.HTML = `"},{"to":"victim@elsewhere.example"`, "<p>für {{text}}</p>"
	const from = `"Shop" <mail@shop.example>`
	type wanted struct {
		header map[string]string
		body   map[string]any
	}
	for shape, tt := range map[mailer.Shape]struct {
		settings mailer.APISettings
		// want is the request for a notification's id.
		want func(id string) wanted
	}{
		mailer.ShapeResend: {mailer.APISettings{}, func(id string) wanted {
			return wanted{map[string]string{"Authorization": "Bearer key_secret", "Idempotency-Key": id}, map[string]any{
				"from": from, "to": []any{buyer}, "subject": n.Subject, "text": n.Text, "html": n.HTML,
				"headers": map[string]any{"Message-ID": "<" + id + "@shop.example>", "Auto-Submitted": "auto-generated"}}}
		}},
		mailer.ShapePostmark: {mailer.APISettings{}, func(id string) wanted {
			return wanted{map[string]string{"X-Postmark-Server-Token": "key_secret", "Idempotency-Key": "", "Authorization": ""}, map[string]any{
				"From": from, "To": buyer, "Subject": n.Subject, "TextBody": n.Text, "HtmlBody": n.HTML, "Metadata": map[string]any{"notification": id},
				"Headers": []any{map[string]any{"Name": "Message-ID", "Value": "<" + id + "@shop.example>"}, map[string]any{"Name": "X-PM-KeepID", "Value": "true"},
					map[string]any{"Name": "Auto-Submitted", "Value": "auto-generated"}}}}
		}},
		mailer.ShapeGeneric: {mailer.APISettings{IDField: "MessageID", Template: `{"mail":[{"who":"{{to}}","by":"{{from}}"},"{{subject}}: {{text}} {{html}}"],"ref":"{{id}} {{messageId}}","n":1}`},
			func(id string) wanted {
				return wanted{map[string]string{"Authorization": "Bearer key_secret", "Idempotency-Key": id}, map[string]any{
					"mail": []any{map[string]any{"who": buyer, "by": from}, n.Subject + ": " + n.Text + " " + n.HTML}, "ref": id + " <" + id + "@shop.example>", "n": 1.0}}
			}},
	} {
		t.Run(string(shape), func(t *testing.T) {
			t.Parallel()
			b, a := setupShape(t, shape, tt.settings)
			b.start()
			q := b.notify(n)
			b.reach(q.TaskID, jobs.StateCompleted)
			got, want := a.got(), tt.want(q.ID)
			if len(got) != 1 {
				t.Fatalf("%d requests", len(got))
			}
			for name, value := range want.header {
				if is := got[0].header.Get(name); is != value {
					t.Errorf("the header %s is %q, want %q", name, is, value)
				}
			}
			if media := got[0].header.Get("Content-Type"); media != "application/json" {
				t.Errorf("the body is said to be %q", media)
			}
			var body map[string]any
			if err := json.Unmarshal([]byte(got[0].body), &body); err != nil {
				t.Fatalf("the body is no JSON: %v\n%s", err, got[0].body)
			}
			if diff := cmp.Diff(want.body, body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if id := value[string](b, `select provider_id from notifications where id = $1`, q.ID); id != "provider-1" {
				t.Errorf("the provider's id is %q", id)
			}
		})
	}
}
