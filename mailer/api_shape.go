package mailer

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"entrega/internal/egress"
	"entrega/internal/store"
)

// Shape is how a mail API wants its requests.
type Shape string

// The shapes.
const (
	ShapeGeneric  Shape = "generic"
	ShapeResend   Shape = "resend"
	ShapePostmark Shape = "postmark"
	ShapeSES      Shape = "ses"
)

// Shapes are all shapes, the ready ones first.
func Shapes() []Shape { return []Shape{ShapeResend, ShapePostmark, ShapeSES, ShapeGeneric} }

// idempotent tells the shapes whose API drops a second request with the same Idempotency-Key. The others ignore the header, or, as
// SES does, refuse what was not signed.
func (s Shape) idempotent() bool { return s == ShapeResend || s == ShapeGeneric }

// defaultTemplate is the body of the generic shape.
const defaultTemplate = `{"from":"{{from}}","to":"{{to}}","subject":"{{subject}}","text":"{{text}}","html":"{{html}}","messageId":"{{messageId}}"}`

func (a APISettings) url() string {
	if a.URL != "" {
		return a.URL
	}
	switch a.Shape {
	case ShapeResend:
		return "https://api.resend.com/emails"
	case ShapePostmark:
		return "https://api.postmarkapp.com/email"
	default:
		return ""
	}
}

func (a *APISettings) check(bad *store.InvalidError) {
	switch a.Shape {
	case ShapeResend, ShapePostmark:
	case ShapeSES:
		if _, _, ok := strings.Cut(a.Key, ":"); !ok {
			bad.Add("key", "For SES the key is the access key's id and its secret, with a colon between.")
		}
		if _, err := sesRegion(a.URL); err != nil {
			bad.Add("url", "For SES give https://email.REGION.amazonaws.com/v2/email/outbound-emails.")
		}
	case ShapeGeneric:
		if a.URL == "" {
			bad.Add("url", "Give the address that takes the mail.")
		}
		if _, err := a.generic(Message{}); err != nil {
			bad.Add("template", "The template must be JSON, with {{from}}, {{to}}, {{subject}}, {{text}}, {{html}} or {{messageId}} inside its strings.")
		}
	default:
		bad.Add("shape", "Choose resend, postmark, ses or generic.")
	}
	if strings.ContainsFunc(a.Key, breaksLines) {
		bad.Add("key", "The key holds a line break or another control character.")
	}
}

// body is the JSON of one mail.
func (a APISettings) body(m Message) ([]byte, error) {
	type header struct {
		Name  string `json:"Name"`
		Value string `json:"Value"`
	}
	switch a.Shape {
	case ShapeResend:
		return json.Marshal(struct {
			From    string            `json:"from"`
			To      []string          `json:"to"`
			Subject string            `json:"subject"`
			Text    string            `json:"text"`
			HTML    string            `json:"html,omitempty"`
			Headers map[string]string `json:"headers"`
		}{m.From, []string{m.Recipient}, m.Subject, m.Text, m.HTML, map[string]string{"Message-ID": m.MessageID, "Auto-Submitted": "auto-generated"}})
	case ShapePostmark:
		return json.Marshal(struct {
			From     string
			To       string
			Subject  string
			TextBody string
			HTMLBody string `json:"HtmlBody,omitempty"`
			Headers  []header
			Metadata map[string]string
		}{m.From, m.Recipient, m.Subject, m.Text, m.HTML,
			[]header{{"Message-ID", m.MessageID}, {"X-PM-KeepID", "true"}, {"Auto-Submitted", "auto-generated"}}, map[string]string{"notification": m.ID}})
	case ShapeSES:
		raw, err := m.Raw(DKIMSettings{})
		if err != nil {
			return nil, err
		}
		var body struct {
			FromEmailAddress string
			Destination      struct{ ToAddresses []string }
			Content          struct{ Raw struct{ Data string } }
			EmailTags        []header
		}
		body.FromEmailAddress, body.Destination.ToAddresses = m.From, []string{m.Recipient}
		body.Content.Raw.Data = base64.StdEncoding.EncodeToString(raw)
		body.EmailTags = []header{{"notification", m.ID}}
		return json.Marshal(body)
	default:
		return a.generic(m)
	}
}

// generic fills the template in. Values go into the strings of the parsed document, so nothing in a mail can change its structure.
func (a APISettings) generic(m Message) ([]byte, error) {
	template := a.Template
	if template == "" {
		template = defaultTemplate
	}
	var document any
	if err := json.Unmarshal([]byte(template), &document); err != nil {
		return nil, fmt.Errorf("the template is no JSON")
	}
	values := strings.NewReplacer("{{from}}", m.From, "{{to}}", m.Recipient, "{{subject}}", m.Subject, "{{text}}", m.Text, "{{html}}", m.HTML,
		"{{messageId}}", m.MessageID, "{{id}}", m.ID)
	return json.Marshal(fillIn(document, values))
}

func fillIn(v any, values *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return values.Replace(v)
	case []any:
		for i := range v {
			v[i] = fillIn(v[i], values)
		}
	case map[string]any:
		for k := range v {
			v[k] = fillIn(v[k], values)
		}
	}
	return v
}

// authorize adds the credentials in the shape's way.
func (a APISettings) authorize(req *egress.Request, now time.Time) error {
	switch a.Shape {
	case ShapePostmark:
		req.Header.Set("X-Postmark-Server-Token", a.Key)
	case ShapeSES:
		id, secret, ok := strings.Cut(a.Key, ":")
		if !ok {
			return errors.New("the key has no colon")
		}
		region, err := sesRegion(req.URL)
		if err != nil {
			return err
		}
		return awsSigner{id: id, secret: secret, region: region, service: "ses"}.sign(req, now)
	default:
		if a.Key != "" {
			req.Header.Set("Authorization", "Bearer "+a.Key)
		}
	}
	return nil
}

// providerID reads the API's name for the mail out of its answer; empty when it has none.
func (a APISettings) providerID(body []byte) string {
	var answer map[string]any
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	field := map[Shape]string{ShapeResend: "id", ShapePostmark: "MessageID", ShapeSES: "MessageId"}[a.Shape]
	if field == "" {
		field = a.IDField
	}
	if field == "" {
		field = "id"
	}
	id, _ := answer[field].(string)
	return cut(id, 200)
}
