package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

const (
	// DefaultOverlapHours is how long a rotated secret goes on signing when nobody says.
	DefaultOverlapHours = 24
	maxOverlapHours     = 168
	// maxLiveSecrets bounds the length of the signature header.
	maxLiveSecrets = 5
)

// SecretInfo is what may be shown of a signing secret later on.
type SecretInfo struct {
	ID        string    `db:"id"`
	CreatedAt time.Time `db:"created_at"`
	// ExpiresAt is when a rotated secret stops signing; nil for the newest.
	ExpiresAt *time.Time `db:"expires_at"`
}

// Rotation asks for a new secret.
type Rotation struct {
	// OverlapHours is how long the old secrets go on signing, 0 to 168; nil means 24.
	OverlapHours *int
	// Secret is the caller's own, whsec_ and base64; empty makes one.
	Secret string
	// IdempotencyKey makes a second rotation with it change nothing.
	IdempotencyKey string
}

// RotateSecret gives an endpoint a new secret and returns it whole, this once; "" when its idempotency key was used before,
// since secrets are not shown again. The old ones sign beside it until the overlap ends, so that a receiver can change over
// without losing a message; one that ends earlier already is not prolonged.
func (s *Endpoints) RotateSecret(ctx context.Context, actor tenant.Actor, id string, r Rotation) (string, error) {
	project := actor.ProjectID
	if err := actor.RequireIn(project, tenant.PermManageEndpoints); err != nil {
		return "", err
	}
	hours := DefaultOverlapHours
	if r.OverlapHours != nil {
		hours = *r.OverlapHours
	}
	var overlapErr error
	if hours < 0 || hours > maxOverlapHours {
		overlapErr = store.Invalid("overlapHours", fmt.Sprintf("Give a number of hours from 0 to %d.", maxOverlapHours))
	}
	key, secretErr := ownOrNewKey(r.Secret)
	if err := joinInvalid(overlapErr, secretErr); err != nil {
		return "", err
	}

	duplicate := false
	err := store.InTx(ctx, s.pool, func(tx pgx.Tx) (err error) {
		o := once{key: r.IdempotencyKey, action: "endpoint.rotate_secret", endpointID: id, request: []any{hours, r.Secret}}
		_, duplicate, err = onceTx(ctx, tx, project, o, func() (struct{}, error) {
			return struct{}{}, s.rotateTx(ctx, tx, actor, id, key, hours)
		})
		return err
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("rotate a secret: %w", err)
	case duplicate:
		return "", nil
	default:
		outlast(ctx)
		return formatSecret(key), nil
	}
}

func (s *Endpoints) rotateTx(ctx context.Context, tx pgx.Tx, actor tenant.Actor, id string, key []byte, hours int) error {
	project := actor.ProjectID
	if _, err := s.lockEndpointTx(ctx, tx, project, id); err != nil {
		return err
	}
	if err := s.expireSecretsTx(ctx, tx, project, id, s.now().Add(time.Duration(hours)*time.Hour)); err != nil {
		return err
	}
	if err := s.insertSecretTx(ctx, tx, project, id, key); err != nil {
		return err
	}
	if err := touchTx(ctx, tx, project, id); err != nil {
		return err
	}
	return tenant.Audit(ctx, tx, actor, "endpoint.rotate_secret", "endpoint", id, map[string]any{"overlapHours": hours})
}

// expireSecretsTx lets the present secrets end, forgets those that have ended, and refuses one more when too many would sign.
func (s *Endpoints) expireSecretsTx(ctx context.Context, tx pgx.Tx, project, id string, at time.Time) error {
	if _, err := tx.Exec(ctx, `delete from endpoint_secrets where project_id = $1 and endpoint_id = $2 and expires_at <= $3`, project, id, s.now()); err != nil {
		return fmt.Errorf("forget ended secrets: %w", err)
	}
	tag, err := tx.Exec(ctx, `
		update endpoint_secrets set expires_at = least(coalesce(expires_at, 'infinity'), $3)
		where project_id = $1 and endpoint_id = $2`, project, id, at)
	if err != nil {
		return fmt.Errorf("let secrets end: %w", err)
	}
	if tag.RowsAffected() >= maxLiveSecrets && at.After(s.now()) {
		return &store.ConflictError{Code: "too_many_secrets", Sentence: fmt.Sprintf(
			"%d secrets of this endpoint sign already. Wait until one ends, or rotate with an overlap of 0 hours, which ends them all.", tag.RowsAffected())}
	}
	return nil
}

func (s *Endpoints) insertSecretTx(ctx context.Context, tx pgx.Tx, project, endpointID string, key []byte) error {
	id := store.NewID("secret")
	_, err := tx.Exec(ctx, `insert into endpoint_secrets (id, endpoint_id, project_id, sealed, created_at) values ($1, $2, $3, $4, clock_timestamp())`,
		id, endpointID, project, s.box.Seal(key, sealTableSecrets, id))
	if err != nil {
		return fmt.Errorf("insert a secret: %w", err)
	}
	return nil
}

// ListSecrets lists the secrets that sign for an endpoint, newest first, without what they are.
func (s *Endpoints) ListSecrets(ctx context.Context, db store.DB, project, id string) ([]SecretInfo, error) {
	rows, err := db.Query(ctx, `
		select id, created_at, expires_at from endpoint_secrets
		where project_id = $1 and endpoint_id = $2 and (expires_at is null or expires_at > $3)
		order by created_at desc, id desc`, project, id, s.now())
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	secrets, err := pgx.CollectRows(rows, pgx.RowToStructByName[SecretInfo])
	if err != nil {
		return nil, fmt.Errorf("list secrets: %w", err)
	}
	return secrets, nil
}

// touchTx tells every node's memory that the endpoint changed.
func touchTx(ctx context.Context, tx pgx.Tx, project, id string) error {
	_, err := tx.Exec(ctx, `update endpoints set version = version + 1, updated_at = now() where project_id = $1 and id = $2`, project, id)
	if err != nil {
		return fmt.Errorf("raise the version: %w", err)
	}
	return nil
}

func ownOrNewKey(text string) ([]byte, error) {
	if text == "" {
		return newSecretKey(), nil
	}
	key, err := parseSecret(text)
	if err != nil {
		return nil, store.Invalid("secret", secretRule)
	}
	return key, nil
}
