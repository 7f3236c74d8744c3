package jobs

import (
	"net/http"
	"time"
)

// Evidence is what one attempt leaves behind. A handler fills in what it learned; the worker adapter adds the decision and
// writes both to the ledger before River is told. An attempt whose Sent is false asked nobody.
type Evidence struct {
	// Sent tells that a request left, or was about to leave, this process: it makes a snooze worth a ledger row.
	Sent bool
	// StartedAt and FinishedAt bound the attempt; the adapter fills in its own clock where they are zero.
	StartedAt, FinishedAt time.Time
	Timings               Timings
	// Peer is the address that was spoken to, host:port.
	Peer string
	// ResponseClass is success, redirect, client, throttle, server, network, policy or unknown.
	ResponseClass string
	// Status is the HTTP status or the SMTP code, 0 without an answer.
	Status int
	// ErrorType and Phase are those of 3-retry.md (HttpError, Timeout in phase headers, …), empty on success.
	ErrorType, Phase string
	// Error is a sentence for people; it never names a resolved address.
	Error string
	// RetryAfter is the raw header and how it was read; nil when the answer had none.
	RetryAfter *RetryAfter
	// IdempotencyKey is the webhook-id or the notification id.
	IdempotencyKey string
	// OrderID and RecipientRef are the subject of a mail. Like the key they begin as the task was inserted with.
	OrderID      string
	RecipientRef []byte
	Request      Excerpt
	Response     Excerpt
	// Note is a remark about a success that was not quite clean, such as a body that broke off.
	Note string
}

// Timings are the phases of one request; zero means the phase did not happen.
type Timings struct {
	DNS, Connect, TLS, FirstByte, Total time.Duration
}

// Excerpt is one side of an exchange, cut to 16 KiB. Signature secrets never enter it.
type Excerpt struct {
	// Line is the request line, such as "POST /hooks HTTP/1.1".
	Line      string
	Header    http.Header
	Body      []byte
	Truncated bool
	// SHA256 is over the whole body as sent or as far as it was read; nil without a body.
	SHA256 []byte
}
