package mailer

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"entrega/internal/egress"
)

// snsMessage is what Amazon SNS posts; Message holds SES's own event as text.
type snsMessage struct {
	Type, MessageId, TopicArn, Subject, Message, Timestamp, Token, SubscribeURL string
	SignatureVersion, Signature, SigningCertURL                                 string
}

var snsHost = regexp.MustCompile(`^sns\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$`)

// proveSNS checks that the message is of the topic which the secret names, and its RSA signature under a certificate of Amazon's
// (Amazon SNS Developer Guide, "Verifying the signatures of Amazon SNS messages").
func proveSNS(ctx context.Context, m *Mailer, secret string, in Intake) error {
	var msg snsMessage
	if err := json.Unmarshal(in.Body, &msg); err != nil || msg.TopicArn != secret {
		return ErrNotProven
	}
	at, err := time.Parse(time.RFC3339, msg.Timestamp)
	if err != nil || m.now().Sub(at) > time.Hour { // SNS itself tries again for up to an hour.
		return fmt.Errorf("%w: it is signed for another time", ErrNotProven)
	}
	key, err := m.snsKey(ctx, msg.SigningCertURL)
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(msg.Signature)
	if err != nil {
		return ErrNotProven
	}
	text := []byte(msg.signed())
	if msg.SignatureVersion == "2" {
		sum := sha256.Sum256(text)
		err = rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature)
	} else {
		sum := sha1.Sum(text)
		err = rsa.VerifyPKCS1v15(key, crypto.SHA1, sum[:], signature)
	}
	if err != nil {
		return ErrNotProven
	}
	return nil
}

// signed is what the signature is over: some members, each name and value on a line of its own.
func (s snsMessage) signed() string {
	var b strings.Builder
	add := func(name, value string) { b.WriteString(name + "\n" + value + "\n") }
	add("Message", s.Message)
	add("MessageId", s.MessageId)
	if s.Type == "Notification" {
		if s.Subject != "" {
			add("Subject", s.Subject)
		}
	} else {
		add("SubscribeURL", s.SubscribeURL)
	}
	add("Timestamp", s.Timestamp)
	if s.Type != "Notification" {
		add("Token", s.Token)
	}
	add("TopicArn", s.TopicArn)
	add("Type", s.Type)
	return b.String()
}

// snsCerts are certificates that were fetched, by address. Amazon changes one at most a few times a year.
type snsCerts struct {
	mu    sync.Mutex
	known map[string]*x509.Certificate
}

// snsCertsMost bounds what is remembered: there is one certificate for each region in use.
const snsCertsMost = 32

func (c *snsCerts) get(address string) *x509.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[address]
}

func (c *snsCerts) put(address string, cert *x509.Certificate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= snsCertsMost {
		c.known = map[string]*x509.Certificate{}
	}
	c.known[address] = cert
}

// snsKey is the key of the certificate at an address, which must be Amazon's own.
func (m *Mailer) snsKey(ctx context.Context, address string) (*rsa.PublicKey, error) {
	if !m.trustSNS(address) {
		return nil, fmt.Errorf("%w: its certificate is not Amazon's", ErrNotProven)
	}
	cert := m.snsCerts.get(address)
	if cert == nil {
		var err error
		if cert, err = m.fetchCert(ctx, address); err != nil {
			return nil, err
		}
		m.snsCerts.put(address, cert)
	}
	if now := m.now(); now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		return nil, fmt.Errorf("%w: its certificate is not valid at this time", ErrNotProven)
	}
	key, ok := cert.PublicKey.(*rsa.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w: its certificate is none of RSA", ErrNotProven)
	}
	return key, nil
}

func (m *Mailer) fetchCert(ctx context.Context, raw string) (*x509.Certificate, error) {
	resp := m.door.Send(ctx, &egress.Request{Method: http.MethodGet, URL: raw})
	if resp.Failure != nil || resp.Status != http.StatusOK {
		return nil, fmt.Errorf("%w: its certificate could not be fetched", ErrNotProven)
	}
	block, _ := pem.Decode(resp.Body)
	if block == nil {
		return nil, fmt.Errorf("%w: its certificate cannot be read", ErrNotProven)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: its certificate cannot be read", ErrNotProven)
	}
	return cert, nil
}

func ofAmazon(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Scheme == "https" && u.Port() == "" && u.User == nil && snsHost.MatchString(u.Host)
}

// sesFacts reads the events of SES in an SNS message. The message that confirms a subscription is answered by opening its address,
// which Amazon asks for once.
func sesFacts(ctx context.Context, m *Mailer, in Intake) ([]Fact, error) {
	var msg snsMessage
	if err := json.Unmarshal(in.Body, &msg); err != nil {
		return nil, unreadable("This is not a message of SNS.")
	}
	if msg.Type == "SubscriptionConfirmation" {
		if !m.trustSNS(msg.SubscribeURL) {
			return nil, unreadable("The address that confirms the subscription is not Amazon's.")
		}
		if resp := m.door.Send(ctx, &egress.Request{Method: http.MethodGet, URL: msg.SubscribeURL}); resp.Failure != nil || resp.Status/100 != 2 {
			return nil, unreadable("The subscription could not be confirmed; let SNS ask again.")
		}
		return nil, nil
	}
	return sesEvent(msg.MessageId, []byte(msg.Message))
}

// sesEvent reads one event in the shape of SES.
func sesEvent(key string, raw []byte) ([]Fact, error) {
	type bounced struct {
		Status         string `json:"status"`
		DiagnosticCode string `json:"diagnosticCode"`
	}
	var e struct {
		EventType        string `json:"eventType"`
		NotificationType string `json:"notificationType"`
		Mail             struct {
			MessageID     string `json:"messageId"`
			CommonHeaders struct {
				MessageID string `json:"messageId"`
			} `json:"commonHeaders"`
			Tags map[string][]string `json:"tags"`
		} `json:"mail"`
		Bounce struct {
			BounceType        string `json:"bounceType"`
			Timestamp         time.Time
			BouncedRecipients []bounced `json:"bouncedRecipients"`
		} `json:"bounce"`
		Complaint     struct{ Timestamp time.Time } `json:"complaint"`
		Delivery      struct{ Timestamp time.Time } `json:"delivery"`
		DeliveryDelay struct{ Timestamp time.Time } `json:"deliveryDelay"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return nil, unreadable("The message holds no event of SES.")
	}
	f := Fact{EventKey: key, ProviderMessageID: e.Mail.MessageID, MessageID: e.Mail.CommonHeaders.MessageID}
	if tags := e.Mail.Tags["notification"]; len(tags) > 0 && notificationIn(f.MessageID) == "" {
		f.MessageID = "<" + tags[0] + "@ses>"
	}
	switch e.EventType + e.NotificationType {
	case "Delivery":
		f.Kind, f.OccurredAt = Delivered, e.Delivery.Timestamp
	case "DeliveryDelay":
		f.Kind, f.OccurredAt = Delayed, e.DeliveryDelay.Timestamp
	case "Complaint":
		f.Kind, f.OccurredAt = Complained, e.Complaint.Timestamp
	case "Bounce":
		if e.Bounce.BounceType == "Transient" && !slices.ContainsFunc(e.Bounce.BouncedRecipients, func(r bounced) bool { return r.Status != "" }) {
			return nil, nil // No delivery report lies behind it: SES takes absence notices for transient bounces.
		}
		f.Kind, f.OccurredAt, f.Permanent = Bounced, e.Bounce.Timestamp, e.Bounce.BounceType == "Permanent"
		if len(e.Bounce.BouncedRecipients) > 0 {
			f.Status, f.Detail = e.Bounce.BouncedRecipients[0].Status, e.Bounce.BouncedRecipients[0].DiagnosticCode
		}
	default:
		return nil, nil
	}
	return []Fact{f}, nil
}
