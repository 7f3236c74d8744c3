package egress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"time"
)

// readsOnFor is how long a receiver that has answered in full may go on reading the request.
const readsOnFor = time.Second

// longAgo as a deadline ends what reads and writes at once.
var longAgo = time.Unix(1, 0)

// errBadStatus is an answer whose status is no final one (RFC 9110, section 15): 101 to a request for no other protocol.
var errBadStatus = errors.New("the answer has no final status")

// exchange sends the message over HTTP/1.1 and reads the answer. The connection is kept where both have come to their end.
func (d *Door) exchange(a *attempt, c *conn, m message, resp *Response) error {
	stop := context.AfterFunc(a.ctx, func() { c.SetDeadline(longAgo) })
	written := make(chan error, 1)
	if len(m.body) > writtenAtOnce {
		go func() { written <- c.write(m) }()
	} else {
		written <- c.write(m)
	}
	// A receiver that refuses a request may answer before it closes on the rest of it.
	answer, err := c.readHead(m.method, a.gotFirstByte)
	ended := err == nil && a.take(answer, m, resp) && !answer.Close
	if !ended {
		c.hangUp()
	}
	var sent error
	select {
	case sent = <-written:
	default:
		late := time.AfterFunc(readsOnFor, c.hangUp)
		sent = <-written
		late.Stop()
	}
	a.sent(sent)
	if stop() && ended && sent == nil && c.quiet() {
		d.pool.put(a.origin, c)
	} else {
		c.hangUp()
	}
	return err
}

// exchangeHTTP2 leaves the message to the transport. GetBody stays nil, so that no body can be sent again.
func (d *Door) exchangeHTTP2(a *attempt, m message, resp *Response) error {
	a.begin()
	req := http.Request{
		Method: m.method, URL: m.url, Host: m.url.Host, Header: m.header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: http.NoBody, ContentLength: int64(len(m.body)),
	}
	if len(m.body) > 0 {
		req.Body = io.NopCloser(bytes.NewReader(m.body))
	}
	answer, err := d.transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(a.ctx, a.trace())))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode < 200 {
		return errBadStatus
	}
	a.take(answer, m, resp)
	return nil
}

// take takes in an answer, whose headers have come, and reports whether its body has come to its end.
func (a *attempt) take(answer *http.Response, m message, resp *Response) (ended bool) {
	resp.Status, resp.Header = answer.StatusCode, answer.Header
	read := resp.readBody
	if m.keep > 0 {
		read = func(answer *http.Response) error { return resp.readAll(answer, m.keep) }
	}
	err := read(answer)
	if err != nil && err != io.EOF {
		resp.BodyError = a.classify(err, PhaseBody)
		resp.Failure = bodyFailure(resp.Status, resp.BodyError)
	}
	return err == io.EOF
}

// bodyFailure decides whether an answer with a broken body is still an answer. A 2xx is, because its status line decides.
// So is any that we stopped reading ourselves: the receiver gave its verdict, and to forget it would send again.
func bodyFailure(status int, f *Failure) *Failure {
	if status/100 == 2 || f.Type == Interrupted || f.Type == Cancelled {
		return nil
	}
	return f
}
