package egress

import (
	"net"
	"strconv"
	"testing"
	"time"
)

// pooled makes connections of a pool whose other ends say when they are closed.
func pooled(t *testing.T) (*conn, func() bool) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	near, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	c, err := newConn(near)
	if err != nil {
		t.Fatal(err)
	}
	return c, func() bool { return !c.alive() }
}

func TestPool_TakesTheNewestAndClosesTheOldest(t *testing.T) {
	t.Parallel()
	p, o := newPool(2, 8), origin{host: "a"}
	first, firstClosed := pooled(t)
	second, secondClosed := pooled(t)
	third, thirdClosed := pooled(t)
	for _, c := range []*conn{first, second, third} {
		p.put(o, c)
	}
	if !firstClosed() || secondClosed() || thirdClosed() {
		t.Error("of three in a pool for two, not the oldest was closed")
	}
	if p.take(origin{host: "b"}) != nil || p.take(origin{secure: true, host: "a"}) != nil {
		t.Error("a connection went to another origin")
	}
	if p.take(o) != third || p.take(o) != second || p.take(o) != nil {
		t.Error("the newest did not come first")
	}
	if secondClosed() || thirdClosed() {
		t.Error("a connection that was taken is closed")
	}
}

func TestPool_IsBoundedOverAllOrigins(t *testing.T) {
	t.Parallel()
	p := newPool(2, 2)
	open := 0
	var closed []func() bool
	for _, host := range []string{"a", "b", "c"} {
		c, isClosed := pooled(t)
		closed = append(closed, isClosed)
		p.put(origin{host: host}, c)
	}
	for _, isClosed := range closed {
		if !isClosed() {
			open++
		}
	}
	if open != 2 || p.n != 2 || closed[2]() {
		t.Errorf("%d connections are open and %d counted in a pool for two, the newest closed: %t", open, p.n, closed[2]())
	}
}

func TestPool_RemembersWhoSpeaksHTTP2(t *testing.T) {
	t.Parallel()
	p, h2 := newPool(1, 8), origin{secure: true, host: "h2"}
	p.speaks(h2, true)
	for i := range 2 * mostTargets {
		p.speaks(origin{secure: true, host: strconv.Itoa(i)}, false)
	}
	if !p.speaksHTTP2(h2) {
		t.Error("origins that speak HTTP/1.1 made it forget")
	}
	p.speaks(h2, false)
	if p.speaksHTTP2(h2) {
		t.Error("an origin that changed its mind is not believed")
	}
}

func TestPool_SweepClosesWhatIsIdleForTooLongOrClosed(t *testing.T) {
	t.Parallel()
	p, a, b := newPool(8, 8), origin{host: "a"}, origin{host: "b"}
	old, oldClosed := pooled(t)
	fresh, freshClosed := pooled(t)
	other, otherClosed := pooled(t)
	gone, _ := pooled(t)
	p.put(a, old)
	p.put(a, fresh)
	p.put(b, other)
	p.put(b, gone)
	old.idleAt, other.idleAt = time.Now().Add(-idleTimeout), time.Now().Add(-idleTimeout)
	gone.idleAt, fresh.idleAt = time.Now().Add(-2*sweepEvery), time.Now().Add(-2*sweepEvery)
	gone.tcp.(*net.TCPConn).CloseRead() // As if the other side had closed it.
	p.sweep()
	if !oldClosed() || !otherClosed() || freshClosed() {
		t.Error("the sweep closed others than those that were idle for too long")
	}
	if len(p.idle) != 1 || p.n != 1 {
		t.Errorf("%d origins with %d connections are left, want one of each", len(p.idle), p.n)
	}
	p.close()
	if !freshClosed() || p.n != 0 {
		t.Error("something is left after closing")
	}
}
