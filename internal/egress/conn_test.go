package egress_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"entrega/internal/egress"
)

const empty200 = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

// TestSend_KeepsOnlyConnectionsThatAreInStep has a receiver end its first answer in some way, and looks whether the next request comes over
// the same connection. Whatever the first left behind must never be taken for the answer to the second.
func TestSend_KeepsOnlyConnectionsThatAreInStep(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer string
		closes bool // after the answer
		keeps  bool
	}{
		{name: "length", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", keeps: true},
		{name: "no body", answer: "HTTP/1.1 204 No Content\r\n\r\n", keeps: true},
		{name: "chunks and trailers", answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n", keeps: true},
		{name: "informational first", answer: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + empty200, keeps: true},
		{name: "HTTP/1.0 that stays", answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", keeps: true},
		{name: "HTTP/1.0", answer: "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"},
		{name: "says that it closes", answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"},
		{name: "closes unsaid", answer: empty200, closes: true},
		{name: "a second answer", answer: empty200 + "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"},
		{name: "a body where none may be", answer: "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok"},
		{name: "more than its length", answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more"},
		{name: "informational behind it", answer: empty200 + "HTTP/1.1 103 Early Hints\r\n\r\n"},
		{name: "until it closes", answer: "HTTP/1.1 200 OK\r\n\r\nok", closes: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			closed := make(chan struct{})
			s := newScript(t, func(s *script, conn net.Conn, n int) {
				br := bufio.NewReader(conn)
				if n == 1 {
					s.request(br)
					io.WriteString(conn, tt.answer)
					if tt.closes {
						conn.Close()
						close(closed)
						return
					}
				}
				for s.request(br) {
					io.WriteString(conn, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
				}
			})
			d := localDoor(t)
			req := &egress.Request{URL: s.url(), Body: []byte("x"), Timeouts: patient}
			if first := d.Send(t.Context(), req); first.Failure != nil || first.BodyError != nil || first.Status/100 != 2 {
				t.Fatalf("first: status %d, %v, %v", first.Status, first.Failure, first.BodyError)
			}
			if tt.closes {
				<-closed
			}
			second := d.Send(t.Context(), req)
			if second.Failure != nil || second.Status != 202 {
				t.Fatalf("second: status %d, %v", second.Status, second.Failure)
			}
			if second.ReusedConn != tt.keeps {
				t.Errorf("connection kept %t, want %t", second.ReusedConn, tt.keeps)
			}
		})
	}
}

func TestSend_AnswerBeforeTheRequestIsReadCounts(t *testing.T) {
	t.Parallel()
	s := newScript(t, func(s *script, conn net.Conn, _ int) {
		if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
			return
		}
		io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno!")
		<-s.over // It neither reads on nor closes.
	})
	resp := localDoor(t).Send(t.Context(), &egress.Request{URL: s.url(), Body: make([]byte, 32<<20), Timeouts: patient})
	if resp.Failure != nil || resp.Status != 413 || string(resp.Body) != "no!" {
		t.Fatalf("status %d, %v", resp.Status, resp.Failure)
	}
	if resp.WroteRequest {
		t.Error("a request that was not read counts as written")
	}
}

func TestSend_ReceiverThatAnswersFirstMayReadOn(t *testing.T) {
	t.Parallel()
	body := make([]byte, 8<<20)
	arrived := make(chan int, 1)
	s := newScript(t, func(s *script, conn net.Conn, n int) {
		br := bufio.NewReader(conn)
		req, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		io.WriteString(conn, empty200)
		read, _ := io.Copy(io.Discard, req.Body)
		arrived <- int(read)
		s.hang(conn)
	})
	resp := localDoor(t).Send(t.Context(), &egress.Request{URL: s.url(), Body: body, Timeouts: patient})
	if n := <-arrived; resp.Status != 200 || n != len(body) || !resp.WroteRequest {
		t.Errorf("status %d, wrote request %t, %d bytes of %d arrived", resp.Status, resp.WroteRequest, n, len(body))
	}
}

func TestSend_ReceiverThatSpeaksFirstGetsNothing(t *testing.T) {
	t.Parallel()
	s := newScript(t, func(s *script, conn net.Conn, _ int) {
		io.WriteString(conn, empty200)
		s.request(bufio.NewReader(conn))
	})
	d := localDoor(t)
	// Its word may be late, and is then taken for an answer that came early. Sooner or later it is not.
	for range 2000 {
		resp := d.Send(t.Context(), &egress.Request{URL: s.url(), Body: []byte("x"), Timeouts: patient})
		if resp.Failure != nil && !resp.ReusedConn && !resp.WroteRequest {
			wantFailure(t, resp, egress.ConnectionFailed, egress.PhaseHeaders)
			return
		}
	}
	t.Error("each request was written, whatever had been said before")
}

// TestSend_NothingBehindAnAnswerIsTakenForTheNext covers what a TLS session has read ahead: the rest of a record, and further records.
func TestSend_NothingBehindAnAnswerIsTakenForTheNext(t *testing.T) {
	t.Parallel()
	config, roots := tlsConfig(t)
	const unasked = "HTTP/1.1 299 Unasked\r\nContent-Length: 4\r\n\r\nevil"
	for name, pieces := range map[string][]string{
		"in the same record":       {empty200 + unasked},
		"far in the same record":   {"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + strings.Repeat("a", 9000) + unasked},
		"at the end of the buffer": {"HTTP/1.1 200 OK\r\nContent-Length: 4055\r\n\r\n" + strings.Repeat("a", 4055) + unasked},
		"in the next record":       {empty200, unasked},
		"body where none may be":   {"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n", "evil"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, func(s *script, conn net.Conn, n int) {
				// Held back, so that all records leave in one piece.
				held := &heldConn{Conn: conn}
				session := tls.Server(held, config)
				br := bufio.NewReader(session)
				for i := 0; s.request(br); i++ {
					if n > 1 || i > 0 {
						io.WriteString(session, "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
						continue
					}
					held.holds = true
					for _, piece := range pieces {
						io.WriteString(session, piece)
					}
					held.release()
				}
			})
			ns := newNameServer(t)
			ns.set("example.com", "127.0.0.1")
			d := newDoor(t, egress.Options{Resolver: ns.resolver(), Allow: mustAllow(t, "example.com"), RootCAs: roots})
			req := &egress.Request{URL: "https://example.com:" + portOf(t, s.listener.Addr()), Body: []byte("x"), Timeouts: patient}
			if first := d.Send(t.Context(), req); first.Failure != nil {
				t.Fatal(first.Failure)
			}
			if second := d.Send(t.Context(), req); second.Failure != nil || second.Status != 202 || second.ReusedConn {
				t.Errorf("status %d, body %q, %v, connection reused %t", second.Status, second.Body, second.Failure, second.ReusedConn)
			}
		})
	}
}

// heldConn holds back what is written until it is released.
type heldConn struct {
	net.Conn
	holds bool
	held  []byte
}

func (c *heldConn) Write(p []byte) (int, error) {
	if !c.holds {
		return c.Conn.Write(p)
	}
	c.held = append(c.held, p...)
	return len(p), nil
}

func (c *heldConn) release() {
	c.Conn.Write(c.held)
	c.holds, c.held = false, nil
}

func TestSend_LongRequestsArriveWhole(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 8 << 10, 32 << 10, 32<<10 + 1, 1 << 20} {
		body := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		s := newScript(t, func(s *script, conn net.Conn, _ int) {
			br := bufio.NewReader(conn)
			for {
				req, err := http.ReadRequest(br)
				if err != nil {
					return
				}
				got, err := io.ReadAll(req.Body)
				if err != nil || !bytes.Equal(got, body) || req.ContentLength != int64(size) {
					t.Errorf("%d bytes: got %d, announced %d, %v", size, len(got), req.ContentLength, err)
				}
				io.WriteString(conn, empty200)
			}
		})
		d := localDoor(t)
		for range 50 {
			resp := d.Send(t.Context(), &egress.Request{URL: s.url(), Body: body, Timeouts: patient})
			if resp.Failure != nil || !resp.WroteRequest {
				t.Fatalf("%d bytes: %v, wrote request %t", size, resp.Failure, resp.WroteRequest)
			}
		}
		if n := s.conns.Load(); n != 1 {
			t.Errorf("%d bytes: fifty requests took %d connections", size, n)
		}
	}
}

func TestSend_TheSameRequestIsTheSameBytes(t *testing.T) {
	t.Parallel()
	heads := make(chan string, 8)
	s := newScript(t, func(_ *script, conn net.Conn, _ int) {
		br := bufio.NewReader(conn)
		var head strings.Builder
		for {
			line, err := br.ReadString('\n')
			if err != nil {
				return
			}
			head.WriteString(line)
			if line == "\r\n" {
				br.Discard(2)
				heads <- head.String()
				head.Reset()
				io.WriteString(conn, empty200)
			}
		}
	})
	d := localDoor(t)
	req := &egress.Request{URL: s.url() + "?a=%20b&c", Body: []byte("{}"), Timeouts: patient,
		Header: http.Header{"Webhook-Id": {"evt_1"}, "Content-Type": {"application/json"}, "x-lower": {"1", "2"}, "Accept": {"*/*"}}}
	want := "POST /hook?a=%20b&c HTTP/1.1\r\nHost: " + s.addr().String() + "\r\nContent-Length: 2\r\nAccept: */*\r\n" +
		"Content-Type: application/json\r\nUser-Agent: Entrega\r\nWebhook-Id: evt_1\r\nx-lower: 1\r\nx-lower: 2\r\n\r\n"
	for range 5 {
		if resp := d.Send(t.Context(), req); resp.Status != 200 {
			t.Fatal(resp.Failure)
		}
		if got := <-heads; got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}
