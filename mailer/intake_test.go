package mailer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
)

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// setupFeedback is an installation whose transport captures, and whose provider proves itself by a secret.
func setupFeedback(t *testing.T, secret string) (*bundle, mailer.Queued) {
	t.Helper()
	b := setup(t, mailer.Settings{FeedbackSecret: secret})
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateCompleted)
	b.exec(`update notifications set provider_id = 'provider-1' where id = $1`, q.ID)
	return b, q
}

func (b *bundle) feedback(q mailer.Queued) string {
	b.t.Helper()
	return value[string](b, `select coalesce(feedback, '') from notifications where id = $1`, q.ID)
}

func TestFeedback_EachProviderProvesItselfAndIsTakenOnce(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	whsec := []byte("0123456789abcdef0123456789abcdef")
	for provider, tt := range map[string]struct {
		secret string
		make   func(now time.Time, id string) mailer.Intake
		forge  func(in *mailer.Intake)
		want   mailer.Feedback
	}{
		"resend": {"whsec_" + base64.StdEncoding.EncodeToString(whsec), func(now time.Time, _ string) mailer.Intake {
			body := `{"type":"email.bounced","created_at":"2026-03-01T12:00:00Z","data":{"email_id":"provider-1","bounce":{"type":"Permanent","message":"no such ` + buyer + `"}}}`
			stamp := fmt.Sprint(now.Unix())
			return mailer.Intake{Body: []byte(body), Header: http.Header{"Svix-Id": {"msg_1"}, "Svix-Timestamp": {stamp},
				"Svix-Signature": {"v1,bm90aGluZw== v1," + base64.StdEncoding.EncodeToString(mac(whsec, "msg_1."+stamp+"."+body))}}}
		}, func(in *mailer.Intake) { in.Body = []byte(strings.Replace(string(in.Body), "bounced", "delivered", 1)) }, mailer.Bounced},
		"postmark": {"password", func(time.Time, string) mailer.Intake {
			return mailer.Intake{Password: "password", Header: http.Header{}, Body: []byte(`{"RecordType":"Bounce","ID":42,"Type":"HardBounce","MessageID":"provider-1","BouncedAt":"2026-03-01T12:00:00Z"}`)}
		}, func(in *mailer.Intake) { in.Password = "guess" }, mailer.Bounced},
		"sendgrid": {base64.StdEncoding.EncodeToString(der), func(now time.Time, id string) mailer.Intake {
			body := `[{"event":"open","sg_event_id":"o"},{"event":"spamreport","sg_event_id":"e1","smtp-id":"<` + id + `@shop.example>","timestamp":1772366400}]`
			stamp := fmt.Sprint(now.Unix())
			sum := sha256.Sum256([]byte(stamp + body))
			signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
			if err != nil {
				t.Error(err)
			}
			return mailer.Intake{Body: []byte(body), Header: http.Header{"X-Twilio-Email-Event-Webhook-Timestamp": {stamp},
				"X-Twilio-Email-Event-Webhook-Signature": {base64.StdEncoding.EncodeToString(signature)}}}
		}, func(in *mailer.Intake) { in.Body = append(in.Body, ' ') }, mailer.Complained},
		"mailgun": {"signing-key", func(now time.Time, id string) mailer.Intake {
			stamp := fmt.Sprint(now.Unix())
			return mailer.Intake{Header: http.Header{}, Body: []byte(`{"signature":{"timestamp":"` + stamp + `","token":"t","signature":"` +
				hex.EncodeToString(mac([]byte("signing-key"), stamp+"t")) + `"},"event-data":{"id":"ev1","event":"delivered","timestamp":1772366400.5,"message":{"headers":{"message-id":"` + id + `@shop.example"}}}}`)}
		}, func(in *mailer.Intake) {
			in.Body = []byte(strings.Replace(string(in.Body), `"token":"t"`, `"token":"u"`, 1))
		}, mailer.Delivered},
		"dsn": {"password", func(_ time.Time, id string) mailer.Intake {
			return mailer.Intake{Password: "password", Header: http.Header{}, Body: []byte(report(id, "failed", "5.1.1"))}
		}, func(in *mailer.Intake) { in.Password = "" }, mailer.Bounced},
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			b, q := setupFeedback(t, tt.secret)
			in := tt.make(b.now(), q.ID)
			in.Provider = provider
			forged := in
			tt.forge(&forged)
			if _, err := b.mailer.TakeFeedback(b.ctx, forged); !errors.Is(err, mailer.ErrNotProven) {
				t.Errorf("a forged one is answered %v", err)
			}
			taken, err := b.mailer.TakeFeedback(b.ctx, in)
			if err != nil || taken != (mailer.Taken{Facts: 1, New: 1}) {
				t.Fatalf("taken %+v, %v", taken, err)
			}
			if again, err := b.mailer.TakeFeedback(b.ctx, in); err != nil || again != (mailer.Taken{Facts: 1}) {
				t.Errorf("the second time: %+v, %v", again, err)
			}
			if got := b.feedback(q); got != string(tt.want) {
				t.Errorf("the mail reads %q, want %q", got, tt.want)
			}
			b.wantNowhere(buyer)
			suppressed := value[bool](b, `select exists (select from mail_suppressions where removed_at is null)`)
			if want := tt.want != mailer.Delivered; suppressed != want {
				t.Errorf("suppressed: %v, want %v", suppressed, want)
			}
			b.pass(10 * time.Minute)
			if provider != "postmark" && provider != "dsn" {
				if _, err := b.mailer.TakeFeedback(b.ctx, in); !errors.Is(err, mailer.ErrNotProven) {
					t.Errorf("played again after ten minutes it is answered %v", err)
				}
			}
		})
	}
}

// report is a delivery status notification as a mail server writes it.
func report(id, action, status string) string {
	return strings.ReplaceAll(`From: MAILER-DAEMON@relay.example
Date: Sun, 01 Mar 2026 12:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

Sorry.
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; relay.example
Arrival-Date: Sun, 01 Mar 2026 11:59:00 +0000

Final-Recipient: rfc822; `+buyer+`
Action: `+action+`
Status: `+status+`
Diagnostic-Code: smtp; 550 `+status+` no such user `+buyer+`

--b
Content-Type: text/rfc822-headers

From: Shop <mail@shop.example>
Message-ID: <`+id+`@shop.example>

--b--
`, "\n", "\r\n")
}

func TestFeedback_AutoRepliesAreNoBounces(t *testing.T) {
	t.Parallel()
	b, q := setupFeedback(t, "password")
	for name, body := range map[string]string{
		"an absence notice": "From: " + buyer + "\r\nAuto-Submitted: auto-replied\r\nIn-Reply-To: <" + q.ID + "@shop.example>\r\nSubject: I am away\r\n\r\nBack on Monday.\r\n",
		"a read receipt":    "Content-Type: multipart/report; report-type=disposition-notification; boundary=b\r\n\r\n--b--\r\n",
	} {
		taken, err := b.mailer.TakeFeedback(b.ctx, mailer.Intake{Provider: "dsn", Password: "password", Body: []byte(body)})
		if err != nil || taken.Facts != 0 {
			t.Errorf("%s: %+v, %v", name, taken, err)
		}
	}
	if got := b.feedback(q); got != "" {
		t.Errorf("the mail reads %q", got)
	}
}

func TestFeedback_DelayThenDeliveryInAnyOrder(t *testing.T) {
	t.Parallel()
	b, q := setupFeedback(t, "password")
	for _, r := range []string{report(q.ID, "delivered", "2.0.0"), report(q.ID, "delayed", "4.4.1")} {
		if _, err := b.mailer.TakeFeedback(b.ctx, mailer.Intake{Provider: "dsn", Password: "password", Body: []byte(r)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.feedback(q); got != "delivered" {
		t.Errorf("the mail reads %q, want delivered", got)
	}
	facts, err := mailer.FactsOf(b.ctx, b.pool, q.ID)
	if err != nil || len(facts) != 2 {
		t.Errorf("%d facts are kept, %v", len(facts), err)
	}
}

func TestFeedback_UnknownMailIsKeptAndJoinedWhenItsAnswerComes(t *testing.T) {
	t.Parallel()
	b, a := setupAPI(t, mailer.ShapeResend)
	b.exec(`insert into mail_feedback (id, project_id, provider, event_key, kind, provider_message_id, occurred_at) values ('fact_1', '', 'resend', 'e1', 'delivered', 'provider-1', now())`)
	a.answers(nil)
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateCompleted)
	if got := b.feedback(q); got != "delivered" {
		t.Errorf("the mail reads %q, want delivered", got)
	}
}

func TestFeedback_PermanentBounceBeforeItsAnswerSuppresses(t *testing.T) {
	t.Parallel()
	b, a := setupAPI(t, mailer.ShapeResend)
	whsec := []byte("0123456789abcdef0123456789abcdef")
	b.mailer = b.newMailer(mailer.Settings{Kind: mailer.API, FeedbackSecret: "whsec_" + base64.StdEncoding.EncodeToString(whsec),
		API: mailer.APISettings{Shape: mailer.ShapeResend, URL: a.url, Key: "key_secret"}})
	body, stamp := `{"type":"email.bounced","created_at":"2026-03-01T12:00:00Z","data":{"email_id":"provider-1","bounce":{"type":"Permanent","message":"no such <`+buyer+`>"}}}`, fmt.Sprint(b.now().Unix())
	taken, err := b.mailer.TakeFeedback(b.ctx, mailer.Intake{Provider: "resend", Body: []byte(body), Header: http.Header{"Svix-Id": {"msg_1"}, "Svix-Timestamp": {stamp},
		"Svix-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac(whsec, "msg_1."+stamp+"."+body))}}})
	if err != nil || taken.New != 1 {
		t.Fatalf("taken %+v, %v", taken, err)
	}
	a.answers(nil)
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateCompleted)
	if got := b.feedback(q); got != "bounced" {
		t.Errorf("the mail reads %q, want bounced", got)
	}
	if !value[bool](b, `select exists (select from mail_suppressions where reason = 'hard_bounce' and removed_at is null)`) {
		t.Error("the recipient is not suppressed")
	}
	b.wantNowhere(buyer)
}

func TestFeedback_OfOneProjectIsNeverAnothers(t *testing.T) {
	t.Parallel()
	b, _ := setupFeedback(t, "password")
	theirs, err := tenant.CreateProject(b.ctx, b.pool, tenant.CLI("test"), tenant.NewProject{Name: "Other"})
	if err != nil {
		t.Fatal(err)
	}
	them := b.owner
	them.ProjectID = theirs.ID
	if _, err := b.mailer.SetTransport(b.ctx, them, theirs.ID, mailer.Settings{Kind: mailer.Capture, FeedbackSecret: "their password"}); err != nil {
		t.Fatal(err)
	}
	event := []byte(`{"RecordType":"Bounce","ID":42,"Type":"HardBounce","MessageID":"provider-1","BouncedAt":"2026-03-01T12:00:00Z"}`)
	// They tell of our mail, in their own name: it joins nothing of ours, also not when our mail is accepted later.
	if _, err := b.mailer.TakeFeedback(b.ctx, mailer.Intake{Provider: "postmark", Project: theirs.ID, Password: "their password", Body: event}); err != nil {
		t.Fatal(err)
	}
	if value[bool](b, `select exists (select from notifications where feedback is not null) or exists (select from mail_suppressions)`) {
		t.Error("another project's feedback marks our mail")
	}
	// And it does not keep the installation's provider from telling the same.
	taken, err := b.mailer.TakeFeedback(b.ctx, mailer.Intake{Provider: "postmark", Password: "password", Body: event})
	if err != nil || taken.New != 1 {
		t.Errorf("our own is answered %+v, %v", taken, err)
	}
	if !value[bool](b, `select exists (select from mail_suppressions)`) {
		t.Error("our own bounce suppresses nobody")
	}
}

func TestFeedback_OfAnotherOwnerIsNotAdopted(t *testing.T) {
	t.Parallel()
	b, _ := setupAPI(t, mailer.ShapeResend)
	b.exec(`insert into mail_feedback (id, project_id, provider, event_key, kind, provider_message_id, occurred_at) values ('fact_1', 'project_other', 'resend', 'project_other e1', 'complained', 'provider-1', now())`)
	b.start()
	q := b.notify(order("SO-1", buyer))
	b.reach(q.TaskID, jobs.StateCompleted)
	if got := b.feedback(q); got != "" {
		t.Errorf("the mail reads %q by what another project was told", got)
	}
}

func TestFeedback_WithoutASecretNothingIsTaken(t *testing.T) {
	t.Parallel()
	b := setup(t, mailer.Settings{})
	for _, provider := range []string{"resend", "postmark", "ses", "sendgrid", "mailgun", "dsn"} {
		if _, err := b.mailer.TakeFeedback(b.ctx, mailer.Intake{Provider: provider, Header: http.Header{}, Body: []byte(`{}`)}); !errors.Is(err, mailer.ErrNotProven) {
			t.Errorf("%s is answered %v", provider, err)
		}
	}
}

func TestCapture_PlaysTheOutcomesOfItsAddresses(t *testing.T) {
	t.Parallel()
	for local, tt := range map[string]struct {
		state    jobs.TaskState
		feedback string
	}{
		"bounce":   {jobs.StateCompleted, "bounced"},
		"complain": {jobs.StateCompleted, "complained"},
		"defer":    {jobs.StateRetryable, ""},
		"reject":   {jobs.StateDiscarded, ""},
		"slow":     {jobs.StateCompleted, ""},
		"anyone":   {jobs.StateCompleted, ""},
	} {
		t.Run(local, func(t *testing.T) {
			t.Parallel()
			b := setup(t, mailer.Settings{})
			b.start()
			q := b.notify(order("SO-1", local+"@simulate.invalid"))
			b.reach(q.TaskID, tt.state)
			if got := b.feedback(q); got != tt.feedback {
				t.Errorf("the mail reads %q, want %q", got, tt.feedback)
			}
			raw, _, err := b.mailer.CapturedRaw(b.ctx, b.pool, b.project, q.ID)
			if err != nil || !strings.Contains(string(raw), "Message-ID: <"+q.ID) {
				t.Errorf("captured %q, %v", raw, err)
			}
		})
	}
}
