package mailer

import (
	"fmt"
	"net/mail"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// The limits of what a caller may give. A subject is one header line (RFC 5322, section 2.1.1, allows 998 octets once encoded).
const (
	maxSubjectRunes = 200
	maxOrderRunes   = 128
	maxKeyRunes     = 255
	// MaxBodyBytes bounds the text and the HTML of a mail, each.
	MaxBodyBytes = 256 << 10
)

// checkLine refuses what would break out of a header: line breaks and other control characters, whatever their encoding.
func checkLine(bad *store.InvalidError, field, value string, most int) {
	switch {
	case !utf8.ValidString(value):
		bad.Add(field, "This is not valid UTF-8.")
	case strings.ContainsFunc(value, breaksLines):
		bad.Add(field, "Use no line breaks or other control characters.")
	case utf8.RuneCountInString(value) > most:
		bad.Add(field, fmt.Sprintf("Use %d characters at most.", most))
	}
}

// breaksLines also catches the line and paragraph separators, which some mail programs take for line ends.
func breaksLines(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// checkBody refuses what cannot be stored or sent.
func checkBody(bad *store.InvalidError, field, value string) {
	switch {
	case len(value) > MaxBodyBytes:
		bad.Add(field, fmt.Sprintf("Use %d KiB at most.", MaxBodyBytes>>10))
	case !utf8.ValidString(value):
		bad.Add(field, "This is not valid UTF-8.")
	case strings.ContainsRune(value, 0):
		bad.Add(field, "Use no zero bytes.")
	}
}

// checkAddress brings a recipient's address to its one form: exactly one address, without a name beside it.
func checkAddress(bad *store.InvalidError, field, value string) string {
	if strings.ContainsFunc(value, breaksLines) || strings.ContainsAny(value, "<>,;") {
		bad.Add(field, "Give one plain address such as sales@example.com, without a name and without line breaks.")
		return ""
	}
	address, problem := tenant.NormalizeEmail(value)
	if problem != "" {
		bad.Add(field, problem)
	}
	return address
}

// ParseFrom reads a sender such as "Shop <mail@shop.example>" and gives its one form and its address.
func ParseFrom(from string) (whole, address string, err error) {
	if strings.ContainsFunc(from, breaksLines) {
		return "", "", fmt.Errorf("holds a line break or another control character")
	}
	parsed, err := mail.ParseAddress(strings.TrimSpace(from))
	if err != nil {
		return "", "", fmt.Errorf("is no sender; write it like Shop <mail@shop.example>")
	}
	address, problem := tenant.NormalizeEmail(parsed.Address)
	if problem != "" {
		return "", "", fmt.Errorf("holds no usable address: %s", problem)
	}
	parsed.Address = address
	return parsed.String(), address, nil
}

// domainOf is the domain of an address.
func domainOf(address string) string { return address[strings.LastIndexByte(address, '@')+1:] }

// Mask hides an address but for its first letter and its domain: s•••@shop.example.
func Mask(address string) string {
	at := strings.LastIndexByte(address, '@')
	if at < 1 {
		return "•••"
	}
	_, size := utf8.DecodeRuneInString(address)
	return address[:size] + "•••" + address[at:]
}

var anyAddress = regexp.MustCompile(`[^\s<>()\[\]:;,"]+@[^\s<>()\[\]:;,"]+`)

// scrubAll takes every address out of a text that is kept, for texts that may be about a recipient whom we do not know yet.
func scrubAll(text string) string { return anyAddress.ReplaceAllString(text, "(recipient)") }

// scrub takes an address out of a text that is kept: relays like to repeat it, and it must stay erasable.
func scrub(text, address string) string {
	if address == "" {
		return text
	}
	return regexp.MustCompile(`(?i)`+regexp.QuoteMeta(address)).ReplaceAllString(text, "(recipient)")
}
