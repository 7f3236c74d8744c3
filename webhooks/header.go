package webhooks

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"entrega/internal/store"
)

const (
	maxHeaders     = 20
	maxHeaderBytes = 4 << 10 // names, values and the four bytes around each, as on the wire
)

// hidden stands in an excerpt for a value that looks like a credential.
const hidden = "(hidden)"

// refusedHeaders are the names that an endpoint may not set, with the reason: hop-by-hop headers (RFC 9110, section 7.6.1),
// those that frame the message, and those that Entrega sets itself. Names that start with webhook- are refused as well.
var refusedHeaders = map[string]string{
	"Connection":          "belongs to one connection, not to a message",
	"Keep-Alive":          "belongs to one connection, not to a message",
	"Proxy-Connection":    "belongs to one connection, not to a message",
	"Proxy-Authenticate":  "belongs to one connection, not to a message",
	"Proxy-Authorization": "belongs to one connection, not to a message",
	"Te":                  "belongs to one connection, not to a message",
	"Trailer":             "belongs to one connection, not to a message",
	"Transfer-Encoding":   "belongs to one connection, not to a message",
	"Upgrade":             "belongs to one connection, not to a message",
	"Http2-Settings":      "belongs to one connection, not to a message",
	"Expect":              "would hold the body back",
	"Accept-Encoding":     "is left out, so that answers come uncompressed",
	"Content-Encoding":    "would not be true: the body is sent as it is",
	"Host":                "is taken from the URL",
	"Content-Length":      "is computed for each request",
	"Content-Type":        "is application/json for every webhook",
	"User-Agent":          "names the sender",
	"Idempotency-Key":     "would let a client library send a request twice; receivers tell repeats by webhook-id",
	"X-Idempotency-Key":   "would let a client library send a request twice; receivers tell repeats by webhook-id",
}

// checkHeaders says what is wrong with an endpoint's own headers, each under headers.<name>, and returns them with
// canonical names and trimmed values.
func checkHeaders(headers map[string]string, bad *store.InvalidError) map[string]string {
	if len(headers) > maxHeaders {
		bad.Add("headers", fmt.Sprintf("There are %d headers; %d are the most.", len(headers), maxHeaders))
		return nil
	}
	clean := make(map[string]string, len(headers))
	size := 0
	for _, given := range slices.Sorted(maps.Keys(headers)) {
		name, value := http.CanonicalHeaderKey(strings.TrimSpace(given)), strings.TrimSpace(headers[given])
		size += len(name) + len(value) + len(": \r\n")
		if sentence := headerSentence(name, value); sentence != "" {
			bad.Add("headers."+given, sentence)
			continue
		}
		if _, twice := clean[name]; twice {
			bad.Add("headers."+given, "This header is given twice.")
			continue
		}
		clean[name] = value
	}
	if size > maxHeaderBytes {
		bad.Add("headers", fmt.Sprintf("They take %d bytes together; %d are the most.", size, maxHeaderBytes))
	}
	return clean
}

// headerSentence judges one header by its canonical name; "" is good.
func headerSentence(name, value string) string {
	if why, refused := refusedHeaders[name]; refused {
		return name + " cannot be set: it " + why + "."
	}
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return "A header's name takes letters, digits and hyphens, without spaces."
	case strings.HasPrefix(name, "Webhook-"):
		return "Headers that start with webhook- belong to Standard Webhooks and cannot be set."
	case value == "":
		return "Give the header a value, or leave it out."
	case !httpguts.ValidHeaderFieldValue(value):
		return "The value holds a line break or another control character."
	default:
		return ""
	}
}

// credentialWords give away, inside a header's lower-case name, that its value lets somebody in.
var credentialWords = []string{"auth", "cookie", "token", "secret", "password", "passwd", "credential", "api-key", "apikey", "access-key", "session", "signature", "jwt"}

// isCredential reports whether a header looks as if its value lets somebody in.
func isCredential(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(lower, word) })
}

// excerptHeader is a request's header for the evidence. An endpoint's own credentials are hidden; the signature of the
// message stays, for it proves what was sent and lets nobody in.
func excerptHeader(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		switch name {
		case headerContentType, headerUserAgent, headerID, headerTimestamp, headerSignature: // Ours: see message.header.
		default:
			if isCredential(name) {
				values = []string{hidden}
			}
		}
		out[name] = values
	}
	return out
}

// MaskHeaders hides the values of an endpoint's own headers that look like credentials, for people who may see the
// endpoint and not its secrets.
func MaskHeaders(headers map[string]string) map[string]string {
	out := make(map[string]string, len(headers))
	for name, value := range headers {
		if isCredential(name) {
			value = hidden
		}
		out[name] = value
	}
	return out
}
