package egress

import (
	"net/netip"
	"strings"
	"testing"
)

func TestJudge_AddressCorpus(t *testing.T) {
	t.Parallel()
	j, err := newJudge(Allow{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "100.127.255.255",
		"127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.169.254", "169.254.0.1", "172.16.0.1",
		"172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1",
		"192.168.0.1", "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
		"239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::10.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
		"::ffff:0:127.0.0.1", "::ffff:0:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1",
		"100:0:0:1::1", "2001::1", "2001:0:53aa:64c:0:1:2:3", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
		"2002:7f00:1::", "2002:808:808::1", "2620:4f:8000::1", "3ffe::1", "3fff::1", "4000::1", "5f00::1", "fc00::1",
		"fd00:ec2::254", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "feff::1", "ff00::1", "ff02::1", "::1%lo",
	}
	for _, text := range refused {
		addr := netip.MustParseAddr(text)
		if err := j.literal(addr, 443); err == nil {
			t.Errorf("%s passes gate 1", text)
		}
		err := j.resolved("hooks.example.com", netip.AddrPortFrom(addr, 443))
		if err == nil {
			t.Errorf("%s passes gates 2 and 3", text)
		} else if strings.Contains(err.Error(), text) {
			t.Errorf("the sentence for %s shows the resolved address: %s", text, err)
		}
	}
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1", "126.255.255.255",
		"128.0.0.1", "168.63.129.15", "168.63.129.17", "169.253.255.255", "172.15.255.255", "172.32.0.1", "192.0.1.1",
		"192.167.255.255", "192.169.0.1", "198.17.255.255", "198.20.0.1", "223.255.255.255", "::ffff:8.8.8.8",
		"2001:200::1", "2001:4860:4860::8888", "2003::1", "2400::1", "2606:4700:4700::1111", "2a00::1",
	} {
		addr := netip.MustParseAddr(text)
		if err := j.literal(addr, 443); err != nil {
			t.Errorf("%s at gate 1: %v", text, err)
		}
		if err := j.resolved("hooks.example.com", netip.AddrPortFrom(addr, 443)); err != nil {
			t.Errorf("%s at gates 2 and 3: %v", text, err)
		}
	}
	if err := j.resolved("hooks.example.com", netip.AddrPort{}); err == nil {
		t.Error("an unknown address passes gates 2 and 3")
	}
}

func TestJudge_EveryFamilyIsRefusedByItself(t *testing.T) {
	t.Parallel()
	for _, f := range append(append([]family(nil), families4...), families6...) {
		if what, refused := familyOf(f.prefix.Addr()); !refused || what == "" {
			t.Errorf("%s is not refused", f.prefix)
		}
	}
}

func TestJudge_DeniedAddressesBeatTheAllowList(t *testing.T) {
	t.Parallel()
	allow, err := ParseAllow("0.0.0.0/0", "::/0", "panel.example.com")
	if err != nil {
		t.Fatal(err)
	}
	j, err := newJudge(allow, []netip.AddrPort{
		netip.MustParseAddrPort("0.0.0.0:8080"), netip.MustParseAddrPort("127.0.0.1:5433"), netip.MustParseAddrPort("192.168.7.7:5433"),
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		target  string
		refused bool
	}{
		{"127.0.0.1:8080", true}, {"127.9.9.9:8080", true}, {"0.0.0.0:8080", true}, {"[::1]:8080", true},
		{"[::ffff:127.0.0.1]:8080", true}, {"127.0.0.1:5433", true}, {"0.0.0.0:5433", true}, {"[::]:5433", true},
		{"192.168.7.7:5433", true},
		{"127.0.0.1:8081", false}, {"127.0.0.2:5433", false}, {"192.168.7.8:5433", false}, {"10.0.0.1:443", false},
	}
	for _, tt := range tests {
		target := netip.MustParseAddrPort(tt.target)
		if got := j.resolved("panel.example.com", target) != nil; got != tt.refused {
			t.Errorf("%s at gates 2 and 3: refused %t, want %t", tt.target, got, tt.refused)
		}
		if got := j.literal(target.Addr(), target.Port()) != nil; got != tt.refused {
			t.Errorf("%s at gate 1: refused %t, want %t", tt.target, got, tt.refused)
		}
	}
	if err := j.deny([]netip.AddrPort{{}}); err == nil {
		t.Error("an invalid address to deny was taken")
	}
}
