package egress

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// servicePorts are the ports of well-known services that do not speak HTTP, or must not be spoken to by strangers: a
// request to one of them is never a delivery, but can be made to look like a command.
var servicePorts = []uint16{22, 23, 25, 110, 143, 465, 587, 993, 995, 3306, 5432, 6379, 9200, 11211, 27017}

// CheckURL is gate 1: it judges the text of a URL and resolves nothing. It returns the URL as it will be called, its
// host in ASCII, lower case and without the final dot or zone. The error is a *[BlockedError]. [Door.Send] applies the
// same check, so that a URL saved before a setting changed is judged by the present one.
func (d *Door) CheckURL(raw string) (*url.URL, error) {
	t, err := d.target(raw)
	if err != nil {
		return nil, err
	}
	u := *t.url
	return &u, nil
}

// target is a URL as it will be called, with the host and port that the gates judge by. It is shared and must not be changed.
type target struct {
	url  *url.URL
	host string
	// addr is the host where it is a literal address, not valid otherwise.
	addr netip.Addr
	port uint16
}

// mostTargets bounds the URLs whose reading is kept.
const mostTargets = 1024

// targets keeps what URLs say, which never changes, so that each attempt only judges it. It is safe for concurrent use.
type targets struct {
	mu    sync.RWMutex
	byURL map[string]target
}

func (c *targets) get(raw string) (target, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	t, ok := c.byURL[raw]
	return t, ok
}

func (c *targets) put(raw string, t target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byURL == nil || len(c.byURL) >= mostTargets {
		c.byURL = map[string]target{}
	}
	c.byURL[raw] = t
}

// target applies gate 1.
func (d *Door) target(raw string) (target, error) {
	t, ok := d.targets.get(raw)
	if !ok {
		var err error
		if t, err = d.read(raw); err != nil {
			return target{}, err
		}
		d.targets.put(raw, t)
	}
	if slices.Contains(servicePorts, t.port) && !d.judge.allow.permitsPort(t.host, plain(t.addr), t.port) {
		return target{}, blocked(RulePort, "Port %d belongs to a service that takes no HTTP requests. Use the port of the receiver, usually 443.", t.port)
	}
	if t.addr.IsValid() {
		if err := d.judge.literal(t.addr, t.port); err != nil {
			return target{}, err
		}
	} else if isLocalName(t.host) && !d.judge.allow.permitsHost(t.host, t.port) {
		return target{}, blocked(RuleName, "%s is a name for local use, which this installation does not call. Use a public name, or ask its administrator to allow this one.", t.host)
	}
	return t, nil
}

// read takes a URL apart.
func (d *Door) read(raw string) (target, error) {
	u, err := d.parse(raw)
	if err != nil {
		return target{}, err
	}
	host, addr, err := canonicalHost(u, raw)
	if err != nil {
		return target{}, err
	}
	port, err := portOf(u)
	if err != nil {
		return target{}, err
	}
	u.Host = host
	if addr.Is6() {
		u.Host = "[" + host + "]"
	}
	if u.Scheme == "http" && port != 80 || u.Scheme == "https" && port != 443 {
		u.Host += ":" + strconv.Itoa(int(port))
	}
	return target{url: u, host: host, addr: addr, port: port}, nil
}

// parse covers the rules about the text as a whole, up to the host.
func (d *Door) parse(raw string) (*url.URL, error) {
	if raw == "" {
		return nil, blocked(RuleURL, "The URL is empty. Write one that starts with https://.")
	}
	if !utf8.ValidString(raw) || strings.ContainsFunc(raw, isForbiddenRune) {
		return nil, blocked(RuleURL, "The URL holds spaces, control characters or a backslash. Remove them, or write them as %%20 and the like.")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, blocked(RuleURL, "The URL cannot be read. Write it like https://hooks.example.com/path, a literal IPv6 address in square brackets.")
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, blocked(RuleScheme, "The URL must start with https://.")
	case u.Scheme == "http" && !d.allowHTTP:
		return nil, blocked(RuleScheme, "This installation calls only encrypted addresses. Use https:// instead of http://.")
	case u.User != nil:
		return nil, blocked(RuleUserinfo, "The URL holds a user name or password before the @. Remove it: it would be stored and shown as part of the address.")
	case u.Host == "":
		return nil, blocked(RuleHost, "The URL names no host. Write it like https://hooks.example.com/path.")
	}
	return u, nil
}

func isForbiddenRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r <= ' ' || r == 0x7f || r == '\\'
	}
	return unicode.IsControl(r) || unicode.IsSpace(r)
}

// canonicalHost reads the host of a parsed URL: a literal address, or a name when addr is invalid.
func canonicalHost(u *url.URL, raw string) (host string, addr netip.Addr, err error) {
	name := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		addr, err := netip.ParseAddr(name)
		if err != nil || !addr.Is6() {
			return "", netip.Addr{}, blocked(RuleHost, "The host in square brackets is no IPv6 address. Write it like [2001:db8::1].")
		}
		addr = addr.WithZone("")
		return addr.String(), addr, nil
	}
	// The parser has decoded the host, and a host that needs decoding is a disguise: no name holds a percent sign.
	if strings.Contains(authority(raw), "%") {
		return "", netip.Addr{}, blocked(RuleHost, "The host holds percent signs. Write the name as it is, without encoding.")
	}
	host, nameErr := canonicalName(name)
	if nameErr != nil {
		return "", netip.Addr{}, blocked(RuleHost, "%q is no host name. Write it like hooks.example.com.", name)
	}
	if !endsInNumber(host) {
		return host, netip.Addr{}, nil
	}
	addr, err = netip.ParseAddr(host)
	if err != nil {
		return "", netip.Addr{}, blocked(RuleHost, "%q looks like an IP address in an unusual form. Write four decimal numbers without leading zeros, or a name.", name)
	}
	return host, addr, nil
}

// authority cuts host and port, as written, out of a URL that has both a scheme and a host.
func authority(raw string) string {
	_, rest, _ := strings.Cut(raw, "//")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

func portOf(u *url.URL) (uint16, error) {
	text := u.Port()
	switch {
	case text == "" && u.Scheme == "http":
		return 80, nil
	case text == "":
		return 443, nil
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return 0, blocked(RulePort, "The port must be a number from 1 to 65535.")
	}
	return uint16(port), nil
}

func blocked(rule Rule, format string, args ...any) *BlockedError {
	return &BlockedError{Rule: rule, Sentence: fmt.Sprintf(format, args...)}
}
