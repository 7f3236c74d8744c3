package mailer

import (
	"bytes"
	"context"
	"crypto/x509"
	"sync"
	"time"

	"entrega/internal/store"
	"entrega/jobs"
)

// SenderOptions are what a Sender needs beside its Mailer.
type SenderOptions struct {
	Mailer *Mailer
	// Links makes the one-time link of a confirmation mail, when the mail is sent. about is the user; for the change of an
	// address, to is the new one.
	Links Links
	// RootCAs are whom relays' certificates are trusted by; nil means the system's.
	RootCAs *x509.CertPool
	// Now is the clock of caps and pauses; nil means the Mailer's.
	Now func() time.Time
}

// Links makes the links of confirmation mails. A user who needs none any more is a *store.ConflictError.
type Links interface {
	ConfirmationLink(ctx context.Context, userID string) (string, error)
	ChangeEmailLink(ctx context.Context, userID, email string) (string, error)
}

// Sender is the working side of the package: it sends the tasks that its node's jobs.Worker hands it. It is safe for concurrent use.
type Sender struct {
	*Mailer
	links Links
	roots *x509.CertPool
	now   func() time.Time
	pass  func(ctx context.Context, d time.Duration) error

	mu         sync.Mutex
	transports map[string]*transport // by project; "" is the installation's
}

// transport is a way out with the settings it was made of.
type transport struct {
	// owner is the project whose transport it is; empty for the installation's.
	owner       string
	settings    Settings
	fingerprint []byte
	version     int64
	way         Transport
}

// NewSender makes a Sender. Its handlers go to a jobs.Worker; Close comes after that has stopped.
func NewSender(o SenderOptions) *Sender {
	s := &Sender{Mailer: o.Mailer, links: o.Links, roots: o.RootCAs, now: o.Now, pass: passTime, transports: map[string]*transport{}}
	if s.now == nil {
		s.now = o.Mailer.now
	}
	return s
}

// Registrations pairs the kinds of this package with their handler.
func (s *Sender) Registrations() []jobs.Registration {
	var all []jobs.Registration
	for _, k := range Kinds() {
		all = append(all, jobs.On(k, s.send))
	}
	return all
}

// Close closes the connections that wait for a next message.
func (s *Sender) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.transports {
		t.close()
	}
}

func (t *transport) close() {
	if relay, ok := t.way.(*smtpTransport); ok {
		relay.idle.close()
	}
}

// transportOf is the way out for a project's mail. Settings that changed make a new one.
func (s *Sender) transportOf(ctx context.Context, db store.DB, project string) (*transport, error) {
	row, err := s.transportRow(ctx, db, project)
	if err != nil {
		return nil, err
	}
	owner := project
	if !row.own {
		owner = ""
	}
	s.mu.Lock()
	t, ok := s.transports[owner]
	s.mu.Unlock()
	if ok && t.version == row.version {
		return t, nil
	}
	settings := s.installation
	if row.own {
		if settings, err = s.openSettings(project, row.sealed); err != nil {
			return nil, err
		}
	}
	settings.From = s.fromOf(settings)
	t = s.newTransport(owner, settings, row.version)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.transports[owner]; ok {
		if old.version == t.version && bytes.Equal(old.fingerprint, t.fingerprint) {
			return old, nil
		}
		old.close()
	}
	s.transports[owner] = t
	return t, nil
}

func (s *Sender) newTransport(owner string, settings Settings, version int64) *transport {
	door := s.door
	if owner == "" {
		door = s.ownDoor
	}
	t := &transport{owner: owner, settings: settings, fingerprint: settings.fingerprint(), version: version}
	switch settings.Kind {
	case SMTP:
		t.way = newSMTP(settings, door, s.roots, s.now)
	case API:
		t.way = &apiTransport{settings: settings, door: door, now: s.now}
	default:
		t.way = &captureTransport{keep: s.keepCaptured, now: s.now, pass: s.pass}
	}
	return t
}
