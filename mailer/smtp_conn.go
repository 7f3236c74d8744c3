package mailer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"net/textproto"
	"os"
	"sync"
	"time"

	"github.com/wneessen/go-mail/smtp"
)

const (
	// messagesPerConn bounds the messages that one connection carries.
	messagesPerConn = 50
	// idleFor is how long a connection waits for its next message. Relays give up after minutes (RFC 5321, section 4.5.3.2).
	idleFor = 20 * time.Second
	// idleMost bounds the waiting connections of one relay.
	idleMost = 8
	// checkTimeout bounds asking a waiting connection whether it still answers.
	checkTimeout = 5 * time.Second
	// relayConnect bounds the look-up and the dial.
	relayConnect = 10 * time.Second
)

// settingError is a relay that does not offer what our settings need.
type settingError struct{ sentence string }

func (e *settingError) Error() string { return e.sentence }

// relayConn is an open, greeted and authenticated connection.
type relayConn struct {
	client *smtp.Client
	conn   net.Conn
	peer   string
	used   int
	since  time.Time
}

// bound ends the connection's reads and writes with the context.
func (c *relayConn) bound(ctx context.Context) (stop func()) {
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Time{}
	}
	_ = c.conn.SetDeadline(end) // A connection that cannot be bound is closed, and says so at its next use.
	undo := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	return func() { undo() }
}

// lastWord is what the relay said before it stopped reading, if anything, else the error of the write.
func (c *relayConn) lastWord(wrote error) error {
	var reply *textproto.Error
	if _, _, err := c.client.Text.ReadResponse(250); errors.As(err, &reply) {
		return err
	}
	return wrote
}

func (c *relayConn) close() { _ = c.client.Close() }

// connect opens a connection up to the point where a message can be offered.
func (t *smtpTransport) connect(ctx context.Context, c *conversation) (*relayConn, error) {
	s := t.settings.SMTP
	dialed, failure := t.door.DialRelay(ctx, s.Host, s.Port, relayConnect)
	if failure != nil {
		return nil, failure
	}
	c.result.Peer = dialed.Peer.String()
	c.result.Timings.DNS, c.result.Timings.Connect = dialed.Timings.DNS, dialed.Timings.Connect
	rc := &relayConn{conn: dialed.Conn, peer: c.result.Peer}
	stop := rc.bound(ctx)
	defer stop()
	if err := t.greet(ctx, c, rc, dialed.Peer); err != nil {
		_ = dialed.Conn.Close()
		return nil, err
	}
	return rc, nil
}

func (t *smtpTransport) greet(ctx context.Context, c *conversation, rc *relayConn, peer netip.AddrPort) (err error) {
	s := t.settings.SMTP
	config := &tls.Config{ServerName: s.Host, RootCAs: t.roots, MinVersion: tls.VersionTLS12}
	begun := time.Now()
	if s.Security == ImplicitTLS {
		c.stage = StageTLS
		session := tls.Client(rc.conn, config)
		if err := session.HandshakeContext(ctx); err != nil {
			return err
		}
		rc.conn, c.result.Timings.TLS = session, time.Since(begun)
	}
	c.stage = StageConnect
	if rc.client, err = smtp.NewClient(rc.conn, s.Host); err != nil {
		return err
	}
	rc.client.SkipSMTPUTF8(true) // Addresses are ASCII; a relay behind this one may not know the extension.
	c.stage = StageEHLO
	if err := rc.client.Hello(heloName(t.settings.From)); err != nil {
		return err
	}
	if s.Security == StartTLS {
		if err := t.startTLS(c, rc, config, peer); err != nil {
			return err
		}
	}
	if s.Username == "" {
		return nil
	}
	c.stage = StageAuth
	err = rc.client.Auth(t.auth(peer))
	if errors.Is(err, smtp.ErrUnencrypted) {
		return &settingError{"The relay offers no encryption, so the credentials were not sent."}
	}
	return err
}

// startTLS encrypts. Without the extension only a relay on this very machine is spoken to.
func (t *smtpTransport) startTLS(c *conversation, rc *relayConn, config *tls.Config, peer netip.AddrPort) error {
	c.stage = StageSTARTTLS
	if offered, _ := rc.client.Extension("STARTTLS"); !offered {
		if peer.Addr().IsLoopback() {
			return nil
		}
		return &settingError{"The relay does not offer STARTTLS, and without encryption only a relay on this machine is used. Use port 465 with TLS from the start, or another relay."}
	}
	begun := time.Now()
	err := rc.client.StartTLS(config)
	c.result.Timings.TLS = time.Since(begun)
	return err
}

func (t *smtpTransport) auth(peer netip.AddrPort) smtp.Auth {
	s, clear := t.settings.SMTP, peer.Addr().IsLoopback()
	switch s.Auth {
	case AuthLogin:
		return smtp.LoginAuth(s.Username, s.Password, s.Host, clear)
	case AuthCRAM:
		return smtp.CRAMMD5Auth(s.Username, s.Password)
	case AuthXOAUTH2:
		return smtp.XOAuth2Auth(s.Username, s.Password)
	default:
		return smtp.PlainAuth("", s.Username, s.Password, s.Host, clear)
	}
}

// heloName is how we introduce ourselves: the sender's domain.
func heloName(from string) string {
	if _, address, err := ParseFrom(from); err == nil {
		return domainOf(address)
	}
	return "localhost"
}

func isTimeout(ctx context.Context, err error) bool {
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return true
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// idleConns are open connections that wait for their next message.
type idleConns struct {
	mu     sync.Mutex
	conns  []*relayConn
	closed bool
}

// take gives a connection that still answers, or nil. A relay that has had enough says so here, where no message is concerned.
func (i *idleConns) take(ctx context.Context) *relayConn {
	for {
		c := i.pop()
		if c == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		stop := c.bound(ctx)
		err := c.client.Reset()
		stop()
		cancel()
		if err == nil {
			return c
		}
		c.close()
	}
}

func (i *idleConns) pop() *relayConn {
	i.mu.Lock()
	defer i.mu.Unlock()
	for len(i.conns) > 0 {
		c := i.conns[len(i.conns)-1]
		i.conns = i.conns[:len(i.conns)-1]
		if time.Since(c.since) < idleFor {
			return c
		}
		c.close()
	}
	return nil
}

// give takes a connection back, or closes it.
func (i *idleConns) give(c *relayConn, good bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !good || i.closed || c.used >= messagesPerConn || len(i.conns) >= idleMost {
		c.close()
		return
	}
	c.since = time.Now()
	i.conns = append(i.conns, c)
	time.AfterFunc(idleFor, i.expire)
}

// expire closes what has waited too long.
func (i *idleConns) expire() {
	i.mu.Lock()
	defer i.mu.Unlock()
	var kept []*relayConn
	for _, c := range i.conns {
		if time.Since(c.since) < idleFor {
			kept = append(kept, c)
		} else {
			c.close()
		}
	}
	i.conns = kept
}

// close closes them all, and whatever is given back later.
func (i *idleConns) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, c := range i.conns {
		c.close()
	}
	i.conns, i.closed = nil, true
}
