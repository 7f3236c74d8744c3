package mailer

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/egress"
	"entrega/internal/seal"
	"entrega/internal/store"
	"entrega/jobs"
)

// MailerOptions are what a Mailer needs.
type MailerOptions struct {
	Pool   *pgxpool.Pool
	Client *jobs.Client
	Box    *seal.Box
	// Installation is the transport of every project that has none of its own. Its From must be set.
	Installation Settings
	// Door is what the transports of projects are called through.
	Door *egress.Door
	// OwnDoor is what the installation's own transport is called through; it may call the relay that the operator named. Nil
	// means Door.
	OwnDoor *egress.Door
	// TrustSNS tells whether an address is Amazon SNS's: from there alone certificates are fetched and subscriptions confirmed. Nil
	// means the rule about Amazon's host names; tests put a server of their own beside it.
	TrustSNS func(address string) bool
	// Logger nil means that nothing is logged.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Mailer writes notifications down, lists them, and keeps what belongs to them. It sends nothing itself: see Sender. It is safe
// for concurrent use.
type Mailer struct {
	pool         *pgxpool.Pool
	client       *jobs.Client
	box          *seal.Box
	installation Settings
	door         *egress.Door
	ownDoor      *egress.Door
	trustSNS     func(address string) bool
	snsCerts     snsCerts
	log          *slog.Logger
	now          func() time.Time
}

// NewMailer makes a Mailer. It refuses an installation's settings that cannot work.
func NewMailer(o MailerOptions) (*Mailer, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OwnDoor == nil {
		o.OwnDoor = o.Door
	}
	if o.Installation.From == "" {
		o.Installation.From = defaultFrom
	}
	if o.TrustSNS == nil {
		o.TrustSNS = ofAmazon
	}
	settings, err := o.Installation.Check()
	if err != nil {
		return nil, err
	}
	return &Mailer{pool: o.Pool, client: o.Client, box: o.Box, installation: settings, door: o.Door, ownDoor: o.OwnDoor, trustSNS: o.TrustSNS,
		log: o.Logger, now: o.Now}, nil
}

// defaultFrom is the sender where nothing is sent, so that captured mails have one.
const defaultFrom = "Entrega <no-reply@entrega.invalid>"

// Captures says that the installation sends no mail: every mail is kept where its admins see it.
func (m *Mailer) Captures() bool { return m.installation.Kind == Capture }

// SettingsOf are those that a project's mail leaves by: its own, or the installation's. own tells which.
func (m *Mailer) SettingsOf(ctx context.Context, db store.DB, project string) (s Settings, own bool, err error) {
	t, err := m.transportRow(ctx, db, project)
	if err != nil || !t.own {
		return m.installation, false, err
	}
	s, err = m.openSettings(project, t.sealed)
	return s, true, err
}
