// Package egress is the one door through which the process calls out: webhooks, mail over HTTP, invocations and tests.
//
// A [Door] owns three gates against server-side request forgery and one rule about retries. Gate 1, [Door.CheckURL],
// judges the text of a URL when it is saved and again when it is used. Gate 2 judges the concrete address in the
// dialer, after name resolution, which defeats DNS rebinding. Gate 3 judges the remote address of the connection that
// is to be used, before the request is written, because a pooled connection skips the dialer. The rule: one call
// of [Door.Send] puts at most one request on the wire. Redirects are not followed.
//
// HTTP/1.1 is spoken here, on connections that an attempt has for itself: one write, one read, in the attempt's own
// goroutine, where net/http's transport has three and repeats requests as it sees fit. What parses is net/http's. HTTP/2
// is left to the transport, and a retry that it would make by itself is refused.
//
// The package is a leaf: it knows nothing of deliveries, policies or tenants, and it decides no wait. It says what
// happened, by type and phase, with a sentence that may be shown to a tenant: it never holds a resolved address.
package egress
