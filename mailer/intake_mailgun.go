package mailer

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"time"
)

// mailgunEvent is what Mailgun posts: its signature stands in the body.
type mailgunEvent struct {
	Signature struct {
		Timestamp string `json:"timestamp"`
		Token     string `json:"token"`
		Signature string `json:"signature"`
	} `json:"signature"`
	EventData struct {
		ID             string  `json:"id"`
		Event          string  `json:"event"`
		Severity       string  `json:"severity"`
		Reason         string  `json:"reason"`
		Timestamp      float64 `json:"timestamp"`
		DeliveryStatus struct {
			EnhancedCode string `json:"enhanced-code"`
			Message      string `json:"message"`
			Description  string `json:"description"`
		} `json:"delivery-status"`
		Message struct {
			Headers struct {
				MessageID string `json:"message-id"`
			} `json:"headers"`
		} `json:"message"`
	} `json:"event-data"`
}

// proveMailgun checks HMAC-SHA-256 over timestamp and token, under the account's signing key.
func proveMailgun(_ context.Context, m *Mailer, secret string, in Intake) error {
	var e mailgunEvent
	if err := json.Unmarshal(in.Body, &e); err != nil {
		return ErrNotProven
	}
	seconds, err := strconv.ParseInt(e.Signature.Timestamp, 10, 64)
	if err != nil {
		return ErrNotProven
	}
	if err := m.recent(time.Unix(seconds, 0)); err != nil {
		return err
	}
	given, err := hex.DecodeString(e.Signature.Signature)
	if err != nil || !hmac.Equal(given, hmacSHA256([]byte(secret), e.Signature.Timestamp+e.Signature.Token)) {
		return ErrNotProven
	}
	return nil
}

func mailgunFacts(_ context.Context, _ *Mailer, in Intake) ([]Fact, error) {
	var e mailgunEvent
	if err := json.Unmarshal(in.Body, &e); err != nil {
		return nil, unreadable("This is not an event of Mailgun.")
	}
	d := e.EventData
	f := Fact{EventKey: d.ID, ProviderMessageID: d.Message.Headers.MessageID, MessageID: "<" + d.Message.Headers.MessageID + ">", Status: d.DeliveryStatus.EnhancedCode,
		Detail: joinSentences(d.DeliveryStatus.Message, d.DeliveryStatus.Description)}
	seconds, part := math.Modf(d.Timestamp)
	f.OccurredAt = time.Unix(int64(seconds), int64(part*1e9)).UTC()
	switch {
	case d.Event == "delivered":
		f.Kind = Delivered
	case d.Event == "failed" && d.Severity == "temporary":
		f.Kind = Delayed
	case d.Event == "failed":
		f.Kind, f.Permanent = Bounced, d.Reason == "bounce" && permanent(f.Status)
	case d.Event == "complained":
		f.Kind = Complained
	default:
		return nil, nil
	}
	return []Fact{f}, nil
}
