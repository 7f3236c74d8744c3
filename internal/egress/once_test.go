package egress_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"

	"golang.org/x/net/http2"

	"entrega/internal/egress"
)

// onceRequests are requests that net/http would send again for different reasons: the body can be rewound, there is
// none and the method is idempotent, or a header says that a repeat is harmless.
var onceRequests = map[string]egress.Request{
	"POST":                      {Body: []byte("x")},
	"POST, empty":               {},
	"GET":                       {Method: http.MethodGet},
	"POST with key":             {Body: []byte("x"), Header: http.Header{"Idempotency-Key": {"k"}}, AllowIdempotencyKey: true},
	"POST with key, empty":      {Header: http.Header{"X-Idempotency-Key": {"k"}}, AllowIdempotencyKey: true},
	"DELETE with key in UPPER":  {Method: http.MethodDelete, Header: http.Header{"IDEMPOTENCY-KEY": {"k"}}, AllowIdempotencyKey: true},
	"PUT larger than a segment": {Method: http.MethodPut, Body: make([]byte, 256<<10)},
}

func TestSend_CloseAfterTheRequestMeansOneRequest(t *testing.T) {
	t.Parallel()
	for name, req := range onceRequests {
		t.Run(name+" on a fresh connection", func(t *testing.T) {
			t.Parallel()
			s := newScript(t, answer("", false))
			d := localDoor(t)
			req := req
			req.URL, req.Timeouts = s.url(), patient
			resp := d.Send(t.Context(), &req)
			wantFailure(t, resp, egress.ConnectionFailed, egress.PhaseHeaders)
			if resp.ReusedConn || !resp.WroteRequest {
				t.Errorf("connection reused %t, wrote request %t", resp.ReusedConn, resp.WroteRequest)
			}
			d.Close()
			s.stop()
			if n := s.requests.Load(); n != 1 {
				t.Errorf("the receiver saw %d requests, want 1", n)
			}
		})
		t.Run(name+" on a reused connection", func(t *testing.T) {
			t.Parallel()
			s := newScript(t, func(s *script, conn net.Conn, n int) {
				br := bufio.NewReader(conn)
				if n > 1 {
					// A connection that a retry would open: it would be served.
					for s.request(br) {
						io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					}
					return
				}
				s.request(br)
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				s.request(br)
			})
			d := localDoor(t)
			req := req
			req.URL, req.Timeouts = s.url(), patient
			if first := d.Send(t.Context(), &req); first.Failure != nil {
				t.Fatal(first.Failure)
			}
			resp := d.Send(t.Context(), &req)
			wantFailure(t, resp, egress.ConnectionFailed, egress.PhaseHeaders)
			if !resp.ReusedConn || !resp.WroteRequest {
				t.Errorf("connection reused %t, wrote request %t", resp.ReusedConn, resp.WroteRequest)
			}
			d.Close()
			s.stop()
			if n := s.requests.Load(); n != 2 {
				t.Errorf("the receiver saw %d requests, want 2", n)
			}
		})
	}
}

// TestSend_HTTP2RefusalsMeanOneRequest covers what the loop of HTTP/2 takes as leave to send again: a stream that the
// server refuses, and a connection that goes away before it has looked at the stream.
func TestSend_HTTP2RefusalsMeanOneRequest(t *testing.T) {
	t.Parallel()
	refusals := map[string]func(fr *http2.Framer, stream uint32){
		"refused stream": func(fr *http2.Framer, stream uint32) { fr.WriteRSTStream(stream, http2.ErrCodeRefusedStream) },
		"protocol error": func(fr *http2.Framer, stream uint32) { fr.WriteRSTStream(stream, http2.ErrCodeProtocol) },
		"going away":     func(fr *http2.Framer, _ uint32) { fr.WriteGoAway(0, http2.ErrCodeNo, nil) },
	}
	config, roots := tlsConfig(t)
	config.NextProtos = []string{"h2"}
	for refusal, refuse := range refusals {
		for name, req := range onceRequests {
			t.Run(refusal+", "+name, func(t *testing.T) {
				t.Parallel()
				s := newScript(t, func(s *script, conn net.Conn, _ int) {
					session := tls.Server(conn, config)
					serveHTTP2(s, session, func(fr *http2.Framer, f *http2.HeadersFrame) { refuse(fr, f.StreamID) })
				})
				ns := newNameServer(t)
				ns.set("example.com", "127.0.0.1")
				d := newDoor(t, egress.Options{Resolver: ns.resolver(), Allow: mustAllow(t, "example.com"), RootCAs: roots})
				req := req
				req.URL, req.Timeouts = "https://example.com:"+portOf(t, s.listener.Addr()), patient
				resp := d.Send(t.Context(), &req)
				wantFailure(t, resp, egress.ConnectionFailed, egress.PhaseHeaders)
				d.Close()
				s.stop()
				if n := s.requests.Load(); n != 1 {
					t.Errorf("the receiver saw %d requests, want 1", n)
				}
			})
		}
	}
}

// serveHTTP2 speaks just enough HTTP/2 to count requests and to answer each as the test says.
func serveHTTP2(s *script, conn net.Conn, onHeaders func(*http2.Framer, *http2.HeadersFrame)) {
	go func() {
		<-s.over
		conn.Close()
	}()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	fr := http2.NewFramer(conn, conn)
	fr.WriteSettings()
	for {
		f, err := fr.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				fr.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				fr.WritePing(true, f.Data)
			}
		case *http2.HeadersFrame:
			s.requests.Add(1)
			onHeaders(fr, f)
		}
	}
}
