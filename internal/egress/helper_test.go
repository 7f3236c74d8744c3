package egress_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"entrega/internal/egress"
)

// short is a limit for a phase that hangs. long is one for a phase that does not, on a busy machine.
const (
	short = 40 * time.Millisecond
	long  = time.Minute
)

// patient limits fit requests that are answered.
var patient = egress.Timeouts{Total: long, Connect: long, TLS: long}

// quiet takes what a receiver logs about clients that give up, which many tests make them do.
var quiet = log.New(io.Discard, "", 0)

// nameServer answers A queries on loopback from a table that a test can change. It is silent about names it has in
// silent, fails those in broken, and knows no others.
type nameServer struct {
	conn net.PacketConn

	mu     sync.Mutex
	names  map[string][]netip.Addr
	silent map[string]bool
	broken map[string]bool
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ns := &nameServer{conn: conn, names: map[string][]netip.Addr{}, silent: map[string]bool{}, broken: map[string]bool{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		ns.serve()
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return ns
}

// set makes a name lead to the addresses from now on.
func (ns *nameServer) set(name string, addrs ...string) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	ns.names[name+"."] = nil
	for _, a := range addrs {
		ns.names[name+"."] = append(ns.names[name+"."], netip.MustParseAddr(a))
	}
}

// fail makes the server silent about a name, or answer that it is broken.
func (ns *nameServer) fail(name string, silent bool) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	ns.silent[name+"."], ns.broken[name+"."] = silent, !silent
}

// resolver asks this server only. Go's resolver gives a query 5 s whatever becomes of the lookup; here it ends with it.
func (ns *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "udp", ns.conn.LocalAddr().String())
		if err == nil {
			context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
		}
		return conn, err
	}}
}

func (ns *nameServer) serve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := ns.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply := ns.reply(buf[:n]); reply != nil {
			ns.conn.WriteTo(reply, from)
		}
	}
}

func (ns *nameServer) reply(query []byte) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(query)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	ns.mu.Lock()
	defer ns.mu.Unlock()
	name := q.Name.String()
	addrs, known := ns.names[name]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true, RecursionAvailable: true},
		Questions: []dnsmessage.Question{q},
	}
	switch {
	case ns.silent[name]:
		return nil
	case ns.broken[name]:
		reply.RCode = dnsmessage.RCodeServerFailure
	case !known:
		reply.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 0}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}

// newDoor returns a door that is closed at the end of the test.
func newDoor(t *testing.T, opts egress.Options) *egress.Door {
	t.Helper()
	d, err := egress.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// localDoor returns a door that may call loopback over http, with generous limits left to the request.
func localDoor(t *testing.T) *egress.Door {
	t.Helper()
	return newDoor(t, egress.Options{Allow: mustAllow(t, "127.0.0.0/8"), AllowHTTP: true})
}

func mustAllow(t *testing.T, list ...string) egress.Allow {
	t.Helper()
	allow, err := egress.ParseAllow(list...)
	if err != nil {
		t.Fatal(err)
	}
	return allow
}

// script is a server on loopback that does what a test says with each connection, numbered from 1. The connection is
// closed when the script returns.
type script struct {
	listener net.Listener
	conns    atomic.Int32
	requests atomic.Int32
	over     chan struct{} // closed at the end of the test
	running  sync.WaitGroup
}

func newScript(t *testing.T, serve func(s *script, conn net.Conn, n int)) *script {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{listener: listener, over: make(chan struct{})}
	s.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			n := int(s.conns.Add(1))
			s.running.Go(func() {
				defer conn.Close()
				serve(s, conn, n)
			})
		}
	})
	t.Cleanup(s.stop)
	return s
}

// stop ends the server and waits until every script has returned.
func (s *script) stop() {
	select {
	case <-s.over:
	default:
		close(s.over)
	}
	s.listener.Close()
	s.running.Wait()
}

func (s *script) addr() netip.AddrPort { return netip.MustParseAddrPort(s.listener.Addr().String()) }
func (s *script) url() string          { return "http://" + s.listener.Addr().String() + "/hook" }

// request reads one request and counts it. It reports false when the connection ended instead.
func (s *script) request(br *bufio.Reader) bool {
	req, err := http.ReadRequest(br)
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return false
	}
	s.requests.Add(1)
	return true
}

// answer reads one request, writes the text, and hangs until the test or the client ends the connection when hang is
// set.
func answer(text string, hang bool) func(*script, net.Conn, int) {
	return func(s *script, conn net.Conn, _ int) {
		if !s.request(bufio.NewReader(conn)) {
			return
		}
		io.WriteString(conn, text)
		if hang {
			s.hang(conn)
		}
	}
}

// hang holds the connection open until its other end closes it or the test ends.
func (s *script) hang(conn net.Conn) {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		io.Copy(io.Discard, conn)
	}()
	select {
	case <-gone:
	case <-s.over:
		conn.Close()
		<-gone
	}
}

// flood writes the text again and again until the other end closes the connection.
func flood(first, again string) func(*script, net.Conn, int) {
	return func(s *script, conn net.Conn, _ int) {
		if !s.request(bufio.NewReader(conn)) {
			return
		}
		_, err := io.WriteString(conn, first)
		block := strings.Repeat(again, 1+1000/len(again))
		for err == nil {
			_, err = io.WriteString(conn, block)
		}
	}
}

// newTLSReceiver starts an https receiver, reached as example.com, and a door that trusts and permits it.
func newTLSReceiver(t *testing.T, http2 bool, handler http.HandlerFunc) (*httptest.Server, *egress.Door, string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	srv.EnableHTTP2 = http2
	srv.Config.ErrorLog = quiet
	srv.StartTLS()
	t.Cleanup(srv.Close)
	d := newDoor(t, tlsOptions(t, srv))
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	return srv, d, "https://example.com:" + port + "/hook"
}

func tlsOptions(t *testing.T, srv *httptest.Server) egress.Options {
	t.Helper()
	ns := newNameServer(t)
	ns.set("example.com", "127.0.0.1")
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return egress.Options{Allow: mustAllow(t, "example.com"), Resolver: ns.resolver(), RootCAs: roots}
}

// tlsConfig returns the certificate that httptest makes, for servers that a test scripts itself.
func tlsConfig(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return &tls.Config{Certificates: srv.TLS.Certificates}, roots
}

// sendToHang sends a request that hangs in the phase, under a limit that set puts in place. A limit may run out before
// that phase is reached when the machine is busy; then a longer one is tried.
func sendToHang(t *testing.T, d *egress.Door, req egress.Request, phase egress.Phase, set func(*egress.Timeouts, time.Duration)) *egress.Response {
	t.Helper()
	order := []egress.Phase{egress.PhaseDNS, egress.PhaseConnect, egress.PhaseTLS, egress.PhaseHeaders, egress.PhaseBody}
	for limit := short; ; limit *= 2 {
		req.Timeouts = patient
		set(&req.Timeouts, limit)
		resp := d.Send(t.Context(), &req)
		f := resp.Failure
		early := f != nil && f.Type == egress.Timeout && slices.Index(order, f.Phase) < slices.Index(order, phase)
		if !early || limit > long/4 {
			return resp
		}
	}
}

func total(t *egress.Timeouts, limit time.Duration)       { t.Total = limit }
func connect(t *egress.Timeouts, limit time.Duration)     { t.Connect = limit }
func handshaking(t *egress.Timeouts, limit time.Duration) { t.TLS = limit }

// wantFailure checks type and phase, and that the sentence is there and shows no address.
func wantFailure(t *testing.T, resp *egress.Response, typ egress.ErrorType, phase egress.Phase) {
	t.Helper()
	f := resp.Failure
	if f == nil {
		t.Fatalf("status %d, want failure %s in phase %q", resp.Status, typ, phase)
	}
	if f.Type != typ || f.Phase != phase {
		t.Fatalf("failure %s in phase %q (%v), want %s in phase %q", f.Type, f.Phase, f.Err, typ, phase)
	}
	if f.Sentence == "" {
		t.Error("the failure has no sentence")
	}
}
