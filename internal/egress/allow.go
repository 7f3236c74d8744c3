package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Allow is what the operator permits beyond the public internet. The zero value permits nothing more. It lifts the
// rules about names, addresses and ports for what it names, and no others: http still needs [Options].AllowHTTP, and
// the addresses in [Options].DenyAddrs stay refused.
//
// A host entry permits that host name whatever it resolves to. An address or CIDR entry permits those addresses
// whatever name leads there, but not a reserved name such as localhost. A well-known service port is permitted only by
// an entry that names the port.
type Allow struct {
	hosts []allowedHost
	nets  []allowedNet
}

// allowedHost is a host name in the form that canonicalHost gives. Port 0 stands for any port.
type allowedHost struct {
	host string
	port uint16
}

// allowedNet is a range of unmapped addresses. Port 0 stands for any port.
type allowedNet struct {
	prefix netip.Prefix
	port   uint16
}

// ParseAllow reads a list of hosts, IP addresses, either with a port, and CIDR ranges. An element may itself hold
// several entries, separated by commas or spaces, as an environment variable does. The error holds one sentence for
// each bad entry.
func ParseAllow(list ...string) (Allow, error) {
	var (
		allow Allow
		errs  []error
	)
	for _, element := range list {
		for _, entry := range strings.FieldsFunc(element, isSeparator) {
			if err := allow.add(entry); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if len(errs) > 0 {
		return Allow{}, errors.Join(errs...)
	}
	return allow, nil
}

func isSeparator(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' }

func (a *Allow) add(entry string) error {
	switch {
	case strings.Contains(entry, "://"):
		return fmt.Errorf("%q is a URL: write only its host, as in hooks.example.com or hooks.example.com:8443", entry)
	case strings.Contains(entry, "*"):
		return fmt.Errorf("%q holds a wildcard: name each host, or give the network as a CIDR range such as 10.0.0.0/8", entry)
	case strings.Contains(entry, "/"):
		return a.addPrefix(entry)
	}
	if addr, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
		return a.addAddr(entry, addr, 0)
	}
	host, port := entry, uint16(0)
	if i := strings.LastIndexByte(entry, ':'); i >= 0 {
		n, err := strconv.ParseUint(entry[i+1:], 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%q has no valid port after the colon: give a number from 1 to 65535, or leave the port out", entry)
		}
		host, port = entry[:i], uint16(n)
	}
	if addr, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return a.addAddr(entry, addr, port)
	}
	name, err := canonicalName(host)
	if err != nil {
		return fmt.Errorf("%q is neither a host name, an IP address nor a CIDR range: write for example hooks.example.com, 10.1.2.3:9000 or 10.0.0.0/8", entry)
	}
	a.hosts = append(a.hosts, allowedHost{host: name, port: port})
	return nil
}

func (a *Allow) addAddr(entry string, addr netip.Addr, port uint16) error {
	if addr.Zone() != "" {
		return fmt.Errorf("%q has a zone: leave out the %% and what follows", entry)
	}
	addr = addr.Unmap()
	a.nets = append(a.nets, allowedNet{prefix: netip.PrefixFrom(addr, addr.BitLen()), port: port})
	return nil
}

func (a *Allow) addPrefix(entry string) error {
	prefix, err := netip.ParsePrefix(entry)
	if err != nil {
		return fmt.Errorf("%q is no CIDR range: write an address, a slash and the number of fixed bits, as in 10.0.0.0/8 or fd00::/8", entry)
	}
	// Addresses are unmapped before they are compared, so a mapped range would never match.
	if prefix.Addr().Is4In6() {
		if prefix.Bits() < 96 {
			return fmt.Errorf("%q mixes IPv4 and IPv6: write the IPv4 range by itself, as in 10.0.0.0/8", entry)
		}
		prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
	}
	a.nets = append(a.nets, allowedNet{prefix: prefix.Masked()})
	return nil
}

// permitsHost reports whether an entry names the host, for that port or for any.
func (a *Allow) permitsHost(host string, port uint16) bool {
	for _, h := range a.hosts {
		if h.host == host && (h.port == 0 || h.port == port) {
			return true
		}
	}
	return false
}

// permitsAddr reports whether an entry covers the unmapped address, for that port or for any.
func (a *Allow) permitsAddr(addr netip.Addr, port uint16) bool {
	for _, n := range a.nets {
		if (n.port == 0 || n.port == port) && n.prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// permitsPort reports whether an entry names the host, or the address it spells, together with this very port.
func (a *Allow) permitsPort(host string, addr netip.Addr, port uint16) bool {
	for _, h := range a.hosts {
		if h.port == port && h.host == host {
			return true
		}
	}
	for _, n := range a.nets {
		if n.port == port && n.prefix.Contains(addr) {
			return true
		}
	}
	return false
}
