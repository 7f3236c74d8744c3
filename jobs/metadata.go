package jobs

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/tidwall/gjson"
)

// metadata is what a task carries in river_job.metadata: where it belongs, facts for lists, and the mark of its last outcome.
// The generated columns of migration 001 read project_id, endpoint_id, event_id and outcome from here.
type metadata struct {
	ProjectID  string `json:"project_id,omitempty"`
	EndpointID string `json:"endpoint_id,omitempty"`
	EventID    string `json:"event_id,omitempty"`
	// IdempotencyKey, OrderID and RecipientRef stand in each of the task's rows in the ledger.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	OrderID        string `json:"order_id,omitempty"`
	RecipientRef   []byte `json:"recipient_ref,omitempty"`

	Label    map[string]string `json:"label,omitempty"`
	Trigger  Trigger           `json:"trigger,omitempty"`
	Outcome  string            `json:"outcome,omitempty"`
	Attempt  int               `json:"attempt,omitempty"`
	Max      int               `json:"max,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Last     *LastResult       `json:"last,omitempty"`
	CancelAt string            `json:"cancel_attempted_at,omitempty"`
}

// The marks an attempt leaves in outcome.
const (
	outcomeRetry  = "retry"
	outcomeSnooze = "snooze"
	outcomeDone   = "done"
)

// marks are what an attempt leaves in metadata. What it does not touch is empty.
type marks struct {
	Outcome string      `json:"outcome"`
	Reason  string      `json:"reason"`
	Max     int         `json:"max"`
	Attempt int         `json:"attempt,omitempty"`
	Last    *LastResult `json:"last,omitempty"`
	Trigger Trigger     `json:"trigger,omitempty"`
}

// LastResult is the newest attempt in short, for lists.
type LastResult struct {
	At         time.Time `json:"at"`
	Status     int       `json:"status,omitempty"`
	ErrorType  string    `json:"errorType,omitempty"`
	Phase      string    `json:"phase,omitempty"`
	DurationMS int64     `json:"ms"`
	Decision   Verdict   `json:"decision"`
	Reason     string    `json:"reason,omitempty"`
	RetryAfter string    `json:"retryAfter,omitempty"`
}

// subjectOf reads from metadata what each attempt needs, and leaves out what is there for lists: to decode all of it was a twentieth of a
// delivery. Postgres keeps only valid JSON.
func subjectOf(raw []byte) metadata {
	var m metadata
	gjson.ParseBytes(raw).ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "project_id":
			m.ProjectID = value.Str
		case "endpoint_id":
			m.EndpointID = value.Str
		case "event_id":
			m.EventID = value.Str
		case "idempotency_key":
			m.IdempotencyKey = value.Str
		case "order_id":
			m.OrderID = value.Str
		case "recipient_ref":
			if ref, err := base64.StdEncoding.DecodeString(value.Str); err == nil && len(ref) > 0 {
				m.RecipientRef = ref
			}
		case "trigger":
			m.Trigger = Trigger(value.Str)
		}
		return true
	})
	return m
}

func parseMetadata(raw []byte) metadata {
	var m metadata
	// Metadata that people changed by hand may not decode; what could be read still counts.
	_ = json.Unmarshal(raw, &m)
	return m
}
