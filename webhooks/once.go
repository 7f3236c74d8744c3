package webhooks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/events"
	"entrega/internal/store"
)

// once asks that an action be done once, however often it is asked for with the same key.
type once struct {
	// key is the caller's; empty means that nobody asked.
	key string
	// action and request are all that is asked: another request with the key is a mistake.
	action  string
	request any
	// The action is about an endpoint or an event, one of them. The key is kept as long as that is.
	endpointID, eventID string
}

// onceTx does an action as part of the caller's transaction, or gives the answer that it had when it was first done with the
// key. The answer is kept as JSON, so it must hold no secret. Of several at once with one key, one does it and the others wait
// for its commit. Another request with the key is a *store.ConflictError idempotency_mismatch; an action that fails keeps
// nothing.
func onceTx[T any](ctx context.Context, tx pgx.Tx, project string, o once, do func() (T, error)) (answer T, duplicate bool, err error) {
	if o.key == "" {
		answer, err = do()
		return answer, false, err
	}
	hash, err := o.hash()
	if err != nil {
		return answer, false, err
	}
	mine, err := o.claimTx(ctx, tx, project, hash)
	if err != nil {
		return answer, false, err
	}
	if !mine {
		answer, err = firstAnswer[T](ctx, tx, project, o.key, hash)
		return answer, err == nil, err
	}
	if answer, err = do(); err != nil {
		return answer, false, err
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return answer, false, fmt.Errorf("encode an answer to keep: %w", err)
	}
	_, err = tx.Exec(ctx, `update idempotency_keys set answer = $3 where project_id = $1 and key = $2`, project, o.key, json.RawMessage(raw))
	if err != nil {
		return answer, false, fmt.Errorf("keep the answer of an idempotency key: %w", err)
	}
	return answer, false, nil
}

func (o once) hash() ([]byte, error) {
	raw, err := json.Marshal([]any{o.action, o.endpointID, o.eventID, o.request})
	if err != nil {
		return nil, fmt.Errorf("encode a request to compare: %w", err)
	}
	sum := sha256.Sum256(raw)
	return sum[:], nil
}

// claimTx reports whether the key was free. While somebody else's transaction holds it, it waits for that to end. What the
// action is about must be the project's. It is locked first, as the action itself would: the key's row refers to it, and two
// actions that both held it by that would wait for each other.
func (o once) claimTx(ctx context.Context, tx pgx.Tx, project string, hash []byte) (bool, error) {
	endpoint, event, err := o.lockSubjectTx(ctx, tx, project)
	if err != nil {
		return false, fmt.Errorf("find what an idempotency key is about: %w", store.MapError(err))
	}
	tag, err := tx.Exec(ctx, `
		insert into idempotency_keys (project_id, key, request_hash, answer, endpoint_id, event_seq)
		values ($1, $2, $3, 'null', $4, $5) on conflict do nothing`, project, o.key, hash, endpoint, event)
	if err != nil {
		return false, fmt.Errorf("claim an idempotency key: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

func (o once) lockSubjectTx(ctx context.Context, tx pgx.Tx, project string) (endpoint *string, event *int64, err error) {
	if o.endpointID != "" {
		err = tx.QueryRow(ctx, `select id from endpoints where project_id = $1 and id = $2 and deleted_at is null for update`, project, o.endpointID).Scan(&endpoint)
		return endpoint, nil, err
	}
	err = tx.QueryRow(ctx, `select seq from events where project_id = $1 and id = $2 for update`, project, o.eventID).Scan(&event)
	return nil, event, err
}

// firstAnswer reads what the action answered when it was done. Its statement is a new one, and so sees what was committed while
// the claim waited.
func firstAnswer[T any](ctx context.Context, tx pgx.Tx, project, key string, hash []byte) (answer T, err error) {
	var kept, raw []byte
	err = tx.QueryRow(ctx, `select request_hash, answer from idempotency_keys where project_id = $1 and key = $2`, project, key).Scan(&kept, &raw)
	if err != nil {
		return answer, fmt.Errorf("read an idempotency key: %w", store.MapError(err))
	}
	if !bytes.Equal(kept, hash) {
		return answer, &store.ConflictError{Code: events.CodeMismatch,
			Sentence: "This idempotency key was used before for another request. Use a new key for a new request."}
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return answer, fmt.Errorf("decode a kept answer: %w", err)
	}
	return answer, nil
}
