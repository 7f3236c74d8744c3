package webhooks_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"entrega/jobs"
	"entrega/webhooks"
)

func TestDeliver_ClosedConnectionIsOneRequestPerLedgerRow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	closeIt := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	e := b.create(webhooks.Settings{URL: r.url})
	b.start()

	// The first answer leaves a connection in the pool; the requests after it are the ones that the receiver drops.
	b.publish("warm-up")
	b.reach(b.delivery("warm-up", e.Endpoint.ID).ID, jobs.StateCompleted, 1)
	r.answers(closeIt)
	b.publish("order-1")
	id := b.delivery("order-1", e.Endpoint.ID).ID
	for n := 1; n <= 4; n++ {
		b.reach(id, jobs.StateRetryable, n)
		if n == 2 { // Pool a connection again, for the next one to be dropped on.
			r.answers(nil)
			b.due(id)
			b.reach(id, jobs.StateCompleted, 3)
			break
		}
		b.due(id)
	}
	r.answers(closeIt)
	b.publish("order-2")
	second := b.delivery("order-2", e.Endpoint.ID).ID
	b.reach(second, jobs.StateRetryable, 1)

	perEvent := map[string]int{}
	for _, got := range r.ids() {
		perEvent[got]++
	}
	for event, id := range map[string]int64{"order-1": id, "order-2": second} {
		records := b.records(id)
		if perEvent[event] != len(records) {
			t.Errorf("%s: %d requests and %d ledger rows", event, perEvent[event], len(records))
		}
		if first := records[0]; *first.ErrorType != "ConnectionFailed" || first.Class != "network" {
			t.Errorf("%s: recorded as %s, class %s", event, *first.ErrorType, first.Class)
		}
	}
}

func TestDeliver_RedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	inside, r := b.receiver(), b.receiver()
	r.answers(func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, inside.url, http.StatusFound) })
	e := b.create(webhooks.Settings{URL: r.url})
	b.start()
	b.publish("order-1")
	id := b.delivery("order-1", e.Endpoint.ID).ID
	b.reach(id, jobs.StateRetryable, 1)
	if n := inside.count(); n != 0 {
		t.Errorf("the redirect was followed %d times", n)
	}
	rec := b.records(id)[0]
	if rec.Class != "redirect" || *rec.Status != 302 {
		t.Errorf("recorded as class %s, status %d", rec.Class, *rec.Status)
	}
	excerpts, err := jobs.ExcerptsOfTask(b.ctx, b.pool, b.project, id)
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := json.Marshal(excerpts[0].ResponseHeaders); !strings.Contains(string(raw), inside.url) {
		t.Errorf("the Location was not kept: %s", raw)
	}
}

func TestDeliver_NameThatTurnsToLoopbackIsBlocked(t *testing.T) {
	t.Parallel()
	names := newNameServer(t)
	names.set("hooks.example.com", "93.184.216.34")
	b := setupWith(t, options{resolver: names.resolver()})
	r := b.receiver()
	u, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	e := b.create(webhooks.Settings{URL: "http://hooks.example.com:" + u.Port() + "/hook"})
	names.set("hooks.example.com", "127.0.0.1")
	b.start()
	b.publish("order-1")
	id := b.delivery("order-1", e.Endpoint.ID).ID
	task := b.reach(id, jobs.StateDiscarded, 1)
	rec := b.records(id)[0]
	if task.Reason != jobs.ReasonBlocked || *rec.ErrorType != "BlockedByPolicy" || rec.Class != "policy" {
		t.Errorf("reason %s, type %s, class %s", task.Reason, *rec.ErrorType, rec.Class)
	}
	if n := r.count(); n != 0 {
		t.Errorf("the loopback listener saw %d requests", n)
	}
	if rec.Peer != nil || strings.Contains(*rec.Error, "127.0.0.1") {
		t.Errorf("the resolved address is shown: %v, %s", rec.Peer, *rec.Error)
	}
}

func TestDeliver_HangingEndpointDoesNotHoldUpAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	hanging, healthy := b.receiver(), b.receiver()
	release := hanging.hangs(200)
	stuck := b.create(webhooks.Settings{URL: hanging.url})
	fine := b.create(webhooks.Settings{URL: healthy.url})
	b.start()
	b.publish(names("order", 40)...)
	b.await("everything for the healthy endpoint", func() bool { return b.states(fine.Endpoint.ID)["completed"] == 40 })
	if done := b.states(stuck.Endpoint.ID)["completed"]; done != 0 || hanging.mostAtOnce() != 1 {
		t.Errorf("the hanging endpoint took %d events, %d at once", done, hanging.mostAtOnce())
	}
	release()
	b.await("everything for the other one", func() bool { return b.states(stuck.Endpoint.ID)["completed"] == 40 })
	if n := hanging.mostAtOnce(); n != 1 {
		t.Errorf("%d requests at once in a lane 1 wide", n)
	}
}

func TestDeliver_TimeoutOfTheEndpointCountsInPlaceOfThePolicys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.hangs(200)
	e := b.create(webhooks.Settings{URL: r.url, TimeoutSeconds: 1})
	b.start()
	b.publish("order-1")
	id := b.delivery("order-1", e.Endpoint.ID).ID
	b.reach(id, jobs.StateRetryable, 1)
	rec := b.records(id)[0]
	if *rec.ErrorType != "Timeout" || *rec.Phase != "headers" || rec.TotalUS < 1_000_000 || rec.TotalUS > 5_000_000 {
		t.Errorf("%s in phase %s after %d µs", *rec.ErrorType, *rec.Phase, rec.TotalUS)
	}
}

// nameServer answers A queries on loopback from a table that a test can change.
type nameServer struct {
	conn net.PacketConn

	mu    sync.Mutex
	addrs map[string]netip.Addr
}

func newNameServer(t *testing.T) *nameServer {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ns := &nameServer{conn: conn, addrs: map[string]netip.Addr{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			conn.WriteTo(ns.reply(buf[:n]), from)
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return ns
}

func (ns *nameServer) set(name, addr string) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	ns.addrs[name+"."] = netip.MustParseAddr(addr)
}

func (ns *nameServer) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", ns.conn.LocalAddr().String())
	}}
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
	reply := dnsmessage.Message{Header: dnsmessage.Header{ID: header.ID, Response: true, Authoritative: true}, Questions: []dnsmessage.Question{q}}
	if addr, ok := ns.addrs[q.Name.String()]; ok && q.Type == dnsmessage.TypeA {
		reply.Answers = append(reply.Answers, dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class}, Body: &dnsmessage.AResource{A: addr.As4()}})
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}
