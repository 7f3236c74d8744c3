package webhooks_test

import (
	"strings"
	"testing"

	"entrega/internal/store"
	"entrega/jobs"
	"entrega/webhooks"
)

func TestRotate_BothSecretsVerifyDuringTheOverlapAndTheOldNeverAfter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.receiver()
	r.answers(inTurn(500, 500, 500))
	e := b.create(webhooks.Settings{URL: r.url})
	b.start()
	b.publish("order-1")
	id := b.delivery("order-1", e.Endpoint.ID).ID
	b.reach(id, jobs.StateRetryable, 1)

	second, err := b.endpoints.RotateSecret(b.ctx, b.owner, e.Endpoint.ID, webhooks.Rotation{})
	if err != nil {
		t.Fatal(err)
	}
	b.due(id)
	b.reach(id, jobs.StateRetryable, 2)

	b.exec(`with moved as (update endpoint_secrets set expires_at = now() where endpoint_id = $1 and expires_at is not null)
		update endpoints set version = version + 1 where id = $1`, e.Endpoint.ID)
	b.due(id)
	b.reach(id, jobs.StateRetryable, 3)

	none := 0
	third, err := b.endpoints.RotateSecret(b.ctx, b.owner, e.Endpoint.ID, webhooks.Rotation{OverlapHours: &none})
	if err != nil {
		t.Fatal(err)
	}
	b.due(id)
	b.reach(id, jobs.StateCompleted, 4)

	requests := r.got()
	wantVerified(t, e.Secret, requests[0])
	wantRefused(t, second, requests[0])
	wantVerified(t, e.Secret, requests[1])
	wantVerified(t, second, requests[1])
	if got := strings.Count(requests[1].Header.Get("webhook-signature"), "v1,"); got != 2 {
		t.Errorf("%d signatures during the overlap, want 2", got)
	}
	wantRefused(t, e.Secret, requests[2])
	wantVerified(t, second, requests[2])
	wantRefused(t, second, requests[3])
	wantVerified(t, third, requests[3])
}

func TestRotate_BoundsAndOwnSecret(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.create(webhooks.Settings{URL: "http://127.0.0.1:8000/"})
	rotate := func(hours int, secret string) (string, error) {
		return b.endpoints.RotateSecret(b.ctx, b.owner, e.Endpoint.ID, webhooks.Rotation{OverlapHours: &hours, Secret: secret})
	}
	for _, hours := range []int{-1, 169} {
		if _, err := rotate(hours, ""); sentence(err, "overlapHours") == "" {
			t.Errorf("%d hours: %v", hours, err)
		}
	}
	if _, err := rotate(1, "whsec_short"); sentence(err, "secret") == "" {
		t.Errorf("a short secret: %v", err)
	}
	const own = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	if got, err := rotate(168, own); err != nil || got != own {
		t.Errorf("own secret: %q, %v", got, err)
	}
	for range 3 {
		if _, err := rotate(168, ""); err != nil {
			t.Fatal(err)
		}
	}
	_, err := rotate(168, "")
	wantConflict(t, err, "too_many_secrets")
	if _, err := rotate(0, ""); err != nil {
		t.Errorf("a rotation that ends all others: %v", err)
	}
	secrets, err := b.endpoints.ListSecrets(b.ctx, b.pool, b.project, e.Endpoint.ID)
	if err != nil || len(secrets) != 1 || secrets[0].ExpiresAt != nil {
		t.Errorf("live secrets: %+v, %v", secrets, err)
	}
}

func TestSecret_IsSealedAtRest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.create(webhooks.Settings{URL: "http://127.0.0.1:8000/", Headers: map[string]string{"X-Api-Key": "topsecret"}})
	row := value[string](b, `select encode(s.sealed, 'escape') || encode(e.headers, 'escape') || e::text || s::text
		from endpoint_secrets s join endpoints e on e.id = s.endpoint_id where e.id = $1`, e.Endpoint.ID)
	if strings.Contains(row, "topsecret") || strings.Contains(row, strings.TrimPrefix(e.Secret, "whsec_")) {
		t.Error("a secret is readable in the database")
	}
	if got := b.endpoint(e.Endpoint.ID).Headers["X-Api-Key"]; got != "topsecret" {
		t.Errorf("the header opens to %q", got)
	}
}

// sentence is what an error says about a field, "" when it says nothing.
func sentence(err error, field string) string {
	var bad *store.InvalidError
	if !asInvalid(err, &bad) {
		return ""
	}
	return bad.Sentence(field)
}
