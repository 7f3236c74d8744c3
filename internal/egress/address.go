package egress

import "net/netip"

// family is a range of addresses that no call may reach, and what such an address is called in a sentence.
type family struct {
	prefix netip.Prefix
	what   string
}

// families4 and families6 name every family that the guard refuses, so that none depends on the base list of
// code.dny.dev/ssrf and a sentence can say what an address is. The base list is asked as well: it follows the registries
// of IANA and refuses all of IPv6 outside global unicast.
var (
	families4 = []family{
		{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},        // RFC 1122, section 3.2.1.3
		{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},            // RFC 1918
		{netip.MustParsePrefix("100.64.0.0/10"), "a carrier's NAT address"},   // RFC 6598
		{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},          // RFC 1122, section 3.2.1.3
		{netip.MustParsePrefix("168.63.129.16/32"), "a cloud host's address"}, // the host agent of Azure, public by number only
		{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},     // RFC 3927; cloud metadata
		{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},         // RFC 1918
		{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address"},         // RFC 6890
		{netip.MustParsePrefix("192.0.2.0/24"), "a documentation address"},    // RFC 5737
		{netip.MustParsePrefix("192.31.196.0/24"), "a reserved address"},      // RFC 7535
		{netip.MustParsePrefix("192.52.193.0/24"), "a reserved address"},      // RFC 7450
		{netip.MustParsePrefix("192.88.99.0/24"), "a 6to4 relay address"},     // RFC 7526
		{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},        // RFC 1918
		{netip.MustParsePrefix("192.175.48.0/24"), "a reserved address"},      // RFC 7534
		{netip.MustParsePrefix("198.18.0.0/15"), "a benchmarking address"},    // RFC 2544
		{netip.MustParsePrefix("198.51.100.0/24"), "a documentation address"}, // RFC 5737
		{netip.MustParsePrefix("203.0.113.0/24"), "a documentation address"},  // RFC 5737
		{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},         // RFC 5771
		{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},          // RFC 1112, with limited broadcast
	}
	families6 = []family{
		{netip.MustParsePrefix("::/128"), "an unspecified address"},              // RFC 4291, section 2.5.2
		{netip.MustParsePrefix("::1/128"), "a loopback address"},                 // RFC 4291, section 2.5.3
		{netip.MustParsePrefix("::/96"), "an IPv4-compatible address"},           // RFC 4291, section 2.5.5.1
		{netip.MustParsePrefix("::ffff:0:0:0/96"), "an IPv4-translated address"}, // RFC 2765, section 2.1
		{netip.MustParsePrefix("64:ff9b::/96"), "a NAT64 address"},               // RFC 6052
		{netip.MustParsePrefix("64:ff9b:1::/48"), "a NAT64 address"},             // RFC 8215
		{netip.MustParsePrefix("100::/64"), "a discard address"},                 // RFC 6666
		{netip.MustParsePrefix("100:0:0:1::/64"), "a discard address"},           // RFC 9780, dummy prefix
		{netip.MustParsePrefix("2001::/32"), "a Teredo address"},                 // RFC 4380
		{netip.MustParsePrefix("2001:2::/48"), "a benchmarking address"},         // RFC 5180
		{netip.MustParsePrefix("2001::/23"), "a reserved address"},               // RFC 2928
		{netip.MustParsePrefix("2001:db8::/32"), "a documentation address"},      // RFC 3849
		{netip.MustParsePrefix("2002::/16"), "a 6to4 address"},                   // RFC 3056
		{netip.MustParsePrefix("2620:4f:8000::/48"), "a reserved address"},       // RFC 7534
		{netip.MustParsePrefix("3ffe::/16"), "a reserved address"},               // RFC 3701, the ended 6bone
		{netip.MustParsePrefix("3fff::/20"), "a documentation address"},          // RFC 9637
		{netip.MustParsePrefix("5f00::/16"), "a segment routing address"},        // RFC 9602
		{netip.MustParsePrefix("fc00::/7"), "a private address"},                 // RFC 4193
		{netip.MustParsePrefix("fe80::/10"), "a link-local address"},             // RFC 4291, section 2.5.6
		{netip.MustParsePrefix("fec0::/10"), "a site-local address"},             // RFC 3879
		{netip.MustParsePrefix("ff00::/8"), "a multicast address"},               // RFC 4291, section 2.7
	}
)

// familyOf reports what a plain address is called when it is in a family that no call may reach.
func familyOf(addr netip.Addr) (what string, refused bool) {
	list := families4
	if addr.Is6() {
		list = families6
	}
	for _, f := range list {
		if f.prefix.Contains(addr) {
			return f.what, true
		}
	}
	return "", false
}

// plain strips what must not change a judgement: an IPv4 address mapped into IPv6 is the IPv4 address that a socket
// would connect to, and a zone does not change what an address is.
func plain(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }
