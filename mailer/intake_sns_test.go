package mailer_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"entrega/internal/egress"
	"entrega/internal/store"
	"entrega/jobs"
	"entrega/mailer"
)

const topic = "arn:aws:sns:eu-west-1:123456789012:mail"

// amazon stands in for SNS: it signs messages, and serves its certificate and the address that confirms a subscription.
type amazon struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu       sync.Mutex
	requests []string
}

func newAmazon(t *testing.T) *amazon {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns.amazonaws.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	a := &amazon{key: key}
	a.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.requests = append(a.requests, r.URL.RequestURI())
		a.mu.Unlock()
		if r.URL.Path == "/cert.pem" {
			_, _ = w.Write(certificate)
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *amazon) got(prefix string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.requests {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

// message is an SNS message, signed as the developer guide says: the members in the order of their names, each name and value on a
// line of its own.
func (a *amazon) message(t *testing.T, members map[string]string, version string) map[string]string {
	t.Helper()
	m := map[string]string{"MessageId": "sns-1", "TopicArn": topic, "Timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		"SignatureVersion": version, "SigningCertURL": a.URL + "/cert.pem"}
	for k, v := range members {
		m[k] = v
	}
	names := []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"}
	if m["Type"] != "Notification" {
		names = []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"}
	}
	var text strings.Builder
	for _, name := range names {
		if v, ok := m[name]; ok {
			text.WriteString(name + "\n" + v + "\n")
		}
	}
	hash, sum := crypto.SHA1, sha1.Sum([]byte(text.String()))
	digest := sum[:]
	if version == "2" {
		sum := sha256.Sum256([]byte(text.String()))
		hash, digest = crypto.SHA256, sum[:]
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, hash, digest)
	if err != nil {
		t.Fatal(err)
	}
	m["Signature"] = base64.StdEncoding.EncodeToString(signature)
	return m
}

func intakeOf(t *testing.T, m map[string]string) mailer.Intake {
	t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return mailer.Intake{Provider: "ses", Header: http.Header{}, Body: raw}
}

// setupSNS is an installation that trusts the stand-in, where nothing else changes, beside Amazon.
func setupSNS(t *testing.T) (*bundle, *amazon) {
	t.Helper()
	b, a := setup(t, mailer.Settings{}), newAmazon(t)
	allow, err := egress.ParseAllow("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.Certificate())
	door, err := egress.New(egress.Options{Allow: allow, RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(door.Close)
	b.mailer, err = mailer.NewMailer(mailer.MailerOptions{Pool: b.pool, Client: b.client, Box: b.box(), Door: door, Logger: quiet, Now: b.now,
		Installation: mailer.Settings{From: "Shop <mail@shop.example>", FeedbackSecret: topic},
		TrustSNS:     func(address string) bool { return strings.HasPrefix(address, a.URL+"/") }})
	if err != nil {
		t.Fatal(err)
	}
	return b, a
}

// event is what SES tells about a mail.
func event(id string) string {
	return `{"eventType":"Bounce","mail":{"messageId":"ses-1","commonHeaders":{"messageId":"<` + id + `@shop.example>"}},` +
		`"bounce":{"bounceType":"Permanent","timestamp":"2026-03-01T12:00:00Z","bouncedRecipients":[{"status":"5.1.1","diagnosticCode":"smtp; 550 5.1.1 no such ` + buyer + `"}]}}`
}

func TestSNS_SignedMessagesAreTakenOnceAndForgedOnesNever(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1", "2"} {
		t.Run("version "+version, func(t *testing.T) {
			t.Parallel()
			b, a := setupSNS(t)
			b.start()
			q := b.notify(order("SO-1", buyer))
			b.reach(q.TaskID, jobs.StateCompleted)
			good := a.message(t, map[string]string{"Type": "Notification", "Message": event(q.ID), "Subject": "Amazon SES"}, version)
			for name, change := range map[string]func(m map[string]string){
				"another message":     func(m map[string]string) { m["Message"] = strings.Replace(m["Message"], "Bounce", "Delivery", 1) },
				"another subject":     func(m map[string]string) { m["Subject"] = "Hello" },
				"another id":          func(m map[string]string) { m["MessageId"] = "sns-2" },
				"another time":        func(m map[string]string) { m["Timestamp"] = time.Now().UTC().Format(time.RFC3339) },
				"no signature":        func(m map[string]string) { m["Signature"] = "" },
				"somebody else's key": func(m map[string]string) { m["Signature"] = a.forge(t, m) },
				"the other version":   func(m map[string]string) { m["SignatureVersion"] = map[string]string{"1": "2", "2": "1"}[version] },
				"another topic":       func(m map[string]string) { m["TopicArn"] = topic + "2" },
				"a foreign host":      func(m map[string]string) { m["SigningCertURL"] = "https://sns.evil.example/cert.pem" },
			} {
				forged := map[string]string{}
				for k, v := range good {
					forged[k] = v
				}
				change(forged)
				if _, err := b.mailer.TakeFeedback(b.ctx, intakeOf(t, forged)); !errors.Is(err, mailer.ErrNotProven) {
					t.Errorf("%s is answered %v", name, err)
				}
			}
			if taken, err := b.mailer.TakeFeedback(b.ctx, intakeOf(t, good)); err != nil || taken != (mailer.Taken{Facts: 1, New: 1}) {
				t.Fatalf("taken %+v, %v", taken, err)
			}
			if again, err := b.mailer.TakeFeedback(b.ctx, intakeOf(t, good)); err != nil || again != (mailer.Taken{Facts: 1}) {
				t.Errorf("the second time: %+v, %v", again, err)
			}
			if got := b.feedback(q); got != "bounced" {
				t.Errorf("the mail reads %q", got)
			}
			b.wantNowhere(buyer)
			if n := a.got("/cert.pem"); n != 1 {
				t.Errorf("the certificate was fetched %d times, want 1", n)
			}
			b.pass(48 * time.Hour)
			late := a.message(t, map[string]string{"Type": "Notification", "Message": event(q.ID), "Timestamp": b.now().UTC().Format(time.RFC3339)}, version)
			if _, err := b.mailer.TakeFeedback(b.ctx, intakeOf(t, late)); !errors.Is(err, mailer.ErrNotProven) {
				t.Errorf("under a certificate that is out of date it is answered %v", err)
			}
		})
	}
}

// forge signs with a key that no certificate is for.
func (a *amazon) forge(t *testing.T, m map[string]string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return (&amazon{Server: a.Server, key: key}).message(t, m, m["SignatureVersion"])["Signature"]
}

func TestSNS_SubscriptionIsConfirmedAtAmazonOnly(t *testing.T) {
	t.Parallel()
	b, a := setupSNS(t)
	confirmation := func(address string) map[string]string {
		return map[string]string{"Type": "SubscriptionConfirmation", "Message": "You have chosen to subscribe.", "Token": "token", "SubscribeURL": address}
	}
	var invalid *store.InvalidError
	if _, err := b.mailer.TakeFeedback(b.ctx, intakeOf(t, a.message(t, confirmation("https://evil.example/?Token=token"), "2"))); !errors.As(err, &invalid) {
		t.Errorf("another host's address is answered %v", err)
	}
	taken, err := b.mailer.TakeFeedback(b.ctx, intakeOf(t, a.message(t, confirmation(a.URL+"/confirm?Token=token"), "2")))
	if err != nil || taken.Facts != 0 {
		t.Errorf("answered %+v, %v", taken, err)
	}
	if n := a.got("/confirm?Token=token"); n != 1 {
		t.Errorf("the subscription was confirmed %d times, want 1", n)
	}
}
