package egress

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"net/netip"
	"testing"
)

// TestGotConn_ClosesAnHTTP1ConnectionBeforeTheTransportCanWrite pins what a race inside the transport would decide
// otherwise: an HTTP/1 connection writes whatever it was given, ended context or not.
func TestGotConn_ClosesAnHTTP1ConnectionBeforeTheTransportCanWrite(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	target := netip.MustParseAddrPort(listener.Addr().String())
	allow, err := ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	newAttempt := func(denied ...netip.AddrPort) *attempt {
		j, err := newJudge(allow, denied)
		if err != nil {
			t.Fatal(err)
		}
		a := &attempt{judge: j, host: "127.0.0.1", port: target.Port()}
		a.ctx, a.refuse = context.WithCancelCause(t.Context())
		return a
	}
	hand := func(a *attempt) error {
		conn, err := net.Dial("tcp", target.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		a.gotConn(httptrace.GotConnInfo{Conn: conn})
		_, err = conn.Write([]byte("x"))
		return err
	}

	a := newAttempt()
	if err := hand(a); err != nil || a.ctx.Err() != nil {
		t.Errorf("first connection: write %v, context %v", err, a.ctx.Err())
	}
	if err := hand(a); !errors.Is(err, net.ErrClosed) || !errors.Is(context.Cause(a.ctx), errSentTwice) {
		t.Errorf("second connection: write %v, cause %v", err, context.Cause(a.ctx))
	}

	a = newAttempt(target)
	var refused *BlockedError
	if err := hand(a); !errors.Is(err, net.ErrClosed) || !errors.As(context.Cause(a.ctx), &refused) {
		t.Errorf("refused connection: write %v, cause %v", err, context.Cause(a.ctx))
	}
	a.wroteRequest(httptrace.WroteRequestInfo{}) // into the transport's buffer
	resp := new(Response)
	a.settle(resp)
	if resp.WroteRequest {
		t.Error("refused connection: the request counts as written")
	}
}

func TestWroteHeaders_MeansThatARequestMayHaveArrivedOverHTTP2Only(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		a, resp := &attempt{connected: true, shared: shared}, new(Response)
		a.wroteHeaders()
		a.settle(resp)
		if resp.WroteRequest != shared {
			t.Errorf("HTTP/2 %t: wrote request %t", shared, resp.WroteRequest)
		}
	}
}

func TestSettle_PooledConnectionHasNoTimesOfADialBesideIt(t *testing.T) {
	t.Parallel()
	j, err := newJudge(Allow{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &attempt{judge: j, connected: true, reused: true}
	a.timings = Timings{DNS: 1, Connect: 2, TLS: 3, FirstByte: 4}
	resp := new(Response)
	a.settle(resp)
	if want := (Timings{FirstByte: 4}); resp.Timings != want {
		t.Errorf("timings %+v, want %+v", resp.Timings, want)
	}
}
