package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"entrega/internal/alerts"
	"entrega/internal/egress"
	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
	"entrega/webhooks"
)

// Options are what a Server needs.
type Options struct {
	Pool      *pgxpool.Pool
	Client    *jobs.Client
	Accounts  *tenant.Accounts
	Endpoints *webhooks.Endpoints
	Mailer    *mailer.Mailer
	// Resolver looks up what the check of a sender's domain asks for; nil means Go's own with the settings of the system.
	Resolver mailer.Resolver
	// Door is what the identity provider is called through. It is needed where there is one.
	Door *egress.Door
	// OIDC is the identity provider that people may log in by, beside their passwords.
	OIDC OIDC
	// SignUpClosed leaves it to admins to make accounts. By default anybody may sign up; nobody sees a project by that.
	SignUpClosed bool
	// Periodic are the jobs that run by the clock, for the page that lists them.
	Periodic []jobs.Periodic
	// PublicURL is how people reach the panel, scheme and host. With https the session cookie is Secure.
	PublicURL *url.URL
	// TrustedProxies may say in X-Forwarded-For where a request comes from; none means that nobody is believed.
	TrustedProxies []netip.Prefix
	// Version is this program's.
	Version string
	// Gate is the one of the whole process; nil lets everything in.
	Gate *store.Gate
	// Relay is that of this process, for what is published here; nil is none.
	Relay *events.Relay
	// Logger nil means that nothing is logged.
	Logger *slog.Logger
	// Now is the clock of the pages; nil means time.Now.
	Now func() time.Time
}

// Server is the panel and the API as one http.Handler. It is safe for concurrent use.
type Server struct {
	pool      *pgxpool.Pool
	client    *jobs.Client
	accounts  *tenant.Accounts
	endpoints *webhooks.Endpoints
	mailer    *mailer.Mailer
	resolver  mailer.Resolver
	periodic  []jobs.Periodic
	publicURL *url.URL
	// provider is nil where nobody logs in by one.
	provider     *provider
	signUpClosed bool
	version      string
	gate         *store.Gate
	relay        *events.Relay
	log          *slog.Logger
	now          func() time.Time
	// shipped are the policies as they ship, to tell which of the installation are its own.
	shipped *jobs.PolicySet

	echo         *echo.Echo
	crossing     *http.CrossOriginProtection
	sessionStore *tenant.SessionStore
	sessions     *scs.SessionManager
	hints        *hints
	badge        *alerts.Badge
	closing      atomic.Bool
	heartbeat    time.Duration
}

// New makes a Server. It watches the database for the open pages until Close.
func New(o Options) (*Server, error) {
	if o.Pool == nil || o.Client == nil || o.Accounts == nil || o.Endpoints == nil || o.Mailer == nil || o.PublicURL == nil {
		return nil, errors.New("web: Pool, Client, Accounts, Endpoints, Mailer and PublicURL must be given")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Resolver == nil {
		o.Resolver = &net.Resolver{PreferGo: true}
	}
	if err := o.OIDC.check(o.Door); err != nil {
		return nil, fmt.Errorf("web: OIDC: %w", err)
	}
	s := &Server{pool: o.Pool, client: o.Client, accounts: o.Accounts, endpoints: o.Endpoints, mailer: o.Mailer, resolver: o.Resolver, periodic: o.Periodic,
		publicURL: o.PublicURL, signUpClosed: o.SignUpClosed, version: o.Version, gate: o.Gate, relay: o.Relay, log: o.Logger, now: o.Now, crossing: http.NewCrossOriginProtection()}
	if err := s.crossing.AddTrustedOrigin(o.PublicURL.Scheme + "://" + o.PublicURL.Host); err != nil {
		return nil, fmt.Errorf("web: trust the public URL: %w", err)
	}
	s.provider = newProvider(o.OIDC, o.Door, o.PublicURL, o.Now)
	var err error
	if s.shipped, err = jobs.LoadPolicies(""); err != nil {
		return nil, fmt.Errorf("web: load the shipped policies: %w", err)
	}
	s.sessionStore = tenant.NewSessionStore(o.Pool)
	s.sessions = newSessions(s.sessionStore, o.PublicURL.Scheme == "https")
	s.heartbeat = heartbeatEvery
	s.hints = newHints(pulses{o.Pool}, o.Logger)
	s.badge = alerts.NewBadge(o.Pool, o.Now)
	s.echo = echo.New()
	s.echo.HTTPErrorHandler = s.answerError
	s.echo.IPExtractor = extractor(o.TrustedProxies)
	s.use()
	s.mount()
	s.mountAPI()
	return s, nil
}

// Handler serves everything: panel, API, static files and health.
func (s *Server) Handler() http.Handler { return s.echo }

// Close ends the open streams, so that the HTTP server can drain, and stops watching the database. /readyz answers 503 from
// then on.
func (s *Server) Close() {
	s.closing.Store(true)
	s.hints.close()
}

// extractor reads the client's address: from the connection, or from X-Forwarded-For where a trusted proxy wrote it.
func extractor(proxies []netip.Prefix) echo.IPExtractor {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}
	trust := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range proxies {
		trust = append(trust, echo.TrustIPRange(ipNet(p)))
	}
	return echo.ExtractIPFromXFFHeader(trust...)
}

func ipNet(p netip.Prefix) *net.IPNet {
	p = p.Masked()
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
