package egress_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"entrega/internal/egress"
)

func TestSend_RebindingIsRefusedAtDial(t *testing.T) {
	t.Parallel()
	s := newScript(t, answer("HTTP/1.1 200 OK\r\n\r\n", false))
	ns := newNameServer(t)
	ns.set("hooks.example.com", "93.184.216.34")
	d := newDoor(t, egress.Options{Resolver: ns.resolver(), AllowHTTP: true})
	url := "http://hooks.example.com:" + portOf(t, s.listener.Addr())
	if _, err := d.CheckURL(url); err != nil {
		t.Fatal(err)
	}
	if addrs, err := ns.resolver().LookupNetIP(t.Context(), "ip4", "hooks.example.com"); err != nil || addrs[0].String() != "93.184.216.34" {
		t.Fatalf("at save the name leads to %v, %v", addrs, err)
	}
	ns.set("hooks.example.com", "127.0.0.1")

	resp := d.Send(t.Context(), &egress.Request{URL: url, Body: []byte("x"), Timeouts: patient})

	wantFailure(t, resp, egress.BlockedByPolicy, egress.PhaseConnect)
	if strings.Contains(resp.Failure.Error(), "127.0.0.1") || resp.Peer.IsValid() || resp.WroteRequest {
		t.Errorf("sentence %q, peer %s, wrote request %t", resp.Failure.Error(), resp.Peer, resp.WroteRequest)
	}
	s.stop()
	if n := s.conns.Load(); n != 0 {
		t.Errorf("the listener on loopback saw %d connections", n)
	}
}

func TestSend_NamesThatLeadToRefusedAddressesAreBlocked(t *testing.T) {
	t.Parallel()
	ns := newNameServer(t)
	d := newDoor(t, egress.Options{Resolver: ns.resolver()})
	for _, addr := range []string{
		"0.0.0.0", "10.0.0.1", "100.64.0.1", "127.0.0.2", "168.63.129.16", "169.254.169.254", "172.16.0.1", "192.0.0.1",
		"192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
	} {
		ns.set("hooks.example.com", addr)
		resp := d.Send(t.Context(), &egress.Request{URL: "https://hooks.example.com/", Timeouts: patient})
		t.Run(addr, func(t *testing.T) { wantFailure(t, resp, egress.BlockedByPolicy, egress.PhaseConnect) })
	}
}

func TestSend_APermittedAddressBesideARefusedOneDecides(t *testing.T) {
	t.Parallel()
	closed := newScript(t, answer("", false))
	closed.stop()
	open := newScript(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false))
	ns := newNameServer(t)
	// Of one scope, addresses are tried in the order of the answer, so the refused one comes first.
	ns.set("hooks.example.com", "127.0.0.2", "127.0.0.1")
	d := newDoor(t, egress.Options{Resolver: ns.resolver(), Allow: mustAllow(t, "127.0.0.1"), AllowHTTP: true})
	resp := d.Send(t.Context(), &egress.Request{URL: "http://hooks.example.com:" + portOf(t, open.listener.Addr()), Timeouts: patient})
	if resp.Failure != nil {
		t.Errorf("permitted address that answers: %v", resp.Failure.Err)
	}
	// A name with one bad address must not be discarded for good because its good one is down for a moment.
	resp = d.Send(t.Context(), &egress.Request{URL: "http://hooks.example.com:" + portOf(t, closed.listener.Addr()), Timeouts: patient})
	wantFailure(t, resp, egress.ConnectionFailed, egress.PhaseConnect)
}

func TestSend_URLsThatTheRulesForbidAreBlocked(t *testing.T) {
	t.Parallel()
	d := newDoor(t, egress.Options{})
	for _, url := range []string{
		"http://hooks.example.com/", "https://localhost/", "https://127.0.0.1/", "https://a:b@hooks.example.com/",
		"https://hooks.example.com:25/",
	} {
		resp := d.Send(t.Context(), &egress.Request{URL: url, Timeouts: patient})
		t.Run(url, func(t *testing.T) { wantFailure(t, resp, egress.BlockedByPolicy, "") })
	}
}

func TestSend_PooledConnectionIsJudgedAgain(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		tls, http2 bool
	}{
		{name: "http"}, {name: "https", tls: true}, {name: "http2", tls: true, http2: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
			srv.EnableHTTP2 = tt.http2
			srv.Config.ErrorLog = quiet
			scheme := "http"
			var opts egress.Options
			if tt.tls {
				srv.StartTLS()
				scheme, opts = "https", tlsOptions(t, srv)
			} else {
				srv.Start()
				ns := newNameServer(t)
				ns.set("example.com", "127.0.0.1")
				opts = egress.Options{Allow: mustAllow(t, "example.com"), Resolver: ns.resolver(), AllowHTTP: true}
			}
			defer srv.Close()
			d := newDoor(t, opts)
			req := &egress.Request{URL: scheme + "://example.com:" + portOf(t, srv.Listener.Addr()), Body: []byte("x"), Timeouts: patient}
			d.Send(t.Context(), req)
			if resp := d.Send(t.Context(), req); resp.Failure != nil || !resp.ReusedConn {
				t.Fatalf("before: %v, connection reused %t", resp.Failure, resp.ReusedConn)
			}
			if err := d.Deny(netip.MustParseAddrPort(srv.Listener.Addr().String())); err != nil {
				t.Fatal(err)
			}

			resp := d.Send(t.Context(), req)

			wantFailure(t, resp, egress.BlockedByPolicy, egress.PhaseHeaders)
			if !resp.ReusedConn {
				t.Error("the connection did not come from the pool, so this shows nothing")
			}
			if resp.WroteRequest || resp.Peer.IsValid() {
				t.Errorf("wrote request %t, peer %s", resp.WroteRequest, resp.Peer)
			}
			srv.Close() // waits for handlers
			if n := requests.Load(); n != 2 {
				t.Errorf("the receiver saw %d requests, want the two before", n)
			}
		})
	}
}

func TestSend_OwnListenerIsNotCalledThoughItsNetworkIsAllowed(t *testing.T) {
	t.Parallel()
	s := newScript(t, answer("HTTP/1.1 200 OK\r\n\r\n", false))
	own := netip.AddrPortFrom(netip.IPv4Unspecified(), s.addr().Port())
	d := newDoor(t, egress.Options{Allow: mustAllow(t, "127.0.0.0/8"), AllowHTTP: true, DenyAddrs: []netip.AddrPort{own}})
	wantFailure(t, d.Send(t.Context(), &egress.Request{URL: s.url(), Timeouts: patient}), egress.BlockedByPolicy, "")
	s.stop()
	if n := s.conns.Load(); n != 0 {
		t.Errorf("the own listener saw %d connections", n)
	}
}

func TestSend_ProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	proxy := newScript(t, answer("HTTP/1.1 200 OK\r\n\r\n", false))
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy.url())
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	s := newScript(t, answer("HTTP/1.1 204 OK\r\n\r\n", false))
	ns := newNameServer(t)
	ns.set("hooks.example.com", "127.0.0.1")
	d := newDoor(t, egress.Options{Resolver: ns.resolver(), Allow: mustAllow(t, "hooks.example.com"), AllowHTTP: true})
	resp := d.Send(t.Context(), &egress.Request{URL: "http://hooks.example.com:" + portOf(t, s.listener.Addr()), Timeouts: patient})
	if resp.Failure != nil || resp.Status != 204 || proxy.conns.Load() != 0 {
		t.Errorf("status %d, failure %v, the proxy saw %d connections", resp.Status, resp.Failure, proxy.conns.Load())
	}
}

func TestSend_CertificateIsCheckedForTheNameAndNotForTheAddress(t *testing.T) {
	t.Parallel()
	config, roots := tlsConfig(t)
	var name string
	s := newScript(t, func(s *script, conn net.Conn, _ int) {
		session := tls.Server(conn, config)
		if s.request(bufio.NewReader(session)) {
			name = session.ConnectionState().ServerName
			io.WriteString(session, "HTTP/1.1 204 OK\r\n\r\n")
		}
	})
	ns := newNameServer(t)
	ns.set("example.com", "127.0.0.1")
	d := newDoor(t, egress.Options{Resolver: ns.resolver(), Allow: mustAllow(t, "example.com"), RootCAs: roots})
	resp := d.Send(t.Context(), &egress.Request{URL: "https://EXAMPLE.com.:" + portOf(t, s.listener.Addr()), Timeouts: patient})
	s.stop()
	if resp.Failure != nil || name != "example.com" {
		t.Errorf("failure %v, server name %q", resp.Failure, name)
	}
}

func portOf(t *testing.T, addr net.Addr) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
