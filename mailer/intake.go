package mailer

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// ErrNotProven means that feedback is not signed as its provider signs, or that there is nothing to check it by.
var ErrNotProven = errors.New("the feedback does not prove where it comes from")

// signatureTolerance is how far the instant of a signature may be from now, so that an old one cannot be played again for long.
const signatureTolerance = 5 * time.Minute

// Intake is feedback as it came over HTTP.
type Intake struct {
	// Project is whose own transport the provider serves; empty for the installation's.
	Project  string
	Provider string
	Header   http.Header
	Body     []byte
	// Password is that of HTTP Basic, for providers that sign nothing.
	Password string
}

// Taken counts what became of an intake.
type Taken struct {
	// Facts were in it; New of them were not known before.
	Facts, New int
}

// provider reads one provider's shape: it checks the proof, then the facts.
type provider struct {
	prove func(ctx context.Context, m *Mailer, secret string, in Intake) error
	facts func(ctx context.Context, m *Mailer, in Intake) ([]Fact, error)
}

// providers are the shapes that are taken in.
func providers() map[string]provider {
	return map[string]provider{
		"resend":   {proveSvix, resendFacts},
		"postmark": {provePassword, postmarkFacts},
		"ses":      {proveSNS, sesFacts},
		"sendgrid": {proveSendGrid, sendGridFacts},
		"mailgun":  {proveMailgun, mailgunFacts},
		"dsn":      {provePassword, dsnFacts},
	}
}

// TakeFeedback checks the proof and keeps every fact, once. An unknown provider or project is store.ErrNotFound, a missing proof
// ErrNotProven, and what cannot be read a *store.InvalidError.
func (m *Mailer) TakeFeedback(ctx context.Context, in Intake) (Taken, error) {
	p, ok := providers()[in.Provider]
	if !ok {
		return Taken{}, store.ErrNotFound
	}
	settings, own, err := m.SettingsOf(ctx, m.pool, in.Project)
	switch {
	case err != nil:
		return Taken{}, err
	case in.Project != "" && !own, settings.FeedbackSecret == "":
		return Taken{}, ErrNotProven
	}
	if err := p.prove(ctx, m, settings.FeedbackSecret, in); err != nil {
		return Taken{}, err
	}
	facts, err := p.facts(ctx, m, in)
	if err != nil {
		return Taken{}, err
	}
	taken := Taken{Facts: len(facts)}
	return taken, store.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		taken.New = 0
		for _, f := range facts {
			if f.OccurredAt.IsZero() {
				f.OccurredAt = m.now()
			}
			fresh, err := m.recordTx(ctx, tx, in.Project, in.Provider, f)
			if err != nil {
				return err
			}
			if fresh {
				taken.New++
			}
		}
		return nil
	})
}

// provePassword is for providers that sign nothing, and send the password of HTTP Basic instead.
func provePassword(_ context.Context, _ *Mailer, secret string, in Intake) error {
	if subtle.ConstantTimeCompare([]byte(secret), []byte(in.Password)) != 1 {
		return ErrNotProven
	}
	return nil
}

// recent refuses instants that are too far from now.
func (m *Mailer) recent(at time.Time) error {
	if d := m.now().Sub(at); d > signatureTolerance || d < -signatureTolerance {
		return fmt.Errorf("%w: it is signed for another time", ErrNotProven)
	}
	return nil
}

func unreadable(why string) error { return store.Invalid("body", why) }
