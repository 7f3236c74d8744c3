package views

import "time"

func sampleMail(x func(string) string) MailProps {
	return MailProps{Layout: sampleLayout(x, SectionMail, "Mail"), Filter: MailFilter{Query: x("SO-1")}, Transport: "smtp.example.com:587", Paused: x("535 wrong password"),
		Pager: Pager{NewerURL: "/newer", OlderURL: "/older"}, CanErase: true, CanSet: true,
		Rows: []MailRow{
			{ID: x("notification_1"), Kind: "order.notification", Order: x("SO-1"), Recipient: x("s•••@acme.example"), Subject: x("New order"), State: "delivered", CreatedAt: sampleNow()},
			{ID: x("notification_2"), Kind: x("owner.notify"), Subject: x("Somebody asks"), State: "waiting", Note: x("the transport rests"), CreatedAt: sampleNow()},
		}}
}

func sampleNotification(x func(string) string) NotificationProps {
	return NotificationProps{Layout: sampleLayout(x, SectionMail, "New order"), Row: sampleMail(x).Rows[0], Sentence: x("The provider told that it arrived."), TaskID: x("1042"),
		From: x("Shop <mail@shop.example>"), MessageID: x("<notification_1@shop.example>"), Transport: x("smtp.example.com:587"), Provider: x("4F1C2"),
		Story: []MailMoment{{At: sampleNow(), Tone: Calm, Title: x("Queued"), Detail: x("Stored.")}, {At: sampleNow().Add(time.Second), Tone: Good, Title: x("Attempt 1: accepted"), Detail: x("250 ok")}},
		Text:  x("A new order."), HasHTML: true, Headers: []Header{{Name: "Subject", Value: x("New order")}}, Duplicate: true, CanSee: true, CanSendAgain: true}
}

// sampleMailSide is the page of a mail with another side shown than the HTML.
func sampleMailSide(x func(string) string, view MailView) NotificationProps {
	p := sampleNotification(x)
	p.View, p.Source, p.SourceCut = view, x("Subject: New order"), true
	return p
}

func sampleMailSettings(x func(string) string) MailSettingsProps {
	return MailSettingsProps{Layout: sampleLayout(x, SectionSettings, "Mail transport"), Own: true, Present: x("smtp.example.com:587"), CanEdit: true, CanTest: true, TestTo: x("ines@acme.example"),
		Form:  MailForm{Kind: "smtp", From: x("Shop <mail@shop.example>"), Host: x("smtp.example.com"), Port: "587", Username: x("shop"), URL: x("https://api.example.com"), Template: x("{}"), HasPassword: true},
		Kinds: []Option{{Value: "smtp", Label: "SMTP"}}, Shapes: []Option{{Value: "resend", Label: "Resend"}}, Security: []Option{{Value: "starttls", Label: "STARTTLS"}},
		Mechanisms: []Option{{Value: "plain", Label: "PLAIN"}}, Problems: map[string]string{"host": x("Name the relay.")},
		FeedbackURLs: []Fact{{Label: "Resend", Value: x("https://entrega.example/v1/mail/feedback/resend")}},
		Checks:       []DomainCheck{{Name: "SPF", Host: x("shop.example"), Found: x("v=spf1 -all"), OK: true}, {Name: "DMARC", Host: x("_dmarc.shop.example"), Advice: x("Add one TXT record")}}}
}
