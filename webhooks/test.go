package webhooks

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
)

// TestEventType is the type of the events that SendTest publishes. Receivers can tell them by it.
const TestEventType = "entrega.test"

// Test is a test event on its way.
type Test struct {
	EventID string `json:"eventId"`
	TaskID  int64  `json:"taskId"`
	// Duplicate says that the idempotency key was used before; no further test was sent.
	Duplicate bool `json:"-"`
}

// SendTest publishes a real event and delivers it to one endpoint, whatever types it takes, also while it fails or is paused
// by a person. It is tried once. A disabled endpoint is a *store.ConflictError endpoint_disabled.
func (s *Endpoints) SendTest(ctx context.Context, actor tenant.Actor, id string) (Test, error) {
	return s.SendTestOnce(ctx, actor, id, "")
}

// SendTestOnce is SendTest with an idempotency key: a second one with it answers the first test. An empty key is none.
func (s *Endpoints) SendTestOnce(ctx context.Context, actor tenant.Actor, id, key string) (Test, error) {
	if err := actor.RequireIn(actor.ProjectID, tenant.PermSendTest); err != nil {
		return Test{}, err
	}
	var test Test
	err := store.InTx(ctx, s.pool, func(tx pgx.Tx) (err error) {
		o := once{key: key, action: "endpoint.test", endpointID: id}
		test, test.Duplicate, err = onceTx(ctx, tx, actor.ProjectID, o, func() (Test, error) { return s.sendTestTx(ctx, tx, actor, id) })
		return err
	})
	if err != nil {
		return Test{}, fmt.Errorf("send a test: %w", err)
	}
	return test, nil
}

func (s *Endpoints) sendTestTx(ctx context.Context, tx pgx.Tx, actor tenant.Actor, id string) (Test, error) {
	project := actor.ProjectID
	test := Test{EventID: store.NewID("event")}
	e, err := s.lockEndpointTx(ctx, tx, project, id)
	if err != nil {
		return Test{}, err
	}
	if e.DisabledAt != nil {
		return Test{}, errDisabled()
	}
	if err := publishTestTx(ctx, tx, project, id, test.EventID); err != nil {
		return Test{}, err
	}
	test.TaskID, err = jobs.InsertTx(ctx, s.client, tx, Deliver, DeliverArgs{ProjectID: project, EventID: test.EventID, EndpointID: id},
		jobs.Insert{ProjectID: project, EndpointID: id, EventID: test.EventID, Trigger: jobs.TriggerTest,
			Label: map[string]string{"event_type": TestEventType, "host": hostOf(e.URL)}})
	if err != nil {
		return Test{}, err
	}
	return test, tenant.Audit(ctx, tx, actor, "endpoint.test", "endpoint", id, map[string]any{"eventId": test.EventID})
}

// publishTestTx stores the event as one that was fanned out already: the relay must not offer it to other endpoints.
func publishTestTx(ctx context.Context, tx pgx.Tx, project, endpointID, eventID string) error {
	data, err := json.Marshal(map[string]string{"message": "This is a test from Entrega.", "endpointId": endpointID})
	if err != nil {
		return fmt.Errorf("encode the test's data: %w", err)
	}
	batch := &pgx.Batch{}
	batch.Queue(`insert into events (project_id, id, type, data) values ($1, $2, $3, $4)`, project, eventID, TestEventType, data)
	batch.Queue(`
		with done as (
			delete from event_outbox where seq = (select seq from events where project_id = $1 and id = $2) returning seq
		)
		insert into event_outcomes (seq, fanned_out_at, considered_at, deliveries) select seq, now(), now(), 1 from done`, project, eventID)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("store the test event: %w", err)
	}
	return nil
}

// BeforeRetry refuses a person's retry of a delivery whose endpoint takes nothing: package jobs asks it, in the retry's
// transaction. The refusal is a *store.ConflictError endpoint_disabled.
func BeforeRetry(ctx context.Context, tx pgx.Tx, task jobs.Task) error {
	if task.Kind != Deliver.Name {
		return nil
	}
	var usable, deleted bool
	err := tx.QueryRow(ctx, `
		select coalesce(bool_and(disabled_at is null and deleted_at is null), false), coalesce(bool_or(deleted_at is not null), true)
		from endpoints where project_id = $1 and id = $2`, task.ProjectID, task.EndpointID).Scan(&usable, &deleted)
	switch {
	case err != nil:
		return fmt.Errorf("look at the endpoint of a delivery: %w", err)
	case usable:
		return nil
	case deleted:
		return &store.ConflictError{Code: CodeEndpointDisabled, Sentence: "The endpoint of this delivery was deleted; there is nowhere to send it."}
	default:
		return errDisabled()
	}
}
