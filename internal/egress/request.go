package egress

import (
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Request is one request to send, once.
type Request struct {
	// Method is POST when empty.
	Method string
	URL    string
	// Header is read and not changed. It must not name the headers that belong to the connection or the framing.
	Header http.Header
	// Body must never be changed: a connection that is being given up may read it after [Door.Send] has returned.
	Body []byte
	// Timeouts are limits for this request. Zero fields stand for the defaults.
	Timeouts Timeouts
	// AllowIdempotencyKey permits the headers Idempotency-Key and X-Idempotency-Key, for mail APIs. Elsewhere they are
	// refused, because HTTP libraries and proxies, net/http among them, take them as leave to send a request again.
	AllowIdempotencyKey bool

	// keep is how much of the answer's body is kept, 16 KiB when zero.
	keep int
}

// The limits of an attempt when the request names none.
const (
	defaultTotal   = 10 * time.Second
	defaultConnect = 3 * time.Second
	defaultTLS     = 3 * time.Second
)

// Timeouts limit one attempt. Zero stands for the default.
type Timeouts struct {
	// Total covers the whole attempt, reading the body included. 10 s by default.
	Total time.Duration
	// Connect covers looking up the name and connecting to one of its addresses. 3 s by default.
	Connect time.Duration
	// TLS covers the handshake. 3 s by default.
	TLS time.Duration
}

func (t Timeouts) withDefaults() Timeouts {
	if t.Total <= 0 {
		t.Total = defaultTotal
	}
	if t.Connect <= 0 {
		t.Connect = defaultConnect
	}
	if t.TLS <= 0 {
		t.TLS = defaultTLS
	}
	return t
}

// ownHeaders belong to the connection or to the framing of the message (RFC 9110, section 7.6.1), so the door sets
// them. Expect would split a request into two steps.
var ownHeaders = []string{
	"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Te",
	"Trailer", "Transfer-Encoding", "Upgrade",
}

// header checks the headers of the request and returns a copy of the map with the user agent. A *configError names the
// field and never its value.
func (r *Request) header(userAgent string) (http.Header, error) {
	h := make(http.Header, len(r.Header)+1)
	hasAgent := false
	for name, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, &configError{fmt.Sprintf("The header name %q is not valid: use letters, digits and hyphens.", name)}
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return nil, &configError{fmt.Sprintf("The value of the header %s is not valid: it holds a line break or another control character.", name)}
			}
		}
		switch key := textproto.CanonicalMIMEHeaderKey(name); {
		case slices.Contains(ownHeaders, key):
			return nil, &configError{fmt.Sprintf("The header %s is set by the server itself and cannot be given.", name)}
		case (key == "Idempotency-Key" || key == "X-Idempotency-Key") && !r.AllowIdempotencyKey:
			return nil, &configError{fmt.Sprintf("The header %s cannot be sent: HTTP clients and proxies take it as leave to repeat a request. Receivers tell repeats by the webhook-id.", name)}
		case key == "User-Agent":
			hasAgent = true
		}
		h[name] = values
	}
	if !hasAgent {
		h["User-Agent"] = []string{userAgent}
	}
	return h, nil
}

// method returns the method to use, or a *configError when it is no token (RFC 9110, section 9.1) or makes a tunnel.
func (r *Request) method() (string, error) {
	switch {
	case r.Method == "":
		return http.MethodPost, nil
	case !httpguts.ValidHeaderFieldName(r.Method), r.Method == http.MethodConnect:
		return "", &configError{fmt.Sprintf("The method %q cannot be used.", r.Method)}
	}
	return r.Method, nil
}
