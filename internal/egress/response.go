package egress

import (
	"io"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxBody is how much of an answer's body is kept.
	maxBody = 16 << 10
	// maxDrain is how much is read beyond that to save the connection. More costs more than a new connection.
	maxDrain = 64 << 10
)

// bodyBuffers holds buffers of one byte more than is kept, which tells a body that fits from one that goes on.
var bodyBuffers = sync.Pool{New: func() any { return new([maxBody + 1]byte) }}

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

// readBody keeps the start of the body. What follows is drained when it is short, which saves the connection. It returns io.EOF at the
// end of the body, and nil where it stopped before; an error after what is kept is nobody's concern.
func (resp *Response) readBody(answer *http.Response) error {
	buf := bodyBuffers.Get().(*[maxBody + 1]byte)
	defer bodyBuffers.Put(buf)

	n, err := fill(answer.Body, buf[:])
	resp.BodyTruncated = n > maxBody
	if kept := min(n, maxBody); kept > 0 {
		resp.Body = append(make([]byte, 0, kept), buf[:kept]...)
	}
	if !resp.BodyTruncated {
		return err
	}
	if answer.ContentLength-int64(n) > maxDrain {
		return nil
	}
	for drained := 0; drained < maxDrain && err == nil; {
		n, err = answer.Body.Read(buf[:])
		drained += n
	}
	if err != io.EOF {
		return nil
	}
	return err
}

// readAll keeps up to most bytes of the body. It returns io.EOF at the end of the body, and nil where that is longer.
func (resp *Response) readAll(answer *http.Response, most int) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	resp.BodyTruncated = len(body) > most
	resp.Body = body[:min(len(body), most)]
	if err == nil && !resp.BodyTruncated {
		return io.EOF
	}
	return err
}

// fill reads until the buffer is full, and returns a nil error then, or until reading fails. Unlike io.ReadFull it
// passes the reader's own io.ErrUnexpectedEOF on as something else than io.EOF.
func fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}
