package egress

import (
	"net/http"
	"net/netip"
	"time"
)

// Response is what came of one attempt: an HTTP answer, a Failure, or both when an answer broke off.
type Response struct {
	// Status is the status code, zero when there was no answer. A redirect is an answer like any other.
	Status int
	// Header holds the headers of the answer, Location among them, at most 16 KiB.
	Header http.Header
	// Body holds the first 16 KiB as they came, whatever their encoding.
	Body []byte
	// BodyTruncated reports whether the answer went on after Body.
	BodyTruncated bool
	// BodyError is why Body ends early, nil when it does not. An answer with a 2xx status stays a success all the same:
	// the status line decides.
	BodyError *Failure

	// Failure is nil on an HTTP answer. When the answer had another status than 2xx and its body timed out or broke off,
	// Failure is BodyError, and Status and Header are there as well.
	Failure *Failure

	// Peer is the address of the connection, or the last one that was tried. It is not valid when none was, and when the
	// guard refused the target.
	Peer    netip.AddrPort
	Timings Timings
	// StartedAt and FinishedAt are in UTC and in whole microseconds.
	StartedAt, FinishedAt time.Time
	// ReusedConn reports whether the connection came from the pool.
	ReusedConn bool
	// WroteRequest reports whether the request may have reached the receiver as a whole. False is certain.
	WroteRequest bool
}

// Timings are the parts of an attempt. DNS, Connect and TLS are zero on a connection from the pool. The parts do not
// overlap, and what they leave of Total was spent waiting for a connection or reading the answer.
type Timings struct {
	DNS, Connect, TLS time.Duration
	// FirstByte runs from having a connection to the first byte of the answer.
	FirstByte time.Duration
	Total     time.Duration
}
