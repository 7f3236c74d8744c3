package web

import (
	"strconv"

	"entrega/mailer"
	"entrega/views"
)

func presentMailSettings(p *views.MailSettingsProps, v *visit, s mailer.Settings, public string) {
	f := views.MailForm{Kind: string(s.Kind), From: s.From, Host: s.SMTP.Host, Security: string(s.SMTP.Security), Auth: string(s.SMTP.Auth),
		Username: s.SMTP.Username, Shape: string(s.API.Shape), URL: s.API.URL, Template: s.API.Template, IDField: s.API.IDField, DKIMDomain: s.DKIM.Domain,
		DKIMSelector: s.DKIM.Selector, HasPassword: s.SMTP.Password != "", HasKey: s.API.Key != "", HasDKIM: s.DKIM.Key != "", HasFeedbackSecret: s.FeedbackSecret != ""}
	if s.SMTP.Port != 0 {
		f.Port = strconv.Itoa(int(s.SMTP.Port))
	}
	p.Form = f
	p.Kinds = []views.Option{{Value: "smtp", Label: "SMTP"}, {Value: "api", Label: "A mail API"}, {Value: "capture", Label: "Capture: keep every mail, send none"}}
	p.Security = []views.Option{{Value: "starttls", Label: "STARTTLS, required"}, {Value: "tls", Label: "TLS from the start"}}
	p.Mechanisms = []views.Option{{Value: "plain", Label: "PLAIN"}, {Value: "login", Label: "LOGIN"}, {Value: "cram-md5", Label: "CRAM-MD5"}, {Value: "xoauth2", Label: "XOAUTH2 (the password is a token)"}}
	labels := map[mailer.Shape]string{mailer.ShapeResend: "Resend", mailer.ShapePostmark: "Postmark", mailer.ShapeSES: "Amazon SES v2", mailer.ShapeGeneric: "Generic JSON"}
	for _, shape := range mailer.Shapes() {
		p.Shapes = append(p.Shapes, views.Option{Value: string(shape), Label: labels[shape]})
	}
	query := ""
	if p.Own {
		query = "?project=" + v.project.ID
	}
	for _, known := range [][2]string{{"Resend", "resend"}, {"Postmark", "postmark"}, {"Amazon SES by SNS", "ses"}, {"SendGrid", "sendgrid"}, {"Mailgun", "mailgun"}, {"Delivery reports", "dsn"}} {
		p.FeedbackURLs = append(p.FeedbackURLs, views.Fact{Label: known[0], Value: public + "/v1/mail/feedback/" + known[1] + query})
	}
}

func presentChecks(checks []mailer.Check) []views.DomainCheck {
	shown := make([]views.DomainCheck, len(checks))
	for i, c := range checks {
		shown[i] = views.DomainCheck{Name: c.Name, Host: c.Host, Found: c.Found, Advice: c.Advice, OK: c.OK, Unknown: c.Unknown}
	}
	return shown
}
