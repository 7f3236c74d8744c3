package mailer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"strings"
	"time"

	"crypto/sha256"
)

// dsnFacts reads a delivery status notification (RFC 3464), as a mail server pipes it. Any other mail, an absence notice above all,
// holds no facts.
func dsnFacts(_ context.Context, _ *Mailer, in Intake) ([]Fact, error) {
	msg, err := mail.ReadMessage(bytes.NewReader(in.Body))
	if err != nil {
		return nil, unreadable("This is not a mail message.")
	}
	media, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil || media != "multipart/report" || !strings.EqualFold(params["report-type"], "delivery-status") {
		return nil, nil
	}
	sum := sha256.Sum256(in.Body)
	report := dsn{key: hex.EncodeToString(sum[:])}
	report.at, _ = msg.Header.Date() // The time of its arrival stands in.
	parts := multipart.NewReader(msg.Body, params["boundary"])
	for range maxParts {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, unreadable("The report breaks off.")
		}
		if err := report.read(part); err != nil {
			return nil, err
		}
	}
	return report.facts(), nil
}

// maxParts bounds the parts of a report, which has three.
const maxParts = 16

// dsn is a report as far as it was read.
type dsn struct {
	key        string
	at         time.Time
	original   string // the Message-ID of the mail that it is about
	recipients []textproto.MIMEHeader
}

func (d *dsn) read(part *multipart.Part) error {
	media, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
	switch strings.ToLower(media) {
	case "message/delivery-status", "message/global-delivery-status":
		r := textproto.NewReader(bufio.NewReader(part))
		for i := range maxRecipients {
			fields, err := r.ReadMIMEHeader()
			if i > 0 && len(fields) > 0 { // The first block is about the message.
				d.recipients = append(d.recipients, fields)
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return unreadable("The report's fields cannot be read.")
			}
		}
	case "message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers":
		header, err := textproto.NewReader(bufio.NewReader(part)).ReadMIMEHeader()
		if err != nil && err != io.EOF {
			return nil // The report counts without the mail that it is about.
		}
		d.original = header.Get("Message-Id")
	}
	return nil
}

// maxRecipients bounds the recipients of a report. Our mails have one.
const maxRecipients = 50

func (d *dsn) facts() []Fact {
	var facts []Fact
	for i, r := range d.recipients {
		kind := map[string]Feedback{"failed": Bounced, "delayed": Delayed, "delivered": Delivered, "relayed": Delivered, "expanded": Delivered}[strings.ToLower(r.Get("Action"))]
		if kind == "" {
			continue
		}
		status, _, _ := strings.Cut(strings.TrimSpace(r.Get("Status")), " ")
		facts = append(facts, Fact{Kind: kind, EventKey: d.key + " " + string(rune('a'+i%26)), MessageID: d.original, Status: status,
			Permanent: kind == Bounced && permanent(status), Detail: r.Get("Diagnostic-Code"), OccurredAt: d.at.UTC()})
	}
	return facts
}
