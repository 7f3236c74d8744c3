package events

import (
	"context"
	"time"

	"entrega/internal/store"
)

// CodeMismatch is the code of the conflict between a publish and an earlier one with the same id or key and other content.
const CodeMismatch = "idempotency_mismatch"

// Published answers a publish.
type Published struct {
	ID string
	// Duplicate says that the event was there already, with the same content. Nothing was stored this time.
	Duplicate bool
}

// Publish stores an event, which also queues it for delivery and wakes the relays once db's transaction commits. On a pool
// that is one statement and one round trip.
//
// An id or idempotency key that the project used before answers the first event when the content is the same, and is a
// *store.ConflictError "idempotency_mismatch" otherwise. Of any number of publishers at once with one id, one stores the
// event and the others wait for its commit. What breaks a rule is a *store.InvalidError; an unknown project is
// store.ErrNotFound. None of them spoils a caller's transaction, which must be READ COMMITTED.
func Publish(ctx context.Context, db store.DB, project string, n New) (Published, error) {
	if err := n.check(); err != nil {
		return Published{}, err
	}
	return publishPost(ctx, db, post{row: n.row(project), expired: n.expired(time.Now())})
}

// publishPost stores one event, or answers it by what was there before. One that has expired is for answering only: a
// publisher who asks again after the expiry must still get the first answer.
func publishPost(ctx context.Context, db store.DB, p post) (Published, error) {
	if !p.expired {
		stored, err := insertRows(ctx, db, []post{p}, false)
		if err != nil {
			return Published{}, err
		}
		if len(stored) > 0 {
			return Published{ID: p.row.id}, nil
		}
	}
	earlier, err := findEarlier(ctx, db, []post{p})
	if err != nil {
		return Published{}, err
	}
	return earlier.answer(p.row, p.expired)
}

// row is an event as the table will hold it.
type row struct {
	project string
	id      string
	// ownID says that the publisher chose the id; a fresh one can meet no earlier event.
	ownID      bool
	key        *string
	typ        string
	subscriber *string
	data       []byte
	occurredAt *time.Time
	expiresAt  *time.Time
	metadata   map[string]string
}
