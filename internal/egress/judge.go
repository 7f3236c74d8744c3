package egress

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"

	"code.dny.dev/ssrf"
)

// judge is the opinion that all three gates share about addresses. It is safe for concurrent use.
type judge struct {
	allow    Allow
	guardian *ssrf.Guardian
	// denied holds the plain addresses that stay refused whatever allow says. The slice is never written after it was
	// stored.
	denied atomic.Pointer[[]netip.AddrPort]
}

func newJudge(allow Allow, denied []netip.AddrPort) (*judge, error) {
	j := &judge{allow: allow, guardian: ssrf.New(ssrf.WithAnyPort())}
	j.denied.Store(new([]netip.AddrPort))
	return j, j.deny(denied)
}

// deny adds addresses. An unspecified address stands for every address of this machine, because that is where its
// listener answers.
func (j *judge) deny(addrs []netip.AddrPort) error {
	var more []netip.AddrPort
	for _, ap := range addrs {
		if !ap.IsValid() || ap.Port() == 0 {
			return fmt.Errorf("the address to deny, %q, needs an IP address and a port", ap)
		}
		addr := plain(ap.Addr())
		more = append(more, netip.AddrPortFrom(addr, ap.Port()))
		if !addr.IsUnspecified() {
			continue
		}
		own, err := net.InterfaceAddrs()
		if err != nil {
			return fmt.Errorf("list own addresses: %w", err)
		}
		for _, a := range own {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				more = append(more, netip.AddrPortFrom(plain(p.Addr()), ap.Port()))
			}
		}
	}
	for {
		old := j.denied.Load()
		all := slices.Concat(*old, more)
		if j.denied.CompareAndSwap(old, &all) {
			return nil
		}
	}
}

// isDenied reports whether a plain address leads to a denied one. Any loopback address reaches a listener on the
// unspecified address, and connecting to the unspecified address reaches a listener on a loopback one.
func (j *judge) isDenied(addr netip.Addr, port uint16) bool {
	for _, d := range *j.denied.Load() {
		if d.Port() != port {
			continue
		}
		if d.Addr() == addr ||
			addr.IsUnspecified() && d.Addr().IsLoopback() ||
			d.Addr().IsUnspecified() && (addr.IsLoopback() || addr.IsUnspecified()) {
			return true
		}
	}
	return false
}

// literal judges an address that a URL spells, so its sentence may say what kind of address it is.
func (j *judge) literal(addr netip.Addr, port uint16) error {
	addr = plain(addr)
	if j.isDenied(addr, port) {
		return &BlockedError{Rule: RuleAddress, Sentence: fmt.Sprintf("%s leads back into this installation, which does not call itself. Use the address of the receiver.", netip.AddrPortFrom(addr, port))}
	}
	if j.allow.permitsAddr(addr, port) {
		return nil
	}
	what, refused := familyOf(addr)
	if !refused && j.guardian.SafeAddr(addr) != nil {
		what, refused = "a reserved address", true
	}
	if !refused {
		return nil
	}
	return &BlockedError{Rule: RuleAddress, Sentence: fmt.Sprintf("%s is %s, which this installation does not call. Use a public address, or ask its administrator to allow this one.", addr, what)}
}

// resolved judges the address that a call to host is about to reach or has reached. The sentence names only the host.
func (j *judge) resolved(host string, target netip.AddrPort) error {
	addr := plain(target.Addr())
	if !addr.IsValid() || j.isDenied(addr, target.Port()) {
		return blockedHost(host)
	}
	if j.allow.permitsHost(host, target.Port()) || j.allow.permitsAddr(addr, target.Port()) {
		return nil
	}
	if _, refused := familyOf(addr); refused || j.guardian.SafeAddr(addr) != nil {
		return blockedHost(host)
	}
	return nil
}

func blockedHost(host string) *BlockedError {
	return &BlockedError{Rule: RuleAddress, Sentence: fmt.Sprintf("%s leads to an address that this installation does not call. Point it at a public address, or ask the administrator to allow it.", host)}
}
