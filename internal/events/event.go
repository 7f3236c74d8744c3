package events

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"entrega/internal/store"
)

// Event is what happened in a project, and how far its delivery has come. Instants are UTC; zero means "not given" or
// "not yet".
type Event struct {
	ProjectID string
	// ID is the webhook-id.
	ID string
	// Seq grows with each publish of the installation. A transaction that commits late may show a lower one after a higher.
	Seq        int64
	Type       string
	Subscriber string
	// DataBytes is the size of the payload.
	DataBytes int
	// Data is the payload byte for byte as published; nil in lists.
	Data       []byte
	OccurredAt time.Time
	ExpiresAt  time.Time
	Metadata   map[string]string
	CreatedAt  time.Time

	// FannedOutAt is when the relay put the fan-out into the queue.
	FannedOutAt time.Time
	// RelayFailures, RelayError and RelayAfter tell of attempts to do so that failed, and when the next is due.
	RelayFailures int
	RelayError    string
	RelayAfter    time.Time
	// PoisonedAt is when the relay gave up; Requeue takes the event up again.
	PoisonedAt time.Time
	// ConsideredAt is when the fan-out had looked at every endpoint.
	ConsideredAt time.Time
	// Deliveries counts the deliveries that the fan-out made.
	Deliveries int
	// Skipped says why endpoints got none; in lists it has only the counts.
	Skipped Skipped
}

// Skipped tells which endpoints a fan-out considered and passed over. It is stored as JSON beside the event.
type Skipped struct {
	// Counts has the number of endpoints by reason.
	Counts map[string]int `json:"counts,omitempty"`
	// Endpoints names them, 200 at most.
	Endpoints []SkippedEndpoint `json:"endpoints,omitempty"`
}

// SkippedEndpoint is one endpoint that got nothing.
type SkippedEndpoint struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// Timestamp is when the event happened: as its publisher says, else when it was published.
func (e Event) Timestamp() time.Time {
	if e.OccurredAt.IsZero() {
		return e.CreatedAt
	}
	return e.OccurredAt
}

// EventByID reads an event with its payload.
func EventByID(ctx context.Context, db store.DB, project, id string) (Event, error) {
	return readEvent(ctx, db, project, id, "e.data")
}

// readEvent reads an event with an expression for its payload.
func readEvent(ctx context.Context, db store.DB, project, id, data string) (Event, error) {
	rows, err := db.Query(ctx, `
		select `+slimColumns+`, o.skipped, `+data+`
		from `+eventTables+` where e.project_id = $1 and e.id = $2`, project, id)
	if err != nil {
		return Event{}, fmt.Errorf("read event: %w", err)
	}
	e, err := pgx.CollectExactlyOneRow(rows, scanEvent)
	if err != nil {
		return Event{}, fmt.Errorf("read event: %w", store.MapError(err))
	}
	return e, nil
}

// PayloadByID reads only the bytes that were published. Only the index of ids fits the statement, whatever the table was like when its
// plan was made.
func PayloadByID(ctx context.Context, db store.DB, project, id string) ([]byte, error) {
	var data []byte
	err := db.QueryRow(ctx, `
		select data from events where project_id = $1 and id ~>=~ $2 and id ~<=~ $2 order by id using ~<~ limit 1`, project, id).Scan(&data)
	if err != nil {
		return nil, fmt.Errorf("read payload: %w", store.MapError(err))
	}
	return data, nil
}

// slimColumns are what scanEvent expects first, of eventTables; a statement adds what it wants of skipped and data. octet_length reads a
// payload's size without fetching it.
const slimColumns = `e.project_id, e.id, e.seq, e.type, e.subscriber, octet_length(e.data), e.occurred_at, e.expires_at, e.metadata, e.created_at,
		coalesce(w.fanned_out_at, o.fanned_out_at), coalesce(w.relay_failures, 0), w.relay_error, w.relay_after, w.poisoned_at,
		o.considered_at, coalesce(o.deliveries, 0)`

// eventTables are an event, its row in the outbox as long as it was not considered, and what came of it then.
const eventTables = `events e left join event_outbox w on w.seq = e.seq left join event_outcomes o on o.seq = e.seq`

func scanEvent(row pgx.CollectableRow) (Event, error) {
	var e Event
	instants := []*time.Time{&e.OccurredAt, &e.ExpiresAt, &e.CreatedAt, &e.FannedOutAt, &e.RelayAfter, &e.PoisonedAt, &e.ConsideredAt}
	var skipped *Skipped
	err := row.Scan(&e.ProjectID, &e.ID, &e.Seq, &e.Type, (*zeronull.Text)(&e.Subscriber), &e.DataBytes,
		orZero(&e.OccurredAt), orZero(&e.ExpiresAt), &e.Metadata, &e.CreatedAt,
		orZero(&e.FannedOutAt), &e.RelayFailures, (*zeronull.Text)(&e.RelayError), orZero(&e.RelayAfter), orZero(&e.PoisonedAt),
		orZero(&e.ConsideredAt), &e.Deliveries, &skipped, &e.Data)
	if err != nil {
		return Event{}, err
	}
	for _, t := range instants {
		*t = t.UTC()
	}
	if skipped != nil {
		e.Skipped = *skipped
	}
	return e, nil
}

// orZero reads NULL as the zero time.
func orZero(t *time.Time) *zeronull.Timestamptz { return (*zeronull.Timestamptz)(t) }
