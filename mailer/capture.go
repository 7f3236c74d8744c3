package mailer

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"entrega/internal/egress"
	"entrega/jobs"
)

// simulated is the domain whose addresses play an outcome when mail is captured. The TLD is reserved (RFC 2606, section 2), so
// nobody has an address there.
const simulated = "simulate.invalid"

// slowFor is how long the address slow@ takes.
const slowFor = 3 * time.Second

// captureTransport keeps each mail and says what a relay would have said. Nothing leaves the machine.
type captureTransport struct {
	keep func(ctx context.Context, m Message, raw []byte) error
	now  func() time.Time
	// pass waits; tests have none of it.
	pass func(ctx context.Context, d time.Duration) error
}

// Send keeps the mail. The addresses bounce@, defer@, reject@, slow@ and complain@ of simulate.invalid play their outcome.
func (t *captureTransport) Send(ctx context.Context, m Message) Result {
	r := Result{StartedAt: t.now(), captured: true, Reached: true}
	raw, err := m.Raw(DKIMSettings{})
	if err == nil {
		sum := sha256.Sum256(raw)
		r.Request = jobs.Excerpt{Line: "captured", SHA256: sum[:], Header: http.Header{"Message-Id": {m.MessageID}, "Content-Length": {fmt.Sprint(len(raw))}}}
		err = t.keep(ctx, m, raw)
	}
	if err != nil {
		r.Verdict, r.ResponseClass, r.ErrorType = Failed, "unknown", string(egress.ConnectionFailed)
		r.Sentence = "The mail could not be kept."
		r.FinishedAt = t.now()
		return r
	}
	code, reply := 250, "2.0.0 captured, nothing was sent"
	switch t.plays(m.Recipient) {
	case "defer":
		code, reply = 451, "4.7.1 simulated: come back later"
	case "reject":
		code, reply = 550, "5.1.1 simulated: no such recipient"
	case "slow":
		if err := t.pass(ctx, slowFor); err != nil {
			r.Verdict, r.ResponseClass, r.cause, r.Sentence = Stopped, "unknown", context.Cause(ctx), "The attempt was interrupted."
			r.FinishedAt = t.now()
			return r
		}
	}
	r.Status, r.Enhanced, r.Response = code, enhancedOf(reply), replyExcerpt(code, reply)
	r.ResponseClass = "success"
	stage := StageDot
	if code != 250 {
		stage, r.ResponseClass, r.ErrorType = StageRcpt, replyClass(code), errorSMTP
		r.Sentence = fmt.Sprintf("The simulated relay answered %d %s.", code, reply)
	}
	r.Verdict, r.Suppress = readReply(stage, code, r.Enhanced)
	r.FinishedAt = t.now()
	return r
}

// plays is the outcome that a recipient stands for.
func (t *captureTransport) plays(recipient string) string {
	local, domain, _ := strings.Cut(recipient, "@")
	if domain != simulated {
		return ""
	}
	return local
}

// playsLater is the feedback that a captured recipient gets once the mail was accepted; empty for none.
func playsLater(recipient string) Feedback {
	switch recipient {
	case "bounce@" + simulated:
		return Bounced
	case "complain@" + simulated:
		return Complained
	default:
		return ""
	}
}

// passTime waits for a duration or the context's end.
func passTime(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
