package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"entrega/internal/egress"
)

func TestSend_HangInEachPhaseIsATimeoutOfThatPhase(t *testing.T) {
	t.Parallel()

	t.Run("dns", func(t *testing.T) {
		t.Parallel()
		ns := newNameServer(t)
		ns.fail("hooks.example.com", true)
		d := newDoor(t, egress.Options{Resolver: ns.resolver()})
		req := egress.Request{URL: "https://hooks.example.com/"}
		byPhase := sendToHang(t, d, req, egress.PhaseDNS, connect)
		wantFailure(t, byPhase, egress.Timeout, egress.PhaseDNS)
		if !strings.Contains(byPhase.Failure.Sentence, short.String()) {
			t.Errorf("the sentence does not name the limit of the phase: %s", byPhase.Failure.Sentence)
		}
		byTotal := sendToHang(t, d, req, egress.PhaseDNS, total)
		wantFailure(t, byTotal, egress.Timeout, egress.PhaseDNS)
		if byTotal.Timings.DNS < short/2 || byTotal.Timings.Connect != 0 || byTotal.WroteRequest || byTotal.Peer.IsValid() {
			t.Errorf("response %+v", byTotal)
		}
	})

	t.Run("connect", func(t *testing.T) {
		t.Parallel()
		target := fullBacklog(t)
		d := localDoor(t)
		req := egress.Request{URL: "http://" + target.String()}
		wantFailure(t, sendToHang(t, d, req, egress.PhaseConnect, connect), egress.Timeout, egress.PhaseConnect)
		byTotal := sendToHang(t, d, req, egress.PhaseConnect, total)
		wantFailure(t, byTotal, egress.Timeout, egress.PhaseConnect)
		if byTotal.Peer != target || byTotal.WroteRequest {
			t.Errorf("peer %s, want %s; wrote request %t", byTotal.Peer, target, byTotal.WroteRequest)
		}
	})

	t.Run("tls", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, func(s *script, conn net.Conn, _ int) { s.hang(conn) })
		d := localDoor(t)
		req := egress.Request{URL: "https://" + s.addr().String()}
		for _, set := range []func(*egress.Timeouts, time.Duration){handshaking, total} {
			resp := sendToHang(t, d, req, egress.PhaseTLS, set)
			wantFailure(t, resp, egress.Timeout, egress.PhaseTLS)
			if resp.Timings.Connect <= 0 || resp.Timings.TLS <= 0 || resp.WroteRequest {
				t.Errorf("timings %+v, wrote request %t", resp.Timings, resp.WroteRequest)
			}
		}
	})

	headers := map[string]string{
		"nothing":       "",
		"half a line":   "HTTP/1.1 200 O",
		"half a header": "HTTP/1.1 200 OK\r\nContent-Le",
		"1xx only":      "HTTP/1.1 103 Early Hints\r\n\r\n",
	}
	for name, text := range headers {
		t.Run("headers after "+name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, answer(text, true))
			resp := sendToHang(t, localDoor(t), egress.Request{URL: s.url(), Body: []byte("x")}, egress.PhaseHeaders, total)
			wantFailure(t, resp, egress.Timeout, egress.PhaseHeaders)
			if !resp.WroteRequest || resp.Peer != s.addr() {
				t.Errorf("wrote request %t, peer %s", resp.WroteRequest, resp.Peer)
			}
		})
	}

	t.Run("headers, body of the request not read", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, func(s *script, conn net.Conn, _ int) { <-s.over })
		resp := sendToHang(t, localDoor(t), egress.Request{URL: s.url(), Body: make([]byte, 32<<20)}, egress.PhaseHeaders, total)
		wantFailure(t, resp, egress.Timeout, egress.PhaseHeaders)
		if resp.WroteRequest {
			t.Error("a request that was not read counts as written")
		}
	})

	t.Run("body", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, answer("HTTP/1.1 500 No\r\nContent-Length: 100\r\nX-A: b\r\n\r\nhalf", true))
		resp := sendToHang(t, localDoor(t), egress.Request{URL: s.url(), Body: []byte("x")}, egress.PhaseBody, total)
		wantFailure(t, resp, egress.Timeout, egress.PhaseBody)
		if resp.Status != 500 || resp.Header.Get("X-A") != "b" || string(resp.Body) != "half" || resp.BodyError != resp.Failure {
			t.Errorf("what had come is not kept: %+v", resp)
		}
	})
}

// fullBacklog returns an address on loopback that takes no further connection: its listener never accepts, and its queue
// is full, so the kernel drops what arrives.
func fullBacklog(t *testing.T) netip.AddrPort {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*syscall.SockaddrInet4).Port))
	for range 16 {
		conn, err := net.DialTimeout("tcp", addr.String(), 2*short)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Fatal("the backlog does not fill")
	return addr
}

func TestSend_BrokenBodyAfter2xxStaysASuccess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		text string
		hang bool
		typ  egress.ErrorType
	}{
		{"hangs", "HTTP/1.1 204 OK\r\n\r\n", true, ""},
		{"hangs half way", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", true, egress.Timeout},
		{"ends half way", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", false, egress.ConnectionFailed},
		{"broken chunk", "HTTP/1.1 201 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n", false, egress.ConnectionFailed},
		{"ends in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhalf", false, egress.ConnectionFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, answer(tt.text, tt.hang))
			set := total
			if !tt.hang {
				set = func(*egress.Timeouts, time.Duration) {}
			}
			resp := sendToHang(t, localDoor(t), egress.Request{URL: s.url(), Body: []byte("x")}, egress.PhaseBody, set)
			if resp.Failure != nil || resp.Status/100 != 2 {
				t.Fatalf("status %d, failure %v", resp.Status, resp.Failure)
			}
			switch {
			case tt.typ == "":
				if resp.BodyError != nil {
					t.Errorf("body error %v", resp.BodyError)
				}
			case resp.BodyError == nil || resp.BodyError.Type != tt.typ || resp.BodyError.Phase != egress.PhaseBody:
				t.Errorf("body error %+v, want %s", resp.BodyError, tt.typ)
			case string(resp.Body) != "half":
				t.Errorf("body %q, want what had come", resp.Body)
			}
		})
	}
}

func TestSend_BrokenBodyOfAnotherStatusIsAFailureWithItsStatus(t *testing.T) {
	t.Parallel()
	s := newScript(t, answer("HTTP/1.1 410 Gone\r\nContent-Length: 100\r\n\r\nhalf", false))
	resp := localDoor(t).Send(t.Context(), &egress.Request{URL: s.url(), Body: []byte("x"), Timeouts: patient})
	wantFailure(t, resp, egress.ConnectionFailed, egress.PhaseBody)
	if resp.Status != 410 {
		t.Errorf("status %d, want 410", resp.Status)
	}
}

func TestSend_EndlessAnswersEndEarly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		script func(*script, net.Conn, int)
		status int // 0 when it is a failure in the headers
	}{
		{"body", flood("HTTP/1.1 200 OK\r\n\r\n", "more "), 200},
		{"chunked body", flood("HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\nmore \r\n"), 500},
		{"headers", flood("HTTP/1.1 200 OK\r\n", "X-More: more\r\n"), 0},
		{"one header", flood("HTTP/1.1 200 OK\r\nX-More: ", "more"), 0},
		{"1xx", flood("", "HTTP/1.1 103 Early Hints\r\n\r\n"), 0},
		{"1xx of one kind", flood("", "HTTP/1.1 100 Continue\r\n\r\n"), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, tt.script)
			resp := localDoor(t).Send(t.Context(), &egress.Request{URL: s.url(), Body: []byte("x"), Timeouts: patient})
			if tt.status == 0 {
				wantFailure(t, resp, egress.ConnectionFailed, egress.PhaseHeaders)
				return
			}
			if resp.Failure != nil || resp.Status != tt.status || !resp.BodyTruncated || len(resp.Body) != 16<<10 {
				t.Errorf("status %d, failure %v, truncated %t, body of %d bytes", resp.Status, resp.Failure, resp.BodyTruncated, len(resp.Body))
			}
		})
	}
}

func TestSend_BrokenConnectionsAreConnectionFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		is   error // what Err must wrap, where that is known
		serv func(*script, net.Conn, int)
	}{
		{"closed at once", nil, func(*script, net.Conn, int) {}},
		{"closed after the request", io.EOF, answer("", false)},
		{"closed in the headers", io.ErrUnexpectedEOF, answer("HTTP/1.1 200 OK\r\nX-A: b\r\n", false)},
		{"reset after the request", syscall.ECONNRESET, func(s *script, conn net.Conn, _ int) {
			s.request(bufio.NewReader(conn))
			conn.(*net.TCPConn).SetLinger(0)
		}},
		{"no HTTP", nil, answer("220 mail.example.com ESMTP\r\n", false)},
		{"no status", nil, answer("HTTP/1.1 OK\r\n\r\n", false)},
		{"bad header", nil, answer("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", false)},
		{"bad length", nil, answer("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", false)},
		{"two lengths", nil, answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", false)},
		{"switched protocols", nil, answer("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", true)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, tt.serv)
			resp := localDoor(t).Send(t.Context(), &egress.Request{URL: s.url(), Body: []byte("x"), Timeouts: patient})
			wantFailure(t, resp, egress.ConnectionFailed, egress.PhaseHeaders)
			if tt.is != nil && !errors.Is(resp.Failure, tt.is) {
				t.Errorf("failure wraps %v, want %v", resp.Failure.Err, tt.is)
			}
		})
	}

	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		s := newScript(t, answer("", false))
		s.stop()
		resp := localDoor(t).Send(t.Context(), &egress.Request{URL: s.url(), Body: []byte("x"), Timeouts: patient})
		wantFailure(t, resp, egress.ConnectionFailed, egress.PhaseConnect)
		if !errors.Is(resp.Failure, syscall.ECONNREFUSED) || resp.WroteRequest || resp.Peer != s.addr() {
			t.Errorf("err %v, wrote request %t, peer %s", resp.Failure.Err, resp.WroteRequest, resp.Peer)
		}
	})
}

func TestSend_NamesThatDoNotResolveAreDnsFailures(t *testing.T) {
	t.Parallel()
	ns := newNameServer(t)
	ns.fail("broken.example.com", false)
	ns.set("empty.example.com")
	d := newDoor(t, egress.Options{Resolver: ns.resolver()})
	for _, name := range []string{"none.example.com", "broken.example.com", "empty.example.com"} {
		resp := d.Send(t.Context(), &egress.Request{URL: "https://" + name, Timeouts: patient})
		t.Run(name, func(t *testing.T) {
			wantFailure(t, resp, egress.DnsFailure, egress.PhaseDNS)
			if !strings.Contains(resp.Failure.Sentence, name) {
				t.Errorf("the sentence does not name the host: %s", resp.Failure.Sentence)
			}
		})
	}
}

func TestSend_FailedHandshakesAreTlsErrors(t *testing.T) {
	t.Parallel()
	config, roots := tlsConfig(t)
	wantsCert := config.Clone()
	wantsCert.ClientAuth = tls.RequireAnyClientCert
	old := config.Clone()
	old.MaxVersion = tls.VersionTLS11
	old.MinVersion = tls.VersionTLS10

	handshake := func(config *tls.Config) func(*script, net.Conn, int) {
		return func(s *script, conn net.Conn, _ int) {
			session := tls.Server(conn, config)
			if session.Handshake() == nil {
				s.request(bufio.NewReader(session))
			}
			// To close now could reset the connection and take back the alert that was sent.
			s.hang(conn)
		}
	}
	tests := []struct {
		name  string
		host  string
		roots *x509.CertPool
		serve func(*script, net.Conn, int)
	}{
		{"closes in the handshake", "example.com", roots, func(_ *script, conn net.Conn, _ int) {
			io.ReadFull(conn, make([]byte, 5))
		}},
		{"resets in the handshake", "example.com", roots, func(_ *script, conn net.Conn, _ int) {
			io.ReadFull(conn, make([]byte, 5))
			conn.(*net.TCPConn).SetLinger(0)
		}},
		{"speaks plain text", "example.com", roots, func(_ *script, conn net.Conn, _ int) {
			io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}},
		{"untrusted certificate", "example.com", x509.NewCertPool(), handshake(config)},
		{"certificate of another name", "other.example.net", roots, handshake(config)},
		{"wants a client certificate", "example.com", roots, handshake(wantsCert)},
		{"old version", "example.com", roots, handshake(old)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, tt.serve)
			ns := newNameServer(t)
			ns.set(tt.host, "127.0.0.1")
			d := newDoor(t, egress.Options{Resolver: ns.resolver(), Allow: mustAllow(t, tt.host), RootCAs: tt.roots})
			_, port, _ := net.SplitHostPort(s.addr().String())
			resp := d.Send(t.Context(), &egress.Request{URL: "https://" + tt.host + ":" + port, Body: []byte("x"), Timeouts: patient})
			wantFailure(t, resp, egress.TlsError, egress.PhaseTLS)
			if strings.Contains(resp.Failure.Error(), "127.0.0.1") {
				t.Errorf("the sentence shows the resolved address: %s", resp.Failure.Error())
			}
			if n := s.requests.Load(); n != 0 {
				t.Errorf("the receiver read %d requests", n)
			}
		})
	}
}

func TestSend_EndOfTheContextTellsInterruptedFromCancelled(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		cause error
		typ   egress.ErrorType
	}{
		{"shutdown", egress.ErrInterrupted, egress.Interrupted},
		{"plain cancel", nil, egress.Interrupted},
		{"another cause", errors.New("lease lost"), egress.Interrupted},
		{"person", egress.ErrCancelled, egress.Cancelled},
	}
	phases := []struct {
		phase egress.Phase
		text  string
	}{
		{egress.PhaseHeaders, ""},
		{egress.PhaseBody, "HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nhalf"},
	}
	for _, tt := range tests {
		for _, p := range phases {
			t.Run(tt.name+" in "+string(p.phase), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancelCause(t.Context())
				d := localDoor(t)
				s := newScript(t, func(s *script, conn net.Conn, _ int) {
					s.request(bufio.NewReader(conn))
					io.WriteString(conn, p.text)
					cancel(tt.cause)
					s.hang(conn)
				})
				resp := d.Send(ctx, &egress.Request{URL: s.url(), Body: []byte("x"), Timeouts: patient})
				f := resp.Failure
				if f == nil {
					// The answer may come in before the context ends; then it stands, with a note about its body.
					if f = resp.BodyError; resp.Status != 500 || f == nil {
						t.Fatalf("status %d, no failure and no note", resp.Status)
					}
				}
				if f.Type != tt.typ {
					t.Fatalf("failure %s (%v), want %s", f.Type, f.Err, tt.typ)
				}
				if tt.cause != nil && !errors.Is(f, tt.cause) {
					t.Errorf("failure %v does not wrap its cause", f.Err)
				}
				if got := errors.Is(f, context.Canceled); got != (tt.typ == egress.Interrupted) {
					t.Errorf("wraps context.Canceled: %t", got)
				}
			})
		}
	}
}

func TestSend_DeadlineOfTheCallerIsATimeout(t *testing.T) {
	t.Parallel()
	s := newScript(t, answer("", true))
	d := localDoor(t)
	var resp *egress.Response
	for limit := short; limit < long; limit *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		resp = d.Send(ctx, &egress.Request{URL: s.url(), Body: []byte("x"), Timeouts: patient})
		cancel()
		if resp.WroteRequest {
			break
		}
	}
	wantFailure(t, resp, egress.Timeout, egress.PhaseHeaders)
}

func TestSend_FailedAttemptAbandonsItsDial(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 8)
	s := newScript(t, func(_ *script, conn net.Conn, _ int) {
		io.Copy(io.Discard, conn)
		closed <- struct{}{}
	})
	resp := sendToHang(t, localDoor(t), egress.Request{URL: "https://" + s.addr().String()}, egress.PhaseTLS, total)
	wantFailure(t, resp, egress.Timeout, egress.PhaseTLS)
	select {
	case <-closed:
	case <-time.After(long / 4):
		t.Error("the handshake goes on after the attempt is over")
	}
}

func TestSend_EndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	s := newScript(t, answer("HTTP/1.1 200 OK\r\n\r\n", false))
	d := localDoor(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if resp := d.Send(cancelled, &egress.Request{URL: s.url(), Timeouts: patient}); resp.Failure == nil || resp.Failure.Type != egress.Interrupted {
		t.Errorf("cancelled: %+v", resp.Failure)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	if resp := d.Send(late, &egress.Request{URL: s.url(), Timeouts: patient}); resp.Failure == nil || resp.Failure.Type != egress.Timeout {
		t.Errorf("late: %+v", resp.Failure)
	}
	s.stop()
	if n := s.requests.Load(); n != 0 {
		t.Errorf("the receiver read %d requests", n)
	}
}

func TestSend_HTTP2LimitsAreTheSame(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/headers":
			<-release
		case "/body":
			w.WriteHeader(500)
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			<-release
		case "/long":
			io.Copy(w, io.LimitReader(zeros{}, 1<<20))
		case "/big":
			w.Header().Set("X-Big", strings.Repeat("x", 20<<10))
		case "/1xx":
			w.Header().Set("X-Hint", strings.Repeat("x", 1000))
			for range 30 {
				w.WriteHeader(http.StatusEarlyHints)
			}
		}
	}))
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = quiet
	srv.StartTLS()
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(release) })
	d := newDoor(t, tlsOptions(t, srv))
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	request := func(path string) egress.Request {
		return egress.Request{URL: "https://example.com:" + port + path, Body: []byte("x"), Timeouts: patient}
	}
	send := func(path string) *egress.Response {
		req := request(path)
		return d.Send(t.Context(), &req)
	}
	if resp := send("/"); resp.Failure != nil || resp.Status != 200 {
		t.Fatalf("plain request: %v", resp.Failure)
	}
	wantFailure(t, sendToHang(t, d, request("/headers"), egress.PhaseHeaders, total), egress.Timeout, egress.PhaseHeaders)
	wantFailure(t, sendToHang(t, d, request("/body"), egress.PhaseBody, total), egress.Timeout, egress.PhaseBody)
	wantFailure(t, send("/big"), egress.ConnectionFailed, egress.PhaseHeaders)
	wantFailure(t, send("/1xx"), egress.ConnectionFailed, egress.PhaseHeaders)
	if resp := send("/long"); resp.Failure != nil || !resp.BodyTruncated || len(resp.Body) != 16<<10 {
		t.Errorf("long body: failure %v, truncated %t, %d bytes", resp.Failure, resp.BodyTruncated, len(resp.Body))
	}
	if resp := send("/"); resp.Failure != nil || !resp.ReusedConn {
		t.Errorf("after all that: %v, connection reused %t", resp.Failure, resp.ReusedConn)
	}
}
