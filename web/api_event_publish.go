package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"entrega/internal/events"
	"entrega/internal/store"
)

// batchBytes bounds the body of a batch: 1,000 events of 8 KiB, or fewer and larger ones.
const batchBytes = 8 << 20

// publishBody documents an event to publish. It is read by decodeEvent, whose cases are its members.
type publishBody struct {
	_          struct{}          `additionalProperties:"false"`
	Type       string            `json:"type" maxLength:"128" pattern:"^[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*$" doc:"What kind of thing happened." example:"order.created"`
	Data       json.RawMessage   `json:"data" doc:"Any JSON. Receivers get it byte for byte." example:"{\"orderId\":\"SO-1042\"}"`
	ID         string            `json:"id,omitempty" maxLength:"128" pattern:"^[A-Za-z0-9._:-]+$" doc:"Becomes the webhook-id; left out, the event gets one. The same id again publishes nothing new." example:"order-1042-created"`
	Subscriber string            `json:"subscriber,omitempty" maxLength:"128" doc:"The project's own customer whom it concerns." example:"acme"`
	OccurredAt time.Time         `json:"occurredAt,omitzero" doc:"When it happened; left out, when it was published." example:"2026-03-01T12:00:00Z"`
	ExpiresAt  time.Time         `json:"expiresAt,omitzero" doc:"When attempts to deliver it end, should that be earlier than by the policy." example:"2026-03-08T12:00:00Z"`
	Metadata   map[string]string `json:"metadata,omitempty" doc:"Facts for people and searches; not sent to receivers. 8 KiB at most." example:"{\"source\":\"shop\"}"`
}

// publishBatchBody documents a batch; it is read by batchIn.
type publishBatchBody struct {
	_      struct{}      `additionalProperties:"false"`
	Events []publishBody `json:"events" minItems:"1" maxItems:"1000" nullable:"false"`
}

// IdempotentInput documents the header that the guard reads.
type IdempotentInput struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"240" doc:"Makes it safe to send the request again." example:"9d0e6c1c-6f0b-4c39-a5d7-1f2b6a0c9e11"`
}

// publishedShown answers a publish.
type publishedShown struct {
	ID        string `json:"id" doc:"The event's id, which receivers see as webhook-id." example:"order-1042-created"`
	Duplicate bool   `json:"duplicate" doc:"The event was there already, with the same content." example:"false"`
}

type publishOutput struct{ Body publishedShown }

func (a *api) publishEvent(ctx context.Context, c call, _ *IdempotentInput) (*publishOutput, error) {
	published, err := a.publish(ctx, c)
	if err != nil || published.Duplicate { // What is stored proves that the key was good.
		err = cmp.Or(a.prove(ctx, c), err)
	}
	if err != nil {
		return nil, err
	}
	return &publishOutput{publishedShown(published)}, nil
}

func (a *api) publish(ctx context.Context, c call) (events.Published, error) {
	object, err := objectIn(c.body)
	if err != nil {
		return events.Published{}, err
	}
	event, err := decodeEvent(object)
	if err != nil {
		return events.Published{}, err
	}
	event.IdempotencyKey = c.key
	return a.publisher.Publish(ctx, c.project(), c.actor.ID, event)
}

var eventFields = []string{"type", "data", "id", "subscriber", "occurredAt", "expiresAt", "metadata"}

// decodeEvent reads one event. It is decode written out: every publish comes through here, and the data must stay the bytes
// that came, which are a part of object.
func decodeEvent(object []byte) (events.New, error) {
	var n events.New
	var bad store.InvalidError
	var seen [8]bool
	for m := range membersOf(object) {
		if len(bad.Fields) >= maxFieldErrors {
			break
		}
		place, absent := -1, string(m.value) == "null" && m.name != "data"
		switch m.name {
		case "type":
			place = 0
			n.Type = readText(m.value, m.name, &bad)
		case "data":
			place = 1
			n.Data, n.Checked = m.value, true // objectIn has looked at it.
		case "id":
			place = 2
			n.ID = readName(m, absent, &bad)
		case "subscriber":
			place = 3
			n.Subscriber = readName(m, absent, &bad)
		case "occurredAt":
			place = 4
			if !absent {
				n.OccurredAt = readInstant(m.value, m.name, &bad)
			}
		case "expiresAt":
			place = 5
			if !absent {
				n.ExpiresAt = readInstant(m.value, m.name, &bad)
			}
		case "metadata":
			place = 6
			n.Metadata = readTexts(m.value, m.name, &bad)
		default:
			bad.Add(m.name, unknownSentence(m.name, eventFields))
			continue
		}
		if seen[place] {
			bad.Add(m.name, givenTwice)
		}
		seen[place] = true
	}
	return n, bad.OrNil()
}

// readName reads an id or a subscriber. An empty one is refused: its publisher believes to have given one.
func readName(m member, absent bool, bad *store.InvalidError) string {
	if absent {
		return ""
	}
	name := readText(m.value, m.name, bad)
	if name == "" && len(m.value) == len(`""`) {
		bad.Add(m.name, "This is empty. Give 1 to 128 characters, or leave it out.")
	}
	return name
}

// batchShown answers a batch.
type batchShown struct {
	Data     []batchItem `json:"data" nullable:"false" doc:"One answer for each event, in the order given."`
	Accepted int         `json:"accepted" doc:"How many events are stored, now or before." example:"1"`
	Refused  int         `json:"refused" doc:"How many were refused." example:"0"`
}

// batchItem answers one event of a batch: with its id, or with what is wrong with it.
type batchItem struct {
	ID        string       `json:"id,omitempty" doc:"The event's id." example:"order-1042-created"`
	Duplicate *bool        `json:"duplicate,omitempty" doc:"The event was there already, with the same content." example:"false"`
	Error     *itemProblem `json:"error,omitempty" doc:"Why the event was refused."`
}

// itemProblem is a problem of one event of a batch.
type itemProblem struct {
	Status int            `json:"status" doc:"The status that the event alone would have got." example:"422"`
	Code   string         `json:"code" example:"invalid"`
	Detail string         `json:"detail" example:"type: Use letters, digits and underscores in parts joined by dots or hyphens, such as order.created; 128 characters at most."`
	Errors []fieldProblem `json:"errors" nullable:"false"`
}

type publishBatchOutput struct{ Body batchShown }

// eventBytes is about what an event takes in a batch, for the gate: how many there are is known only when most of the work is done.
const eventBytes = 256

func (a *api) publishEvents(ctx context.Context, c call, _ *IdempotentInput) (*publishBatchOutput, error) {
	defer a.gate.Enter(ctx, len(c.body)/eventBytes)()
	items, err := batchIn(c.body)
	if err != nil {
		return nil, err
	}
	shown := make([]batchItem, len(items))
	batch, places := make([]events.New, 0, len(items)), make([]int, 0, len(items))
	for i, item := range items {
		event, err := decodeItem(item)
		if err != nil {
			shown[i] = refusedItem(err)
			continue
		}
		if c.key != "" && event.ID == "" {
			event.IdempotencyKey = fmt.Sprintf("%s [%d]", c.key, i)
		}
		batch, places = append(batch, event), append(places, i)
	}
	if len(batch) > 0 {
		results, err := a.publisher.PublishBatch(ctx, c.project(), batch)
		if err != nil {
			return nil, err
		}
		for i, r := range results {
			shown[places[i]] = showResult(r)
		}
	}
	return &publishBatchOutput{countBatch(shown)}, nil
}

// batchIn reads the events of a batch, each as it stands in the body.
func batchIn(body []byte) ([][]byte, error) {
	object, err := objectIn(body)
	if err != nil {
		return nil, err
	}
	var bad store.InvalidError
	var array []byte
	for m := range membersOf(object) {
		switch {
		case len(bad.Fields) >= maxFieldErrors:
			return nil, &bad
		case m.name != "events":
			bad.Add(m.name, unknownSentence(m.name, []string{"events"}))
		case array != nil:
			bad.Add(m.name, givenTwice)
		default:
			array = m.value
		}
	}
	if array == nil || array[0] != '[' {
		bad.Add("events", "Give a list of events.")
	}
	if err := bad.OrNil(); err != nil {
		return nil, err
	}
	items := make([][]byte, 0, 16)
	for item := range elementsOf(array) {
		if len(items) == events.MaxBatch {
			return nil, store.Invalid("events", fmt.Sprintf("Give %d events at most.", events.MaxBatch))
		}
		items = append(items, item)
	}
	if len(items) == 0 {
		return nil, store.Invalid("events", "Give at least one event.")
	}
	return items, nil
}

func decodeItem(item []byte) (events.New, error) {
	if item[0] != '{' {
		return events.New{}, &malformedError{"An event must be a JSON object, in braces."}
	}
	return decodeEvent(item)
}

func showResult(r events.Result) batchItem {
	if r.Err != nil {
		return refusedItem(r.Err)
	}
	return batchItem{ID: r.ID, Duplicate: &r.Duplicate}
}

func refusedItem(err error) batchItem {
	p := problemFor(err)
	return batchItem{Error: &itemProblem{Status: p.Status, Code: p.Code, Detail: p.Detail, Errors: p.Errors}}
}

func countBatch(items []batchItem) batchShown {
	shown := batchShown{Data: items}
	for _, item := range items {
		if item.Error != nil {
			shown.Refused++
		}
	}
	shown.Accepted = len(items) - shown.Refused
	return shown
}
