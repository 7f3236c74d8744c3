package egress

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

const (
	// writtenAtOnce is how long a request may be to be written before its answer is read. A longer one is written beside reading,
	// since a receiver may answer without having read it all (RFC 9112, section 9.5).
	writtenAtOnce = 32 << 10
	// keptBuffer bounds the buffer for requests that a connection keeps.
	keptBuffer = 8 << 10
)

var (
	// errHeaderTooLong is an answer whose headers do not end within what is read of them.
	errHeaderTooLong = errors.New("the headers of the answer are too long")
	// errUnasked is a receiver that speaks before it is asked. It does not speak HTTP, or its answers are out of step.
	errUnasked = errors.New("the receiver spoke before it was asked")
)

// conn is a connection that speaks HTTP/1.1 (RFC 9112). One attempt at a time uses it, in its own goroutine.
type conn struct {
	net.Conn
	tcp    net.Conn // the same, or what is below a TLS session
	raw    syscall.RawConn
	peer   netip.AddrPort
	br     *bufio.Reader
	budget int   // bytes that may still be read
	failed error // why there is no more to read
	buf    []byte
	asked  http.Request // what the answer's framing depends on
	idleAt time.Time
}

// newConn takes over a connection or TLS session that has just been made.
func newConn(nc net.Conn) (*conn, error) {
	c := &conn{Conn: nc, tcp: nc, peer: addrPort(nc.RemoteAddr())}
	if session, ok := nc.(*tls.Conn); ok {
		c.tcp = session.NetConn()
	}
	var err error
	if c.raw, err = c.tcp.(syscall.Conn).SyscallConn(); err != nil {
		return nil, err
	}
	c.br = bufio.NewReader((*bounded)(c))
	return c, nil
}

// hangUp closes the connection at once: to close a TLS session would first wait to write an alert.
func (c *conn) hangUp() { c.tcp.Close() }

// bounded reads from the connection within its budget.
type bounded conn

func (c *bounded) Read(p []byte) (int, error) {
	if c.budget <= 0 {
		c.failed = errHeaderTooLong
		return 0, c.failed
	}
	n, err := c.Conn.Read(p[:min(len(p), c.budget)])
	c.budget -= n
	c.failed = err
	return n, err
}

// quiet reports whether nothing lies behind the answer that was read, neither in the buffer nor in the TLS session: it would be taken for the
// start of the next answer.
func (c *conn) quiet() bool {
	if c.Conn == c.tcp {
		return c.br.Buffered() == 0
	}
	c.SetReadDeadline(longAgo)
	_, err := c.br.Peek(1)
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// listen asks the kernel about a connection on which nothing is awaited: whether the other side has said something, or has closed it. What
// it said is not whole any more, so the connection is to be given up then.
func (c *conn) listen() (spoke, closed bool) {
	err := c.raw.Read(func(fd uintptr) bool {
		var one [1]byte
		n, err := syscall.Read(int(fd), one[:])
		spoke, closed = n > 0, n <= 0 && err != syscall.EAGAIN
		return true
	})
	return spoke, closed || err != nil
}

// alive reports whether an idle connection can be used.
func (c *conn) alive() bool {
	spoke, closed := c.listen()
	return !spoke && !closed
}

// write puts a request on the wire. It returns once the kernel has taken it all.
func (c *conn) write(m message) error {
	c.buf = m.appendHead(c.buf[:0])
	if len(c.buf)+len(m.body) > keptBuffer {
		pieces := net.Buffers{c.buf, m.body}
		_, err := pieces.WriteTo(c.Conn)
		c.buf = nil
		return err
	}
	c.buf = append(c.buf, m.body...)
	_, err := c.Conn.Write(c.buf)
	return err
}

// appendHead adds the head of the request (RFC 9112, section 3), the same bytes each time. Host, names and values have been checked.
func (m message) appendHead(b []byte) []byte {
	b = append(b, m.method...)
	b = append(b, ' ')
	b = append(b, m.url.RequestURI()...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, m.url.Host...)
	b = append(b, "\r\n"...)
	if len(m.body) > 0 || m.method == http.MethodPost || m.method == http.MethodPut || m.method == http.MethodPatch {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(m.body)), 10)
		b = append(b, "\r\n"...)
	}
	var few [16]string
	names := few[:0]
	for name := range m.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range m.header[name] {
			b = append(b, name...)
			b = append(b, ": "...)
			b = append(b, value...)
			b = append(b, "\r\n"...)
		}
	}
	return append(b, "\r\n"...)
}

// readHead reads the answer to a request up to its body, and skips informational ones (RFC 9110, section 15.2). first is called when its
// first byte has come. The body must not be closed: to close one that has not been read would read all of it.
func (c *conn) readHead(method string, first func()) (*http.Response, error) {
	c.budget = maxHeaderBytes
	c.asked.Method = method
	if _, err := c.br.Peek(1); err != nil {
		return nil, err
	}
	first()
	for {
		answer, err := http.ReadResponse(c.br, &c.asked)
		switch {
		case err != nil && c.failed == io.EOF:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, cmp.Or(c.failed, err) // A line that is cut off reads as a malformed one.
		}
		if informational := answer.StatusCode/100 == 1 && answer.StatusCode != http.StatusSwitchingProtocols; !informational {
			c.budget = math.MaxInt
			if answer.StatusCode < 200 {
				return nil, errBadStatus
			}
			return answer, nil
		}
	}
}
