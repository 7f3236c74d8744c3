package egress_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/egress"
)

func TestSend_OneRequestAsGiven(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "thanks")
	}))
	defer srv.Close()
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("", 3600))
	d := newDoor(t, egress.Options{Allow: mustAllow(t, "127.0.0.1"), AllowHTTP: true, Now: func() time.Time { return at }})
	header := http.Header{"Webhook-Id": {"evt_1"}, "Content-Type": {"application/json"}}

	resp := d.Send(t.Context(), &egress.Request{URL: srv.URL + "/in?x=1", Header: header, Body: []byte(`{"a":1}`), Timeouts: patient})

	if resp.Failure != nil || resp.Status != 202 || string(resp.Body) != "thanks" || resp.BodyTruncated || resp.BodyError != nil {
		t.Fatalf("response %+v", resp)
	}
	if resp.Header.Get("X-Answer") != "yes" {
		t.Errorf("header of the answer: %v", resp.Header)
	}
	if got.Method != "POST" || got.RequestURI != "/in?x=1" || string(body) != `{"a":1}` || got.ContentLength != 7 {
		t.Errorf("receiver saw %s %s, body %q of length %d", got.Method, got.RequestURI, body, got.ContentLength)
	}
	want := http.Header{
		"Webhook-Id": {"evt_1"}, "Content-Type": {"application/json"}, "Content-Length": {"7"}, "User-Agent": {"Entrega"},
	}
	if diff := cmp.Diff(want, got.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if len(header) != 2 {
		t.Errorf("the caller's header was changed: %v", header)
	}
	if resp.Peer.String() != srv.Listener.Addr().String() || resp.ReusedConn || !resp.WroteRequest {
		t.Errorf("peer %s, reused %t, wrote %t", resp.Peer, resp.ReusedConn, resp.WroteRequest)
	}
	if want := time.Date(2026, 3, 1, 11, 0, 0, 123456000, time.UTC); !resp.StartedAt.Equal(want) || resp.StartedAt.Location() != time.UTC {
		t.Errorf("started at %s, want %s", resp.StartedAt, want)
	}
	if !resp.FinishedAt.After(resp.StartedAt) {
		t.Errorf("finished at %s, not after the start", resp.FinishedAt)
	}
	tm := resp.Timings
	if tm.Connect <= 0 || tm.FirstByte <= 0 || tm.DNS != 0 || tm.TLS != 0 || tm.Connect+tm.FirstByte > tm.Total {
		t.Errorf("timings %+v", tm)
	}
}

func TestSend_TimingsOfAFreshAndAPooledTLSConnection(t *testing.T) {
	t.Parallel()
	for _, http2 := range []bool{false, true} {
		var proto string
		_, d, url := newTLSReceiver(t, http2, func(_ http.ResponseWriter, r *http.Request) { proto = r.Proto })
		fresh := d.Send(t.Context(), &egress.Request{URL: url, Body: []byte("x"), Timeouts: patient})
		if fresh.Failure != nil || fresh.Status != 200 {
			t.Fatalf("fresh: %+v", fresh.Failure)
		}
		if want := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]; proto != want {
			t.Errorf("spoke %s, want %s", proto, want)
		}
		tm := fresh.Timings
		if tm.DNS <= 0 || tm.Connect <= 0 || tm.TLS <= 0 || tm.FirstByte <= 0 || tm.DNS+tm.Connect+tm.TLS+tm.FirstByte > tm.Total {
			t.Errorf("http2 %t: timings %+v", http2, tm)
		}
		pooled := d.Send(t.Context(), &egress.Request{URL: url, Body: []byte("x"), Timeouts: patient})
		if pooled.Failure != nil || !pooled.ReusedConn || pooled.Peer != fresh.Peer {
			t.Errorf("http2 %t: pooled: %+v", http2, pooled)
		}
		if tm := pooled.Timings; tm.DNS != 0 || tm.Connect != 0 || tm.TLS != 0 || tm.FirstByte <= 0 {
			t.Errorf("http2 %t: timings of a pooled connection: %+v", http2, tm)
		}
	}
}

func TestSend_RedirectIsAnAnswerAndNotFollowed(t *testing.T) {
	t.Parallel()
	inner := newScript(t, answer("HTTP/1.1 200 OK\r\n\r\n", false))
	srv := httptest.NewServer(http.RedirectHandler(inner.url(), http.StatusFound))
	defer srv.Close()
	resp := localDoor(t).Send(t.Context(), &egress.Request{URL: srv.URL, Body: []byte("x"), Timeouts: patient})
	if resp.Failure != nil || resp.Status != 302 || resp.Header.Get("Location") != inner.url() {
		t.Errorf("status %d, Location %q, failure %v", resp.Status, resp.Header.Get("Location"), resp.Failure)
	}
	inner.stop()
	if n := inner.conns.Load(); n != 0 {
		t.Errorf("the target of the redirect saw %d connections", n)
	}
}

func TestSend_BodyIsKeptTo16KiBAsItCame(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	zw := gzip.NewWriter(&bomb)
	io.Copy(zw, io.LimitReader(zeros{}, 10<<20))
	zw.Close()
	tests := []struct {
		name      string
		encoding  string
		body      []byte
		chunked   bool
		truncated bool
		reusable  bool
	}{
		{name: "empty", reusable: true},
		{name: "small", body: []byte("ok"), reusable: true},
		{name: "not UTF-8", body: []byte{0xff, 0x00, 0xfe, 0x80}, reusable: true},
		{name: "exactly 16 KiB", body: bytes.Repeat([]byte("a"), 16<<10), reusable: true},
		{name: "exactly 16 KiB, chunked", body: bytes.Repeat([]byte("a"), 16<<10), chunked: true, reusable: true},
		{name: "one byte more", body: bytes.Repeat([]byte("a"), 16<<10+1), truncated: true, reusable: true},
		{name: "short enough to drain", body: bytes.Repeat([]byte("a"), 48<<10), chunked: true, truncated: true, reusable: true},
		{name: "too long to drain", body: bytes.Repeat([]byte("a"), 1<<20), truncated: true},
		{name: "too long to drain, chunked", body: bytes.Repeat([]byte("a"), 1<<20), chunked: true, truncated: true},
		{name: "gzip bomb", encoding: "gzip", body: bomb.Bytes(), reusable: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept-Encoding") != "" {
					t.Errorf("asked for encoding %q", r.Header.Get("Accept-Encoding"))
				}
				if tt.encoding != "" {
					w.Header().Set("Content-Encoding", tt.encoding)
				}
				if tt.chunked {
					w.(http.Flusher).Flush()
				}
				w.Write(tt.body)
			}))
			defer srv.Close()
			d := localDoor(t)
			resp := d.Send(t.Context(), &egress.Request{URL: srv.URL, Body: []byte("x"), Timeouts: patient})
			if resp.Failure != nil || resp.BodyError != nil || resp.Status != 200 {
				t.Fatalf("status %d, failure %v, body error %v", resp.Status, resp.Failure, resp.BodyError)
			}
			if want := tt.body[:min(len(tt.body), 16<<10)]; !bytes.Equal(resp.Body, want) {
				t.Errorf("body of %d bytes, want the first %d as sent", len(resp.Body), len(want))
			}
			if resp.BodyTruncated != tt.truncated {
				t.Errorf("truncated %t, want %t", resp.BodyTruncated, tt.truncated)
			}
			if again := d.Send(t.Context(), &egress.Request{URL: srv.URL, Body: []byte("x"), Timeouts: patient}); again.ReusedConn != tt.reusable {
				t.Errorf("connection reused %t, want %t", again.ReusedConn, tt.reusable)
			}
		})
	}
}

// zeros is an endless reader of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestSend_BadRequestsAreConfigurationErrors(t *testing.T) {
	t.Parallel()
	s := newScript(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false))
	d := localDoor(t)
	tests := []struct {
		name string
		req  egress.Request
	}{
		{"header name", egress.Request{Header: http.Header{"Bad Name": {"x"}}}},
		{"empty header name", egress.Request{Header: http.Header{"": {"x"}}}},
		{"header value", egress.Request{Header: http.Header{"X-Secret": {"hunter2\r\nX-Other: y"}}}},
		{"framing", egress.Request{Header: http.Header{"Content-Length": {"5"}}}},
		{"framing in lower case", egress.Request{Header: http.Header{"transfer-encoding": {"chunked"}}}},
		{"host", egress.Request{Header: http.Header{"Host": {"other.example"}}}},
		{"expect", egress.Request{Header: http.Header{"Expect": {"100-continue"}}}},
		{"idempotency key", egress.Request{Header: http.Header{"idempotency-key": {"k"}}}},
		{"other idempotency key", egress.Request{Header: http.Header{"X-Idempotency-Key": {"k"}}}},
		{"method", egress.Request{Method: "GE T"}},
		{"tunnel", egress.Request{Method: "CONNECT"}},
		{"unreadable URL", egress.Request{URL: "http://127.0.0.1/a b"}},
		{"odd address", egress.Request{URL: "http://0x7f.1/"}},
	}
	for _, tt := range tests {
		if tt.req.URL == "" {
			tt.req.URL = s.url()
		}
		resp := d.Send(t.Context(), &tt.req)
		t.Run(tt.name, func(t *testing.T) {
			wantFailure(t, resp, egress.ConfigurationError, "")
			if strings.Contains(resp.Failure.Error(), "hunter2") {
				t.Errorf("the sentence shows the value: %s", resp.Failure.Error())
			}
		})
	}
	s.stop()
	if n := s.conns.Load(); n != 0 {
		t.Errorf("the receiver saw %d connections", n)
	}
}

func TestSend_IdempotencyKeyNeedsPermission(t *testing.T) {
	t.Parallel()
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Idempotency-Key") }))
	defer srv.Close()
	resp := localDoor(t).Send(t.Context(), &egress.Request{
		URL: srv.URL, Header: http.Header{"Idempotency-Key": {"k1"}}, Body: []byte("x"), AllowIdempotencyKey: true, Timeouts: patient,
	})
	if resp.Failure != nil || got != "k1" {
		t.Errorf("receiver saw key %q, failure %v", got, resp.Failure)
	}
}

func TestSend_ManyAtOnceShareOneDoor(t *testing.T) {
	t.Parallel()
	const n = 50
	var mu sync.Mutex
	seen := map[string]int{}
	handler := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen[r.Proto+string(body)]++
		mu.Unlock()
		w.Write(body)
	}
	srv := httptest.NewServer(http.HandlerFunc(handler))
	defer srv.Close()
	_, secure, url := newTLSReceiver(t, true, handler)
	plain := localDoor(t)
	// With a connection there, the many share it.
	secure.Send(t.Context(), &egress.Request{URL: url, Timeouts: patient})

	var wg sync.WaitGroup
	send := func(d *egress.Door, url, body string) {
		resp := d.Send(t.Context(), &egress.Request{URL: url, Body: []byte(body), Timeouts: patient})
		if resp.Failure != nil || string(resp.Body) != body {
			t.Errorf("%s: %v, body of %d bytes", url, resp.Failure, len(resp.Body))
		}
	}
	for i := range n {
		body := strings.Repeat("x", i+1)
		wg.Go(func() { send(plain, srv.URL, body) })
		wg.Go(func() { send(secure, url, body) })
	}
	wg.Wait()

	if len(seen) != 2*n+1 {
		t.Errorf("the receivers saw %d requests, want %d", len(seen), 2*n+1)
	}
	for body, times := range seen {
		if times != 1 {
			t.Errorf("request %q was sent %d times", body, times)
		}
	}
}

func TestNew_RefusesSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	for _, opts := range []egress.Options{
		{UserAgent: "a\r\nb"},
		{DenyAddrs: []netip.AddrPort{{}}},
		{DenyAddrs: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:0")}},
	} {
		if _, err := egress.New(opts); err == nil {
			t.Errorf("%+v was taken", opts)
		}
	}
}

func TestSend_HeadAndBodyLeaveInOnePiece(t *testing.T) {
	t.Parallel()
	pieces := make(chan string, 1)
	s := newScript(t, func(_ *script, conn net.Conn, _ int) {
		buf := make([]byte, 64<<10)
		n, _ := conn.Read(buf)
		pieces <- string(buf[:n])
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	body := strings.Repeat("x", 1024)
	if resp := localDoor(t).Send(t.Context(), &egress.Request{URL: s.url(), Body: []byte(body)}); resp.Status != 200 {
		t.Fatalf("%+v", resp)
	}
	if piece := <-pieces; !strings.HasPrefix(piece, "POST ") || !strings.HasSuffix(piece, body) {
		t.Errorf("the first piece is %q", piece)
	}
}
