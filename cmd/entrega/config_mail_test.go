package main

import (
	"strings"
	"testing"

	"entrega/mailer"
)

func TestConfig_MailIsCapturedUnlessSaidOtherwise(t *testing.T) {
	t.Parallel()
	c, err := LoadConfig(func(string) string { return "" })
	if err != nil || c.Mail.Kind != mailer.Capture {
		t.Fatalf("mail leaves by %q, %v", c.Mail.Kind, err)
	}
	if lines := strings.Join(c.Lines(), "\n"); !strings.Contains(lines, "captured, nothing is sent") {
		t.Errorf("the settings read:\n%s", lines)
	}
}

func TestConfig_ReadsARelay(t *testing.T) {
	t.Parallel()
	env := map[string]string{"ENTREGA_MAIL_TRANSPORT": "smtp", "ENTREGA_MAIL_FROM": "Shop <mail@shop.example>",
		"ENTREGA_SMTP_URL": "smtps://shop:p%40ss@smtp.example.com?auth=login"}
	c, err := LoadConfig(func(name string) string { return env[name] })
	want := mailer.SMTPSettings{Host: "smtp.example.com", Port: 465, Security: mailer.ImplicitTLS, Username: "shop", Password: "p@ss", Auth: mailer.AuthLogin}
	if err != nil || c.Mail.SMTP != want {
		t.Fatalf("the relay is %+v, %v", c.Mail.SMTP, err)
	}
	if target := mailTarget(c.Mail); len(target) != 1 || target[0] != "smtp.example.com:465" {
		t.Errorf("the door is opened to %v", target)
	}
	if lines := strings.Join(c.Lines(), "\n"); strings.Contains(lines, "p@ss") || !strings.Contains(lines, "smtp.example.com:465") {
		t.Errorf("the settings read:\n%s", lines)
	}
}

func TestConfig_RefusesMailThatCannotWork(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env  map[string]string
		want string
	}{
		"an unknown transport": {map[string]string{"ENTREGA_MAIL_TRANSPORT": "pigeon"}, "ENTREGA_MAIL_TRANSPORT"},
		"no relay":             {map[string]string{"ENTREGA_MAIL_TRANSPORT": "smtp", "ENTREGA_MAIL_FROM": "a@shop.example"}, "ENTREGA_SMTP_URL"},
		"no sender":            {map[string]string{"ENTREGA_MAIL_TRANSPORT": "smtp", "ENTREGA_SMTP_URL": "smtp://localhost:25"}, "ENTREGA_MAIL_FROM"},
		"an injected sender":   {map[string]string{"ENTREGA_MAIL_TRANSPORT": "smtp", "ENTREGA_SMTP_URL": "smtp://localhost:25", "ENTREGA_MAIL_FROM": "a@shop.example\nBcc: b@c.example"}, "ENTREGA_MAIL_FROM"},
		"an unknown API":       {map[string]string{"ENTREGA_MAIL_TRANSPORT": "api", "ENTREGA_MAIL_FROM": "a@shop.example"}, "ENTREGA_MAIL_API"},
		"a key file not there": {map[string]string{"ENTREGA_DKIM_KEY_FILE": "/nowhere/key.pem"}, "ENTREGA_DKIM_KEY_FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := LoadConfig(func(name string) string { return tt.env[name] })
			if err == nil || !strings.Contains(err.Error(), tt.want+":") {
				t.Errorf("answered %v, want a sentence about %s", err, tt.want)
			}
		})
	}
}
