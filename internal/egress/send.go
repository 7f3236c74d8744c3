package egress

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Send makes one attempt: at most one request, no redirect, no retry. It never returns nil and never fails otherwise
// than through the response. When the context ends, its cause tells Interrupted from Cancelled; its deadline, like
// those of the request, makes a Timeout.
func (d *Door) Send(ctx context.Context, r *Request) *Response {
	startedAt, start := d.now(), time.Now()
	resp := new(Response)
	a := &attempt{judge: d.judge, ctx: ctx, limits: r.Timeouts.withDefaults()}
	defer a.end()
	if end, ok := ctx.Deadline(); ok {
		a.limits.Total = min(a.limits.Total, max(0, time.Until(end)))
	}
	a.deadline = start.Add(a.limits.Total)

	d.attempt(a, r, resp)
	a.settle(resp)

	resp.Timings.Total = time.Since(start)
	resp.StartedAt = startedAt.UTC().Truncate(time.Microsecond)
	resp.FinishedAt = startedAt.Add(resp.Timings.Total).UTC().Truncate(time.Microsecond)
	return resp
}

func (d *Door) attempt(a *attempt, r *Request, resp *Response) {
	m, err := d.prepare(a, r)
	if err != nil {
		resp.Failure = a.classify(err, "")
		return
	}
	c, err := d.connection(a)
	switch {
	case err != nil:
	case c != nil:
		err = d.exchange(a, c, m, resp)
	default:
		err = d.exchangeHTTP2(a, m, resp)
	}
	if err != nil {
		resp.Failure = a.classify(err, a.failedPhase())
		a.abandon()
	}
}

// message is a request that may be sent.
type message struct {
	method string
	url    *url.URL
	header http.Header
	body   []byte
	keep   int // how much of the answer's body is kept where it is not the usual
}

// prepare applies gate 1.
func (d *Door) prepare(a *attempt, r *Request) (message, error) {
	t, err := d.target(r.URL)
	if err != nil {
		return message{}, asConfigError(err)
	}
	a.host, a.port = t.host, t.port
	method, err := r.method()
	if err != nil {
		return message{}, err
	}
	header, err := r.header(d.userAgent)
	if err != nil {
		return message{}, err
	}
	a.origin = origin{t.url.Scheme == "https", t.url.Host}
	return message{method, t.url, header, r.Body, r.keep}, nil
}

// connection returns a connection that the attempt has for itself, an idle one where there is one, or nil where the origin speaks HTTP/2.
func (d *Door) connection(a *attempt) (*conn, error) {
	if a.ctx.Err() != nil {
		return nil, context.Cause(a.ctx)
	}
	for c := d.pool.take(a.origin); c != nil; c = d.pool.take(a.origin) {
		c.SetDeadline(a.deadline)
		if c.alive() {
			return a.use(c, true)
		}
		c.hangUp()
	}
	if a.origin.secure && d.pool.speaksHTTP2(a.origin) {
		return nil, nil
	}
	a.begin()
	dial := d.dial
	if a.origin.secure {
		dial = d.dialTLS
	}
	nc, err := dial(a.ctx, "tcp", net.JoinHostPort(a.host, strconv.Itoa(int(a.port))))
	if err != nil {
		return nil, err
	}
	if isHTTP2(nc) {
		a.leave(nc)
		return nil, nil
	}
	c, err := newConn(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	c.SetDeadline(a.deadline)
	if c, err = a.use(c, false); err != nil {
		return nil, err
	}
	if a.origin.secure {
		return c, nil // What waits below a new TLS session are its own messages.
	}
	if spoke, _ := c.listen(); spoke {
		c.hangUp()
		return nil, errUnasked
	}
	return c, nil
}

// asConfigError tells a URL that no rule permits or forbids, because it cannot be read, from one that is refused.
func asConfigError(err error) error {
	var refused *BlockedError
	if errors.As(err, &refused) && (refused.Rule == RuleURL || refused.Rule == RuleHost) {
		return &configError{refused.Sentence}
	}
	return err
}
