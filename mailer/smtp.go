package mailer

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"entrega/internal/egress"
	"entrega/jobs"
)

// relayBusyDelay is how long a relay is left alone that closed the connection with 421.
const relayBusyDelay = 5 * time.Second

// smtpTransport talks to one relay. It is safe for concurrent use.
type smtpTransport struct {
	settings Settings
	door     *egress.Door
	roots    *x509.CertPool
	now      func() time.Time
	idle     idleConns
}

func newSMTP(s Settings, door *egress.Door, roots *x509.CertPool, now func() time.Time) *smtpTransport {
	return &smtpTransport{settings: s, door: door, roots: roots, now: now}
}

// conversation is one message on its way through a connection.
type conversation struct {
	result Result
	stage  Stage
	start  time.Time
}

// Send makes one attempt: on a connection that is open already and still answers, or on a new one.
func (t *smtpTransport) Send(ctx context.Context, m Message) Result {
	c := &conversation{stage: StageConnect, start: time.Now()}
	c.result.StartedAt = t.now()
	raw, err := m.Raw(t.settings.DKIM)
	if err != nil {
		c.result.Verdict, c.result.ErrorType, c.result.ResponseClass = Rejected, string(egress.ConfigurationError), "policy"
		c.result.Sentence, c.result.reason = "The message cannot be composed: "+err.Error()+".", jobs.ReasonConfiguration
		return c.finish(t)
	}
	sum := sha256.Sum256(raw)
	c.result.Request = jobs.Excerpt{Line: "MAIL, RCPT, DATA to " + t.settings.About(), SHA256: sum[:],
		Header: http.Header{"Message-Id": {m.MessageID}, "Content-Length": {fmt.Sprint(len(raw))}}}

	conn := t.idle.take(ctx)
	if conn == nil {
		if conn, err = t.connect(ctx, c); err != nil {
			c.fail(ctx, err)
			return c.finish(t)
		}
	}
	c.result.Peer, c.result.Reached = conn.peer, true
	reply, err := t.converse(ctx, c, conn, m, raw)
	if err != nil {
		c.fail(ctx, err)
	} else {
		c.accept(reply)
	}
	// After a rejected recipient the connection is as good as before; after 421 or silence it is not.
	t.idle.give(conn, err == nil || c.result.Status != 0 && c.result.Status != 421)
	return c.finish(t)
}

// converse offers the message. Its error is a *textproto.Error for a reply, anything else for a lost connection.
func (t *smtpTransport) converse(ctx context.Context, c *conversation, conn *relayConn, m Message, raw []byte) (reply string, err error) {
	stop := conn.bound(ctx)
	defer stop()
	conn.used++
	c.stage = StageMail
	if err := conn.client.Mail(m.Sender); err != nil {
		return "", err
	}
	c.stage = StageRcpt
	if err := conn.client.Rcpt(m.Recipient); err != nil {
		return "", err
	}
	c.stage = StageData
	text := conn.client.Text
	id, err := text.Cmd("DATA")
	if err != nil {
		return "", err
	}
	text.StartResponse(id)
	_, _, err = text.ReadResponse(354)
	text.EndResponse(id)
	if err != nil {
		return "", err
	}
	c.stage = StageBody
	w := text.DotWriter()
	if _, err := w.Write(raw); err != nil {
		return "", conn.lastWord(err)
	}
	c.stage = StageDot
	if err := w.Close(); err != nil {
		return "", conn.lastWord(err)
	}
	_, reply, err = text.ReadResponse(250)
	return reply, err
}

// accept notes the relay's word that it has the message.
func (c *conversation) accept(reply string) {
	c.result.Verdict, c.result.ResponseClass, c.result.Status = Accepted, "success", 250
	c.result.Enhanced, c.result.ProviderID = enhancedOf(reply), queueID(reply)
	c.result.Response = replyExcerpt(250, reply)
}

// fail gives an error its meaning by the stage it came in.
func (c *conversation) fail(ctx context.Context, err error) {
	r := &c.result
	r.Phase = string(c.stage)
	var reply *textproto.Error
	var failure *egress.Failure
	switch {
	case errors.As(err, &reply):
		r.Status, r.Enhanced, r.ErrorType = reply.Code, enhancedOf(reply.Msg), errorSMTP
		r.Verdict, r.Suppress = readReply(c.stage, reply.Code, r.Enhanced)
		r.ResponseClass, r.Delay = replyClass(reply.Code), relayBusyDelay
		r.Sentence = replySentence(c.stage, reply)
		r.Response = replyExcerpt(reply.Code, reply.Msg)
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.Verdict, r.ResponseClass, r.cause = Stopped, "unknown", context.Cause(ctx)
		r.ErrorType, r.Sentence = string(egress.Interrupted), "The attempt was interrupted because the server is shutting down."
	case errors.As(err, &failure) && failure.Type == egress.BlockedByPolicy:
		r.Verdict, r.ResponseClass, r.ErrorType, r.Sentence = Refused, "policy", string(failure.Type), failure.Sentence
	case errors.As(err, &failure):
		r.Verdict, r.ResponseClass, r.ErrorType, r.Phase, r.Sentence = Failed, "network", string(failure.Type), string(failure.Phase), failure.Sentence
	default:
		r.lost(ctx, c.stage, err)
	}
	r.PossibleDuplicate = c.stage == StageDot && r.Status == 0
}

// lost is a connection that ended, or fell silent, instead of answering.
func (r *Result) lost(ctx context.Context, stage Stage, err error) {
	r.Verdict, _ = readReply(stage, 0, "")
	r.ResponseClass, r.ErrorType = "network", string(egress.ConnectionFailed)
	var setting *settingError
	switch {
	case errors.As(err, &setting):
		r.Verdict, r.ResponseClass, r.ErrorType, r.Sentence = Refused, "policy", string(egress.ConfigurationError), setting.sentence
		return
	case isTimeout(ctx, err):
		r.ErrorType, r.Sentence = string(egress.Timeout), fmt.Sprintf("The relay did not answer in time (%s).", stageWords(stage))
	case stage == StageTLS || stage == StageSTARTTLS:
		r.ErrorType, r.Sentence = string(egress.TlsError), "The TLS handshake with the relay failed. Check that its certificate is valid for its name."
	default:
		r.Sentence = fmt.Sprintf("The relay closed the connection (%s).", stageWords(stage))
	}
	if r.Verdict == Unknown {
		r.ResponseClass = "unknown"
		r.Sentence += " It may have the message."
	}
}

func (c *conversation) finish(t *smtpTransport) Result {
	c.result.Timings.Total = time.Since(c.start)
	c.result.FinishedAt = c.result.StartedAt.Add(c.result.Timings.Total)
	return c.result
}

func replyClass(code int) string {
	switch {
	case code == 421 || code == 450 || code == 451 || code == 452:
		return "throttle"
	case code/100 == 4:
		return "server"
	default:
		return "client"
	}
}

func replySentence(stage Stage, reply *textproto.Error) string {
	text := strings.Join(strings.Fields(reply.Msg), " ")
	return fmt.Sprintf("The relay answered %d %s (%s).", reply.Code, cut(text, 300), stageWords(stage))
}

func stageWords(stage Stage) string {
	switch stage {
	case StageConnect:
		return "when the connection was made"
	case StageTLS, StageSTARTTLS:
		return "when encryption was begun"
	case StageEHLO:
		return "to our greeting"
	case StageAuth:
		return "to our credentials"
	case StageMail:
		return "to the sender"
	case StageRcpt:
		return "to the recipient"
	case StageDot:
		return "after the whole message"
	default:
		return "to the message"
	}
}

// replyExcerpt keeps the relay's words.
func replyExcerpt(code int, text string) jobs.Excerpt {
	body := []byte(cut(fmt.Sprintf("%d %s", code, text), 16<<10))
	sum := sha256.Sum256(body)
	return jobs.Excerpt{Body: body, SHA256: sum[:]}
}

// queueID is the relay's name for the message, where its reply ends in one: "2.0.0 Ok: queued as 4F1C2", "Ok 0102018f…".
func queueID(reply string) string {
	words := strings.Fields(reply)
	if len(words) == 0 {
		return ""
	}
	last := strings.Trim(words[len(words)-1], "<>.,;()")
	if len(last) < 6 || !strings.ContainsAny(last, "0123456789") || strings.Contains(last, "@") {
		return ""
	}
	return cut(last, 200)
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
