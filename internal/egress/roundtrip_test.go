package egress_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"entrega/internal/egress"
)

// client is how a library uses the door.
func client(d *egress.Door) *http.Client {
	return &http.Client{Transport: d.RoundTripper(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func TestRoundTripper_SendsWhatALibraryAsksFor(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("x"), 100<<10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if got := r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Authorization") + " " + string(body); got != "POST /token?x=1 Basic abc grant_type=code" {
			t.Errorf("the receiver got %q", got)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		w.Write(long)
	}))
	t.Cleanup(receiver.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, receiver.URL+"/token?x=1", strings.NewReader("grant_type=code"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Basic abc")
	resp, err := client(localDoor(t)).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusCreated || resp.Header.Get("Content-Type") != "application/json" || !bytes.Equal(body, long) {
		t.Errorf("status %d, type %q, %d bytes, want the answer whole", resp.StatusCode, resp.Header.Get("Content-Type"), len(body))
	}
}

func TestRoundTripper_HasTheSameGates(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(receiver.Close)
	ns := newNameServer(t)
	ns.set("rebound.example.com", "127.0.0.1")
	closed := newDoor(t, egress.Options{AllowHTTP: true, Resolver: ns.resolver()})
	_, port, _ := strings.Cut(strings.TrimPrefix(receiver.URL, "http://"), ":")
	for name, target := range map[string]string{
		"a literal":          receiver.URL,
		"a name for it":      "http://rebound.example.com:" + port,
		"no http":            "file:///etc/passwd",
		"a service's port":   "http://rebound.example.com:5432",
		"a user in the host": "http://user:pass@rebound.example.com",
	} {
		_, err := client(closed).Get(target)
		var failure *egress.Failure
		if !errors.As(err, &failure) || failure.Type != egress.BlockedByPolicy {
			t.Errorf("%s: error %v, want one of the guard", name, err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the receiver was asked %d times, want never", n)
	}
}

func TestRoundTripper_RefusesWhatIsTooLong(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write(bytes.Repeat([]byte("x"), 1<<20+1))
	}))
	t.Cleanup(receiver.Close)
	c := client(localDoor(t))
	var failure *egress.Failure
	if _, err := c.Get(receiver.URL); !errors.As(err, &failure) || failure.Phase != egress.PhaseBody {
		t.Errorf("an answer of more than 1 MiB: %v, want a failure in its body", err)
	}
	if _, err := c.Post(receiver.URL, "text/plain", bytes.NewReader(make([]byte, 64<<10+1))); !errors.As(err, &failure) || failure.Type != egress.ConfigurationError {
		t.Errorf("a request of more than 64 KiB: %v, want a failure", err)
	}
}

func TestRoundTripper_ARedirectIsLeftToTheClient(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/", http.StatusFound))
	t.Cleanup(receiver.Close)
	resp, err := client(localDoor(t)).Get(receiver.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != "http://169.254.169.254/" {
		t.Errorf("status %d to %q, want the redirect as it is", resp.StatusCode, resp.Header.Get("Location"))
	}
}
