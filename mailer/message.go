package mailer

import (
	"bytes"
	"fmt"
	"time"

	"github.com/wneessen/go-mail"

	"entrega/jobs"
)

// Message is one mail, ready to be handed over: the same at each attempt.
type Message struct {
	// ID is the notification's, and the idempotency key of mail APIs.
	ID string
	// Sender and Recipient are the envelope's plain addresses.
	Sender, Recipient string
	// From is the sender with its name.
	From, Subject, Text, HTML string
	// MessageID has its angle brackets.
	MessageID string
	Date      time.Time
	Boundary  string
	// Policy is what judges the answers of an HTTP API.
	Policy jobs.Policy
}

// Raw is the message as SMTP sends it (RFC 5322), signed when there is a key. The bytes follow from the fields alone: what go-mail
// would choose by itself is set, and the signature's time is the message's date.
func (m Message) Raw(d DKIMSettings) ([]byte, error) {
	msg := mail.NewMsg(mail.WithBoundary(m.Boundary), mail.WithNoDefaultUserAgent(), mail.WithEncoding(mail.EncodingQP))
	if err := msg.From(m.From); err != nil {
		return nil, fmt.Errorf("set the sender: %w", err)
	}
	if err := msg.To(m.Recipient); err != nil {
		return nil, fmt.Errorf("set the recipient: %w", err)
	}
	msg.Subject(m.Subject)
	msg.SetMessageIDWithValue(m.MessageID[1 : len(m.MessageID)-1])
	msg.SetDateWithValue(m.Date.UTC())
	// RFC 3834, section 5: so that nobody's absence notice answers.
	msg.SetGenHeader("Auto-Submitted", "auto-generated")
	msg.SetBodyString(mail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		msg.AddAlternativeString(mail.TypeTextHTML, m.HTML)
	}
	key, err := d.signer()
	if err != nil {
		return nil, fmt.Errorf("read the DKIM key: %w", err)
	}
	if key != nil {
		signer := mail.NewDKIMSigner(d.Domain, d.Selector, key)
		signer.NowFunc = func() time.Time { return m.Date }
		msg.SetDKIM(signer)
	}
	var raw bytes.Buffer
	if _, err := msg.WriteTo(&raw); err != nil {
		return nil, fmt.Errorf("compose the message: %w", err)
	}
	return raw.Bytes(), nil
}
