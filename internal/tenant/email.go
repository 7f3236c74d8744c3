package tenant

import (
	"net/mail"
	"strings"

	"golang.org/x/net/idna"
)

// Limits of an address: RFC 5321, section 4.5.3.1.
const (
	maxEmail = 254
	maxLocal = 64
)

// NormalizeEmail brings an address to the one form that is stored and compared: trimmed, lower case, the domain in ASCII.
// Otherwise it answers a sentence that says what is wrong. Only what a mail server would surely take is accepted: an
// ASCII local part without quotes or comments, and a domain with a dot.
func NormalizeEmail(s string) (email, problem string) {
	s = strings.TrimSpace(s)
	if s == "" {
		return "", "Enter an e-mail address."
	}
	const notAnAddress = "This is not an e-mail address."
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at == len(s)-1 || len(s) > 4*maxEmail {
		return "", notAnAddress
	}
	local, domain := s[:at], s[at+1:]
	for _, r := range local {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`"(),:;<>@[\]`, r) {
			return "", notAnAddress
		}
		if r > 0x7f {
			return "", "The part before the @ may only hold letters, digits and signs of ASCII."
		}
	}
	domain, err := idna.Lookup.ToASCII(strings.TrimSuffix(domain, "."))
	if err != nil || !strings.Contains(domain, ".") {
		return "", notAnAddress
	}
	email = strings.ToLower(local + "@" + domain)
	if len(local) > maxLocal || len(email) > maxEmail {
		return "", "This address is too long."
	}
	if parsed, err := mail.ParseAddress(email); err != nil || parsed.Address != email || parsed.Name != "" {
		return "", notAnAddress
	}
	return email, ""
}
