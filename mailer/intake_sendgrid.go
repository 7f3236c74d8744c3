package mailer

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// proveSendGrid checks the ECDSA signature over timestamp and body. The secret is the public key that SendGrid shows, in base64.
func proveSendGrid(_ context.Context, m *Mailer, secret string, in Intake) error {
	der, err := base64.StdEncoding.DecodeString(secret)
	if err != nil {
		return fmt.Errorf("%w: the public key is no base64", ErrNotProven)
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	key, ok := parsed.(*ecdsa.PublicKey)
	if err != nil || !ok {
		return fmt.Errorf("%w: the public key is none of ECDSA", ErrNotProven)
	}
	stamp := in.Header.Get("X-Twilio-Email-Event-Webhook-Timestamp")
	signature, err := base64.StdEncoding.DecodeString(in.Header.Get("X-Twilio-Email-Event-Webhook-Signature"))
	if err != nil {
		return ErrNotProven
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return ErrNotProven
	}
	if err := m.recent(time.Unix(seconds, 0)); err != nil {
		return err
	}
	sum := sha256.Sum256(append([]byte(stamp), in.Body...))
	if !ecdsa.VerifyASN1(key, sum[:], signature) {
		return ErrNotProven
	}
	return nil
}

func sendGridFacts(_ context.Context, _ *Mailer, in Intake) ([]Fact, error) {
	var events []struct {
		Event     string `json:"event"`
		EventID   string `json:"sg_event_id"`
		MessageID string `json:"sg_message_id"`
		SMTPID    string `json:"smtp-id"`
		Status    string `json:"status"`
		Reason    string `json:"reason"`
		Type      string `json:"type"`
		Timestamp int64  `json:"timestamp"`
	}
	if err := json.Unmarshal(in.Body, &events); err != nil {
		return nil, unreadable("This is not a list of events of SendGrid.")
	}
	var facts []Fact
	for _, e := range events {
		kind := map[string]Feedback{"delivered": Delivered, "deferred": Delayed, "bounce": Bounced, "spamreport": Complained}[e.Event]
		if kind == "" {
			continue
		}
		id, _, _ := strings.Cut(e.MessageID, ".")
		facts = append(facts, Fact{Kind: kind, EventKey: e.EventID, ProviderMessageID: id, MessageID: e.SMTPID, Status: e.Status, Detail: e.Reason,
			Permanent: kind == Bounced && e.Type != "blocked" && permanent(e.Status), OccurredAt: time.Unix(e.Timestamp, 0).UTC()})
	}
	return facts, nil
}
