package events

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"entrega/internal/store"
)

// MaxDataBytes is the most that an event's data may take, counted as the bytes that were published.
const MaxDataBytes = 256 << 10

const (
	maxIDLength         = 128
	maxKeyLength        = 255
	maxSubscriberLength = 128
	maxMetadataBytes    = 8 << 10
	maxMetadataKey      = 64
)

var (
	idPattern = regexp.MustCompile(`^[A-Za-z0-9._:-]+$`)
	// keyPattern is visible ASCII and spaces: an Idempotency-Key travels in a header.
	keyPattern = regexp.MustCompile(`^[ -~]+$`)
)

// New is an event to publish. Type and Data must be given; the zero value of all else means "not given".
type New struct {
	// ID becomes the webhook-id. Without it the event gets a TypeID, or, when its IdempotencyKey is known already, the id
	// of the event that was published with it first.
	ID string
	// IdempotencyKey makes a second publish with it answer the first event. It never leaves the installation.
	IdempotencyKey string
	Type           string
	Subscriber     string
	// Data is JSON, kept and sent byte for byte.
	Data []byte
	// Checked says that the caller knows Data to be JSON in UTF-8, as part of a body that was looked at as a whole.
	Checked bool
	// OccurredAt is kept to the microsecond.
	OccurredAt time.Time
	// ExpiresAt ends all attempts to deliver the event. It is kept to the microsecond.
	ExpiresAt time.Time
	// Metadata is for people and searches; it is not sent.
	Metadata map[string]string
}

// check collects everything that is wrong with n but its expiry, which expired looks at.
func (n New) check() error {
	var bad store.InvalidError
	if n.ID != "" && (len(n.ID) > maxIDLength || !idPattern.MatchString(n.ID)) {
		bad.Add("id", "Use 1 to 128 letters, digits and any of . _ : - or leave it out.")
	}
	if n.IdempotencyKey != "" && (len(n.IdempotencyKey) > maxKeyLength || !keyPattern.MatchString(n.IdempotencyKey)) {
		bad.Add("idempotencyKey", "Use 1 to 255 visible ASCII characters, or leave it out.")
	}
	if !IsType(n.Type) {
		bad.Add("type", TypeRule)
	}
	if s := dataSentence(n.Data, n.Checked); s != "" {
		bad.Add("data", s)
	}
	if n.Subscriber != "" && (!isText(n.Subscriber) || utf8.RuneCountInString(n.Subscriber) > maxSubscriberLength) {
		bad.Add("subscriber", "Use 1 to 128 characters without control characters, or leave it out.")
	}
	if !n.OccurredAt.IsZero() && !inEra(n.OccurredAt) {
		bad.Add("occurredAt", "The time must lie in the years 1970 to 9999.")
	}
	switch {
	case n.ExpiresAt.IsZero():
	case !inEra(n.ExpiresAt):
		bad.Add("expiresAt", "The time must lie in the years 1970 to 9999.")
	case !n.OccurredAt.IsZero() && !n.ExpiresAt.After(n.OccurredAt):
		bad.Add("expiresAt", "The time must be later than occurredAt.")
	}
	if s := metadataSentence(n.Metadata); s != "" {
		bad.Add("metadata", s)
	}
	return bad.OrNil()
}

// expired reports that nothing could be delivered any more at now.
func (n New) expired(now time.Time) bool { return !n.ExpiresAt.IsZero() && !n.ExpiresAt.After(now) }

// row makes n what the table will hold, so that a stored event can be compared with it.
func (n New) row(project string) row {
	r := row{
		project:    project,
		id:         n.ID,
		ownID:      n.ID != "",
		key:        textOrNil(n.IdempotencyKey),
		typ:        n.Type,
		subscriber: textOrNil(n.Subscriber),
		data:       n.Data,
		occurredAt: instantOrNil(n.OccurredAt),
		expiresAt:  instantOrNil(n.ExpiresAt),
		metadata:   n.Metadata,
	}
	if r.metadata == nil {
		r.metadata = map[string]string{}
	}
	if !r.ownID {
		r.id = store.NewID("event")
	}
	return r
}

func dataSentence(data []byte, checked bool) string {
	switch {
	case len(data) == 0:
		return "Give the JSON that receivers get."
	case len(data) > MaxDataBytes:
		return fmt.Sprintf("This takes %d bytes; %d are the most.", len(data), MaxDataBytes)
	case checked:
		return ""
	case !utf8.Valid(data):
		return "This is not UTF-8, which JSON must be (RFC 8259, section 8.1)."
	}
	if json.Valid(data) {
		return ""
	}
	var raw json.RawMessage
	return fmt.Sprintf("This is not valid JSON: %v.", json.Unmarshal(data, &raw))
}

func metadataSentence(metadata map[string]string) string {
	size := len("{}")
	for key, value := range metadata {
		if key == "" || utf8.RuneCountInString(key) > maxMetadataKey || !isText(key) {
			return fmt.Sprintf("A key takes 1 to %d characters without control characters.", maxMetadataKey)
		}
		if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
			return "The value of " + key + " is not text."
		}
		size += len(`"":"",`) + len(key) + len(value)
	}
	if size > maxMetadataBytes {
		return fmt.Sprintf("This takes %d bytes; %d are the most.", size, maxMetadataBytes)
	}
	return ""
}

// isText reports that s is UTF-8 without ASCII control characters.
func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// inEra keeps out instants that JSON, or PostgreSQL, could not hold.
func inEra(t time.Time) bool { return t.UTC().Year() >= 1970 && t.UTC().Year() <= 9999 }

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// instantOrNil cuts t to what a timestamptz holds.
func instantOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Microsecond)
	return &t
}
