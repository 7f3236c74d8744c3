package mailer

import (
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// proveSvix checks a signature by Svix, which Standard Webhooks came from: HMAC-SHA-256 over id, timestamp and body, with the secret
// behind whsec_.
func proveSvix(_ context.Context, m *Mailer, secret string, in Intake) error {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return fmt.Errorf("%w: the signing secret is no base64", ErrNotProven)
	}
	id, stamp := in.Header.Get("Svix-Id"), in.Header.Get("Svix-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || id == "" {
		return ErrNotProven
	}
	if err := m.recent(time.Unix(seconds, 0)); err != nil {
		return err
	}
	want := base64.StdEncoding.EncodeToString(hmacSHA256(key, id+"."+stamp+"."+string(in.Body)))
	for given := range strings.FieldsSeq(in.Header.Get("Svix-Signature")) {
		if sum, ok := strings.CutPrefix(given, "v1,"); ok && hmac.Equal([]byte(sum), []byte(want)) {
			return nil
		}
	}
	return ErrNotProven
}

func resendFacts(_ context.Context, _ *Mailer, in Intake) ([]Fact, error) {
	var event struct {
		Type      string    `json:"type"`
		CreatedAt time.Time `json:"created_at"`
		Data      struct {
			EmailID string `json:"email_id"`
			Bounce  struct {
				Type    string `json:"type"`
				SubType string `json:"subType"`
				Message string `json:"message"`
			} `json:"bounce"`
		} `json:"data"`
	}
	if err := json.Unmarshal(in.Body, &event); err != nil {
		return nil, unreadable("This is not an event of Resend.")
	}
	kind := map[string]Feedback{"email.delivered": Delivered, "email.delivery_delayed": Delayed, "email.bounced": Bounced, "email.complained": Complained}[event.Type]
	if kind == "" {
		return nil, nil
	}
	return []Fact{{Kind: kind, EventKey: in.Header.Get("Svix-Id"), ProviderMessageID: event.Data.EmailID, Detail: event.Data.Bounce.Message,
		Permanent: kind == Bounced && strings.EqualFold(event.Data.Bounce.Type, "Permanent"), OccurredAt: event.CreatedAt}}, nil
}
