package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

const (
	// maxBody is how much of an answer's body is kept.
	maxBody = 16 << 10
	// maxDrain is how much is read beyond that to save the connection. More costs more than a new connection.
	maxDrain = 64 << 10
)

// errBadStatus is an answer whose status is no final one (RFC 9110, section 15): 101 to a request for no other protocol.
var errBadStatus = errors.New("the answer has no final status")

// bodyBuffers holds buffers of one byte more than is kept, which tells a body that fits from one that goes on.
var bodyBuffers = sync.Pool{New: func() any { return new([maxBody + 1]byte) }}

// Send makes one attempt: at most one request, no redirect, no retry. It never returns nil and never fails otherwise
// than through the response. When the context ends, its cause tells Interrupted from Cancelled; its deadline, like
// those of the request, makes a Timeout.
func (d *Door) Send(ctx context.Context, r *Request) *Response {
	startedAt, start := d.now(), time.Now()
	resp := new(Response)
	a := &attempt{judge: d.judge, limits: r.Timeouts.withDefaults()}

	if end, ok := ctx.Deadline(); ok {
		a.limits.Total = min(a.limits.Total, max(0, time.Until(end)))
	}
	ctx, a.refuse = context.WithCancelCause(ctx)
	defer a.refuse(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, a.limits.Total, errDeadline)
	defer cancel()
	a.ctx = httptrace.WithClientTrace(context.WithValue(ctx, attemptKey{}, a), a.trace())

	d.exchange(a, r, resp)
	a.settle(resp)

	resp.Timings.Total = time.Since(start)
	resp.StartedAt = startedAt.UTC().Truncate(time.Microsecond)
	resp.FinishedAt = startedAt.Add(resp.Timings.Total).UTC().Truncate(time.Microsecond)
	return resp
}

func (d *Door) exchange(a *attempt, r *Request, resp *Response) {
	req, err := d.prepare(a, r)
	if err != nil {
		resp.Failure = a.classify(err, "")
		return
	}
	answer, err := d.transport.RoundTrip(req)
	if err == nil && answer.StatusCode < 200 {
		answer.Body.Close()
		err = errBadStatus
	}
	if err != nil {
		resp.Failure = a.classify(err, a.failedPhase())
		a.abandon()
		return
	}
	resp.Status, resp.Header = answer.StatusCode, answer.Header
	read := resp.readBody
	if r.keep > 0 {
		read = func(answer *http.Response) error { return resp.readAll(answer, r.keep) }
	}
	if err := read(answer); err != nil {
		resp.BodyError = a.classify(err, PhaseBody)
		resp.Failure = bodyFailure(resp.Status, resp.BodyError)
	}
}

// bodyFailure decides whether an answer with a broken body is still an answer. A 2xx is, because its status line decides.
// So is any that we stopped reading ourselves: the receiver gave its verdict, and to forget it would send again.
func bodyFailure(status int, f *Failure) *Failure {
	if status/100 == 2 || f.Type == Interrupted || f.Type == Cancelled {
		return nil
	}
	return f
}

// prepare applies gate 1 and makes the request for the transport. GetBody stays nil, so that no body can be sent again.
func (d *Door) prepare(a *attempt, r *Request) (*http.Request, error) {
	t, err := d.target(r.URL)
	if err != nil {
		return nil, asConfigError(err)
	}
	a.host, a.port = t.host, t.port
	method, err := r.method()
	if err != nil {
		return nil, err
	}
	header, err := r.header(d.userAgent)
	if err != nil {
		return nil, err
	}
	req := http.Request{
		Method: method, URL: t.url, Host: t.url.Host, Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: http.NoBody, ContentLength: int64(len(r.Body)),
	}
	if len(r.Body) > 0 {
		// The transport knows this type and sends head and body in one piece; before any other it would send the head by itself.
		req.Body = io.NopCloser(bytes.NewReader(r.Body))
	}
	return req.WithContext(a.ctx), nil
}

// asConfigError tells a URL that no rule permits or forbids, because it cannot be read, from one that is refused.
func asConfigError(err error) error {
	var refused *BlockedError
	if errors.As(err, &refused) && (refused.Rule == RuleURL || refused.Rule == RuleHost) {
		return &configError{refused.Sentence}
	}
	return err
}

// readBody keeps the start of the body and closes it. What follows is drained when it is short, which saves the
// connection, and cut off otherwise. An error after what is kept is nobody's concern.
func (resp *Response) readBody(answer *http.Response) error {
	defer answer.Body.Close()
	buf := bodyBuffers.Get().(*[maxBody + 1]byte)
	defer bodyBuffers.Put(buf)

	n, err := fill(answer.Body, buf[:])
	resp.BodyTruncated = n > maxBody
	if kept := min(n, maxBody); kept > 0 {
		resp.Body = append(make([]byte, 0, kept), buf[:kept]...)
	}
	if !resp.BodyTruncated {
		if err == io.EOF {
			return nil
		}
		return err
	}
	if answer.ContentLength-int64(n) > maxDrain {
		return nil
	}
	for drained := 0; drained < maxDrain && err == nil; {
		n, err = answer.Body.Read(buf[:])
		drained += n
	}
	return nil
}

// readAll keeps up to most bytes of the body and closes it. The connection of a longer one is given up.
func (resp *Response) readAll(answer *http.Response, most int) error {
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	resp.BodyTruncated = len(body) > most
	resp.Body = body[:min(len(body), most)]
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
