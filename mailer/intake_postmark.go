package mailer

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// hardBouncesOfPostmark are the types of a bounce that say that nobody is there.
func hardBounceOfPostmark(kind string) bool { return kind == "HardBounce" || kind == "BadEmailAddress" }

func postmarkFacts(_ context.Context, _ *Mailer, in Intake) ([]Fact, error) {
	var event struct {
		RecordType  string
		ID          json.Number
		MessageID   string
		Type        string
		Description string
		Details     string
		DeliveredAt time.Time
		BouncedAt   time.Time
		Metadata    map[string]string
	}
	if err := json.Unmarshal(in.Body, &event); err != nil {
		return nil, unreadable("This is not an event of Postmark.")
	}
	f := Fact{ProviderMessageID: event.MessageID, Detail: joinSentences(event.Description, event.Details), OccurredAt: event.BouncedAt}
	switch event.RecordType {
	case "Delivery":
		f.Kind, f.OccurredAt, f.Detail = Delivered, event.DeliveredAt, event.Details
	case "Bounce":
		f.Kind, f.Permanent = Bounced, hardBounceOfPostmark(event.Type)
		if event.Type == "Transient" || event.Type == "SoftBounce" {
			f.Kind = Delayed
		}
		if event.Type == "AutoResponder" || event.Type == "OpenRelayTest" || event.Type == "Subscribe" {
			return nil, nil // An absence notice is no bounce.
		}
	case "SpamComplaint":
		f.Kind = Complained
	default:
		return nil, nil
	}
	f.EventKey = fmt.Sprintf("%s %s %s", event.RecordType, event.ID, event.MessageID)
	if id := event.Metadata["notification"]; id != "" {
		f.MessageID = "<" + id + "@postmark>"
	}
	return []Fact{f}, nil
}
