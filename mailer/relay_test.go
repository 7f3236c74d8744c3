package mailer_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"entrega/mailer"
)

// errDrop makes the relay close the connection without a word.
var errDrop = errors.New("drop")

// moment is one thing that a client asked of the relay: what it was, the how-manieth of its sort over all connections, and the
// how-manieth message of this connection it is about.
type moment struct {
	stage     string // connect, ehlo, auth, mail, rcpt, data, dot
	n         int
	onConn    int
	arg       string
	encrypted bool
}

// relay is an SMTP server that answers by a rule which the test can change.
type relay struct {
	b        *bundle
	addr     netip.AddrPort
	password string

	mu       sync.Mutex
	rule     func(moment) error
	counts   map[string]int
	messages []letter
	auths    []string
	conns    int
}

// letter is one message as the relay took it.
type letter struct{ from, to, raw string }

// relayOptions are what a test wants to be different.
type relayOptions struct {
	// starttls and tls encrypt, with the certificate that certified() trusts.
	starttls, tls bool
	// password is what AUTH wants; empty offers no AUTH.
	password string
}

// certificate is one for 127.0.0.1, with the pool that trusts it.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}, pool
}

// newRelay starts a relay that takes everything until told otherwise.
func newRelay(t *testing.T, o relayOptions) (*relay, mailer.Settings, *x509.CertPool) {
	t.Helper()
	r := &relay{counts: map[string]int{}, password: o.password}
	config, pool := certificate(t)
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.addr = netip.MustParseAddrPort(inner.Addr().String())
	server := smtp.NewServer(smtp.BackendFunc(r.session))
	server.Domain, server.AllowInsecureAuth, server.ErrorLog = "relay.example", true, log.New(io.Discard, "", 0)
	server.ReadTimeout, server.WriteTimeout = time.Minute, time.Minute
	if o.starttls {
		server.TLSConfig = config
	}
	var l net.Listener = gate{inner, r}
	if o.tls {
		l = tls.NewListener(l, config)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // It ends with the test.
	}()
	t.Cleanup(func() {
		_ = server.Close()
		_ = inner.Close()
		<-done
	})
	s := mailer.Settings{Kind: mailer.SMTP, SMTP: mailer.SMTPSettings{Host: "127.0.0.1", Port: r.addr.Port()}}
	if o.tls {
		s.SMTP.Security = mailer.ImplicitTLS
	}
	if o.password != "" {
		s.SMTP.Username, s.SMTP.Password = "shop", o.password
	}
	return r, s, pool
}

// setupRelay is a relay with an installation whose mail leaves by it.
func setupRelay(t *testing.T, o relayOptions) (*bundle, *relay) {
	t.Helper()
	r, s, pool := newRelay(t, o)
	b := setup(t, s)
	b.roots = pool
	r.mu.Lock()
	r.b = b
	r.mu.Unlock()
	return b, r
}

// gate asks the rule before a connection is greeted.
type gate struct {
	net.Listener
	r *relay
}

func (g gate) Accept() (net.Conn, error) {
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g.r.mu.Lock()
		g.r.conns++
		g.r.mu.Unlock()
		answer := g.r.ask(moment{stage: "connect"})
		if answer == nil {
			return conn, nil
		}
		var reply *smtp.SMTPError
		if errors.As(answer, &reply) {
			_, _ = fmt.Fprintf(conn, "%d %s\r\n", reply.Code, reply.Message)
		}
		_ = conn.Close()
	}
}

// ask counts a moment and asks the rule.
func (r *relay) ask(m moment) error {
	r.mu.Lock()
	r.counts[m.stage]++
	m.n = r.counts[m.stage]
	rule := r.rule
	r.mu.Unlock()
	if rule == nil {
		return nil
	}
	return rule(m)
}

// answers sets the rule for what is to come.
func (r *relay) answers(rule func(moment) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rule = rule
}

// at answers one stage, always, with an error.
func at(stage string, err error) func(moment) error {
	return func(m moment) error {
		if m.stage == stage {
			return err
		}
		return nil
	}
}

// reply is an answer with an enhanced code, or, with the zero code, without.
func reply(code int, a, b, c int, text string) error {
	enhanced := smtp.EnhancedCode{a, b, c}
	if a == 0 {
		enhanced = smtp.NoEnhancedCode
	}
	return &smtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: text}
}

func (r *relay) got() []letter {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]letter(nil), r.messages...)
}

func (r *relay) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conns
}

func (r *relay) count(stage string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[stage]
}

// session is one connection's.
type session struct {
	r      *relay
	conn   *smtp.Conn
	onConn int
	mail   letter
}

func (r *relay) session(c *smtp.Conn) (smtp.Session, error) {
	s := &session{r: r, conn: c}
	if err := s.ask("ehlo", c.Hostname()); err != nil {
		return nil, err
	}
	if r.password == "" {
		return s, nil
	}
	return &authSession{s}, nil
}

func (s *session) ask(stage, arg string) error {
	_, encrypted := s.conn.TLSConnectionState()
	err := s.r.ask(moment{stage: stage, onConn: s.onConn, arg: arg, encrypted: encrypted})
	if errors.Is(err, errDrop) {
		_ = s.conn.Conn().Close()
	}
	return err
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	s.onConn++
	s.mail = letter{from: from}
	return s.ask("mail", from)
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.mail.to = to
	return s.ask("rcpt", to)
}

func (s *session) Data(r io.Reader) error {
	if err := s.ask("data", ""); err != nil {
		return err
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.raw = string(raw)
	answer := s.ask("dot", s.mail.raw)
	if answer == nil || errors.Is(answer, errDrop) { // A relay that falls silent has the message all the same.
		s.r.mu.Lock()
		s.r.messages = append(s.r.messages, s.mail)
		b := s.r.b
		s.r.mu.Unlock()
		if b != nil {
			b.signal()
		}
	}
	return answer
}

func (s *session) Reset() {}

func (s *session) Logout() error { return nil }

// authSession wants a password.
type authSession struct{ *session }

func (s *authSession) AuthMechanisms() []string {
	return []string{"PLAIN", "LOGIN", "CRAM-MD5", "XOAUTH2"}
}

func (s *authSession) Auth(mechanism string) (sasl.Server, error) {
	if err := s.ask("auth", mechanism); err != nil {
		return nil, err
	}
	s.r.mu.Lock()
	s.r.auths = append(s.r.auths, mechanism)
	s.r.mu.Unlock()
	check := func(user, password string) error {
		if user != "shop" || password != s.r.password {
			return reply(535, 5, 7, 8, "wrong user or password")
		}
		return nil
	}
	switch mechanism {
	case "LOGIN":
		return &loginServer{check: check}, nil
	case "CRAM-MD5":
		return &cramServer{check: check, password: s.r.password}, nil
	case "XOAUTH2":
		return &xoauthServer{check: check}, nil
	default:
		return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
	}
}

// loginServer is the server side of LOGIN, which the library has no more.
type loginServer struct {
	check func(user, password string) error
	step  int
	user  string
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	l.step++
	switch l.step {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(response)
		return []byte("Password:"), false, nil
	default:
		return nil, true, l.check(l.user, string(response))
	}
}

// xoauthServer is the server side of XOAUTH2.
type xoauthServer struct {
	check func(user, password string) error
}

func (x *xoauthServer) Next(response []byte) ([]byte, bool, error) {
	parts := strings.Split(string(response), "\x01")
	if len(parts) < 2 {
		return nil, true, reply(535, 5, 7, 8, "malformed")
	}
	return nil, true, x.check(strings.TrimPrefix(parts[0], "user="), strings.TrimPrefix(parts[1], "auth=Bearer "))
}
