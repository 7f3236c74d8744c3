package egress

import (
	"errors"
	"strings"

	"golang.org/x/net/idna"
)

const (
	// maxNameLen and maxLabelLen are the limits of a host name in text form (RFC 1035, section 2.3.4).
	maxNameLen  = 253
	maxLabelLen = 63
)

var errBadName = errors.New("not a host name")

// canonicalName maps a host name to the ASCII form in which it is judged, compared and looked up: lower case, IDNA
// mapped (UTS 46, profile Lookup), without the dot that may end a rooted name. The mapping turns full-width digits and
// ideographic dots into plain ones, which is why nothing may be judged before it. Underscores are no host name
// characters (RFC 952), but receivers on internal networks use them and the resolver takes them.
func canonicalName(name string) (string, error) {
	if needsIDNA(name) {
		mapped, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return "", errBadName
		}
		name = mapped
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if name == "" || len(name) > maxNameLen {
		return "", errBadName
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return "", errBadName
		}
	}
	return name, nil
}

// needsIDNA reports whether a name has to go through the mapping: it holds other characters than ASCII, or a label
// that claims to be the encoding of such (RFC 5890, section 2.3.2.1).
func needsIDNA(name string) bool {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return true
		}
		if i+4 <= len(name) && strings.EqualFold(name[i:i+4], "xn--") {
			return true
		}
	}
	return false
}

func isLabel(label string) bool {
	if label == "" || len(label) > maxLabelLen || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for i := range len(label) {
		switch c := label[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// endsInNumber reports whether the last label is a decimal, octal or hexadecimal number. No top-level domain is one, so
// such a host can only be meant as an IPv4 address (WHATWG URL, "ends in a number checker"); C resolvers read the short
// and mixed forms, 127.1 or 0x7f000001, as addresses.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		last, digits = hex, "0123456789abcdef"
		if last == "" {
			return true
		}
	}
	return strings.Trim(last, digits) == ""
}

// isLocalName reports whether a name is reserved for local use: localhost and local by RFC 6761 and RFC 6762, internal
// by the ICANN board's resolution of 29 July 2024.
func isLocalName(name string) bool {
	return name == "localhost" ||
		strings.HasSuffix(name, ".localhost") ||
		strings.HasSuffix(name, ".local") ||
		strings.HasSuffix(name, ".internal")
}
