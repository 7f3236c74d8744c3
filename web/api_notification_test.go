package web_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"entrega/mailer"
	"entrega/web"
)

var aNotification = map[string]string{"orderId": "SO-1", "to": "sales@acme.example", "subject": "New order", "text": "A new order.", "idempotencyKey": "key-1"}

func TestAPI_NotifyIsIdempotentAndRefusesInjection(t *testing.T) {
	t.Parallel()
	p := setup(t)
	c := p.api(p.ours)
	first := c.do("POST", "/v1/notifications", aNotification).is(202)
	again := c.do("POST", "/v1/notifications", aNotification).is(202)
	if first.text("id") == "" || again.text("id") != first.text("id") || !strings.Contains(string(again.raw), `"duplicate":true`) {
		t.Errorf("answered %s, then %s", first.raw, again.raw)
	}
	other := map[string]string{}
	for k, v := range aNotification {
		other[k] = v
	}
	other["text"] = "Something else."
	c.do("POST", "/v1/notifications", other).problem(409, mailer.CodeMismatch)
	other["subject"], other["to"] = "Hi\r\nBcc: all@elsewhere.example", "a@acme.example>\r\nRCPT TO:<b@acme.example"
	bad := c.do("POST", "/v1/notifications", other)
	bad.problem(422, "invalid")
	for _, field := range []string{`"field":"subject"`, `"field":"to"`} {
		if !strings.Contains(string(bad.raw), field) {
			t.Errorf("%s lacks %s", bad.raw, field)
		}
	}
}

func TestAPI_EvidenceInEachFormat(t *testing.T) {
	t.Parallel()
	p := setup(t)
	n := p.start()
	c := p.api(p.ours)
	id := c.do("POST", "/v1/notifications", map[string]string{"orderId": "SO-1", "to": "bounce@simulate.invalid", "subject": "New order", "text": "A new order."}).is(202).text("id")
	n.await("the mail", func() bool {
		var accepted int
		p.scan(&accepted, `select count(*) from notifications where accepted_at is not null`)
		return accepted == 1
	})

	var shown struct {
		OrderID       string
		Notifications []struct {
			ID, AcceptedAt string
			Captured       bool
			Attempts       []struct {
				Decision, PrevHash, Hash string
				StatusCode               int
				Policy                   struct {
					Kind, Profile, Hash string
					Version             int
				}
			}
			Feedback []struct{ Kind, Status string }
		}
	}
	if err := json.Unmarshal(c.do("GET", "/v1/orders/SO-1/evidence", nil).is(200).raw, &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Notifications) != 1 || shown.Notifications[0].ID != id || !shown.Notifications[0].Captured || shown.Notifications[0].AcceptedAt == "" {
		t.Fatalf("the evidence is %+v", shown)
	}
	mail := shown.Notifications[0]
	if len(mail.Attempts) != 1 || mail.Attempts[0].Decision != "accepted" || mail.Attempts[0].StatusCode != 250 || mail.Attempts[0].Policy.Kind != "order.notification" ||
		mail.Attempts[0].Policy.Profile != "standard" || mail.Attempts[0].Policy.Version != 1 || len(mail.Attempts[0].Policy.Hash) != 64 {
		t.Errorf("the attempts are %+v", mail.Attempts)
	}
	if len(mail.Feedback) != 1 || mail.Feedback[0].Kind != "bounced" || mail.Feedback[0].Status != "5.1.1" {
		t.Errorf("the feedback is %+v", mail.Feedback)
	}
	rows, err := csv.NewReader(strings.NewReader(string(c.do("GET", "/v1/orders/SO-1/evidence?format=csv", nil).is(200).raw))).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("CSV: %v, %v", rows, err)
	}
	cell := func(row int, column string) string { return rows[row][slices.Index(rows[0], column)] }
	if cell(1, "decision") != "accepted" || cell(1, "hash") != mail.Attempts[0].Hash || cell(1, "feedback") != "" {
		t.Errorf("the attempt is %q", rows[1])
	}
	if cell(2, "feedback") != "bounced" || cell(2, "feedback_status") != "5.1.1" || cell(2, "order_id") != "SO-1" || cell(2, "idempotency_key") != id || cell(2, "hash") != "" {
		t.Errorf("the feedback is %q", rows[2])
	}
	lines := strings.Split(strings.TrimSpace(string(c.do("GET", "/v1/orders/SO-1/evidence?format=jsonl", nil).is(200).raw)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"hash":"`+mail.Attempts[0].Hash+`"`) || !strings.Contains(lines[1], `"bounced"`) {
		t.Errorf("JSON Lines: %q", lines)
	}
	p.api(p.theirs).do("GET", "/v1/orders/SO-1/evidence", nil).problem(404, "not_found")
}

func TestAPI_FeedbackNeedsItsProofAndNoKey(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.useMailer(mailer.Settings{FeedbackSecret: "password"})
	id := p.api(p.ours).do("POST", "/v1/notifications", aNotification).is(202).text("id")
	body := `{"RecordType":"Delivery","MessageID":"m1","DeliveredAt":"2026-03-01T12:00:00Z","Metadata":{"notification":"` + id + `"}}`
	for user, want := range map[string]int{"": 401, "guess": 401, "password": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/v1/mail/feedback/postmark", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if user != "" {
			req.SetBasicAuth("entrega", user)
		}
		resp, err := (&http.Transport{}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("the password %q is answered %d, want %d", user, resp.StatusCode, want)
		}
	}
	var feedback string
	p.scan(&feedback, `select feedback from notifications where id = $1`, id)
	if feedback != "delivered" {
		t.Errorf("the mail reads %q", feedback)
	}
}

// useMailer serves with the mailer of other settings.
func (p *panel) useMailer(s mailer.Settings) {
	p.t.Helper()
	m, err := mailer.NewMailer(mailer.MailerOptions{Pool: p.pool, Client: p.client, Box: p.box, Door: p.door, Installation: s, Logger: quiet})
	if err != nil {
		p.t.Fatal(err)
	}
	p.mailer = m
	p.serve("http", func(o *web.Options) { o.Mailer = m })
}
