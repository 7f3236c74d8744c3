package webhooks_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// received is one request as a receiver saw it.
type received struct {
	Header http.Header
	Body   string
	At     time.Time
	Path   string
	Method string
}

// id is the webhook-id.
func (r received) id() string { return r.Header.Get("webhook-id") }

// receiver is a customer's server: it notes each request and answers by a rule that the test can change.
type receiver struct {
	t      *testing.T
	server *httptest.Server
	url    string

	mu       sync.Mutex
	answer   http.HandlerFunc
	requests []received
	inFlight int
	most     int // requests at once
}

// receiver starts a server that answers 200 until told otherwise.
func (b *bundle) receiver() *receiver {
	b.t.Helper()
	r := &receiver{t: b.t}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			b.t.Errorf("a receiver cannot read a request: %v", err)
		}
		r.mu.Lock()
		r.requests = append(r.requests, received{Header: req.Header, Body: string(body), At: time.Now(), Path: req.URL.Path, Method: req.Method})
		answer := r.answer
		r.inFlight++
		r.most = max(r.most, r.inFlight)
		r.mu.Unlock()
		b.signal()
		if answer != nil {
			answer(w, req)
		}
		r.mu.Lock()
		r.inFlight--
		r.mu.Unlock()
	}))
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.server.Start()
	b.t.Cleanup(r.server.Close)
	r.url = r.server.URL + "/hook"
	return r
}

// answers sets the rule for the requests to come.
func (r *receiver) answers(answer http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// status answers with a status.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// retryAfter answers with a status and a Retry-After.
func retryAfter(code int, value string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", value)
		w.WriteHeader(code)
	}
}

// inTurn answers the first requests with these statuses, and 200 from then on.
func inTurn(codes ...int) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if len(codes) == 0 {
			return
		}
		w.WriteHeader(codes[0])
		codes = codes[1:]
	}
}

// hangs answers with a status once released, at the latest at the end of the test.
func (r *receiver) hangs(code int) (release func()) {
	r.t.Helper()
	gate := make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	r.t.Cleanup(release)
	r.answers(func(w http.ResponseWriter, req *http.Request) {
		select {
		case <-gate:
		case <-req.Context().Done():
		}
		w.WriteHeader(code)
	})
	return release
}

func (r *receiver) got() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.requests...)
}

func (r *receiver) count() int { return len(r.got()) }

// mostAtOnce is how many requests were under way at the same time, at most.
func (r *receiver) mostAtOnce() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}

// ids are the webhook-ids in the order of arrival.
func (r *receiver) ids() []string {
	var ids []string
	for _, req := range r.got() {
		ids = append(ids, req.id())
	}
	return ids
}

// wantVerified checks a request with the Standard Webhooks library, as a receiver would.
func wantVerified(t *testing.T, secret string, req received) {
	t.Helper()
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := wh.Verify([]byte(req.Body), req.Header); err != nil {
		t.Errorf("the signature of %s: %v", req.id(), err)
	}
}

// wantRefused checks that a receiver with this secret would not take the request.
func wantRefused(t *testing.T, secret string, req received) {
	t.Helper()
	wh, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := wh.Verify([]byte(req.Body), req.Header); err == nil || !strings.Contains(err.Error(), "no matching signature") {
		t.Errorf("a removed secret still verifies %s: %v", req.id(), err)
	}
}
