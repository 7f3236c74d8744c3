package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"

	"entrega/internal/store"
	"entrega/mailer"
)

// loadMail reads how mail leaves the installation. Nothing set means that it is captured and the panel shows it.
func loadMail(getenv func(string) string, refuse func(name, format string, args ...any)) mailer.Settings {
	s := mailer.Settings{Kind: mailer.TransportKind(getenv("ENTREGA_MAIL_TRANSPORT")), From: getenv("ENTREGA_MAIL_FROM"),
		FeedbackSecret: getenv("ENTREGA_MAIL_FEEDBACK_SECRET")}
	switch s.Kind {
	case "":
		s.Kind = mailer.Capture
	case mailer.SMTP:
		relay, err := mailer.ParseSMTPURL(getenv("ENTREGA_SMTP_URL"))
		if err != nil {
			refuse("ENTREGA_SMTP_URL", "%w", err)
			return s
		}
		s.SMTP = relay
	case mailer.API:
		s.API = mailer.APISettings{Shape: mailer.Shape(getenv("ENTREGA_MAIL_API")), URL: getenv("ENTREGA_MAIL_API_URL"), Key: getenv("ENTREGA_MAIL_API_KEY"),
			Template: readSetting(getenv, "ENTREGA_MAIL_API_TEMPLATE_FILE", refuse), IDField: getenv("ENTREGA_MAIL_API_ID_FIELD")}
	}
	if key := readSetting(getenv, "ENTREGA_DKIM_KEY_FILE", refuse); key != "" {
		s.DKIM = mailer.DKIMSettings{Domain: getenv("ENTREGA_DKIM_DOMAIN"), Selector: getenv("ENTREGA_DKIM_SELECTOR"), Key: key}
	}
	checked, err := s.Check()
	var bad *store.InvalidError
	if errors.As(err, &bad) {
		for _, f := range bad.Fields {
			refuse(mailVariable(f.Field), "%s", f.Sentence)
		}
		return s
	}
	return checked
}

// mailVariable names the variable that a field of the settings comes from.
func mailVariable(field string) string {
	names := map[string]string{"kind": "ENTREGA_MAIL_TRANSPORT", "from": "ENTREGA_MAIL_FROM", "dkim": "ENTREGA_DKIM_DOMAIN", "shape": "ENTREGA_MAIL_API",
		"url": "ENTREGA_MAIL_API_URL", "key": "ENTREGA_MAIL_API_KEY", "template": "ENTREGA_MAIL_API_TEMPLATE_FILE"}
	if name, ok := names[field]; ok {
		return name
	}
	return "ENTREGA_SMTP_URL"
}

// readSetting reads the file that a variable names; "" when it names none.
func readSetting(getenv func(string) string, name string, refuse func(name, format string, args ...any)) string {
	file := getenv(name)
	if file == "" {
		return ""
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		refuse(name, "%w", err)
	}
	return string(raw)
}

// mailTarget is the host and port that the operator named for mail, which may be called though the guard would refuse them.
func mailTarget(s mailer.Settings) []string {
	switch s.Kind {
	case mailer.SMTP:
		return []string{net.JoinHostPort(s.SMTP.Host, strconv.Itoa(int(s.SMTP.Port)))}
	case mailer.API:
		u, err := url.Parse(s.API.URL)
		if err != nil || u.Host == "" {
			return nil
		}
		return []string{u.Host}
	default:
		return nil
	}
}

const mailHelp = `
  ENTREGA_MAIL_TRANSPORT  smtp or api; capture keeps every mail here and sends none (capture)
  ENTREGA_MAIL_FROM       the sender, such as Shop <mail@shop.example>
  ENTREGA_SMTP_URL        smtp://user:password@host:587 (STARTTLS is required, but for a relay on this machine) or smtps://host:465;
                          ?auth= names login, cram-md5 or xoauth2 instead of plain
  ENTREGA_MAIL_API        resend, postmark, ses or generic
  ENTREGA_MAIL_API_URL, ENTREGA_MAIL_API_KEY, ENTREGA_MAIL_API_TEMPLATE_FILE, ENTREGA_MAIL_API_ID_FIELD
                          where the API is, its key (for SES id:secret), and for generic the JSON body and the answer's id
  ENTREGA_DKIM_DOMAIN, ENTREGA_DKIM_SELECTOR, ENTREGA_DKIM_KEY_FILE
                          a private key in PEM that signs what leaves over SMTP
  ENTREGA_MAIL_FEEDBACK_SECRET
                          what proves the provider's feedback: signing secret, public key, topic or password`

// aboutMail is the line for people to read.
func aboutMail(s mailer.Settings) string {
	if s.Kind == mailer.Capture {
		return "captured, nothing is sent"
	}
	return fmt.Sprintf("%s by %s", s.From, s.About())
}
