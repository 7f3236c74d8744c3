package webhooks

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// DisabledReason is the recorded word for why an endpoint is disabled.
type DisabledReason string

// The reasons for which an endpoint is disabled.
const (
	// DisabledGone is a receiver that wants nothing more, by 410.
	DisabledGone DisabledReason = "gone"
	// DisabledFailing is a rule on how long every attempt failed.
	DisabledFailing DisabledReason = "failing"
	// DisabledFailuresInARow is a rule on how many attempts failed.
	DisabledFailuresInARow DisabledReason = "failures_in_a_row"
	// DisabledManual is a person's or a program's wish.
	DisabledManual DisabledReason = "manual"
)

// The codes of conflicts that the state of an endpoint leads to.
const (
	CodeEndpointDisabled = "endpoint_disabled"
	CodeNotDisabled      = "not_disabled"
)

const maxReasonLength = 500

// errDisabled answers what a disabled endpoint cannot do.
func errDisabled() error {
	return &store.ConflictError{Code: CodeEndpointDisabled,
		Sentence: "This endpoint is disabled. Reactivate it first; what it missed meanwhile can then be redelivered."}
}

// DisableTx disables an endpoint of the actor's project with its audit row, as part of the caller's transaction, and reports
// whether it did so: one that is disabled or deleted already keeps its first reason. The caller has seen to what the actor may do. What
// waited for the endpoint to recover gets its turn at once, to end.
func DisableTx(ctx context.Context, tx pgx.Tx, actor tenant.Actor, id string, reason DisabledReason, detail string) (bool, error) {
	if err := lockLaneTx(ctx, tx, actor.ProjectID, id); err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, `
		update endpoints set disabled_at = now(), disabled_reason = $3, disabled_detail = $4, version = version + 1, updated_at = now()
		where project_id = $1 and id = $2 and disabled_at is null and deleted_at is null`, actor.ProjectID, id, string(reason), detail)
	if err != nil {
		return false, fmt.Errorf("disable an endpoint: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return false, nil
	}
	if err := wakeTx(ctx, tx, id); err != nil {
		return false, err
	}
	return true, tenant.Audit(ctx, tx, actor, "endpoint.disable", "endpoint", id, map[string]any{"reason": reason, "detail": detail})
}

// Disable stops all deliveries to an endpoint, with a reason in the actor's words. One that is disabled already stays as it is.
func (s *Endpoints) Disable(ctx context.Context, actor tenant.Actor, id, reason string) (Endpoint, error) {
	reason, err := cleanReason(reason)
	if err != nil {
		return Endpoint{}, err
	}
	return s.changeState(ctx, actor, tenant.PermManageEndpoints, id, func(tx pgx.Tx) error {
		_, err := DisableTx(ctx, tx, actor, id, DisabledManual, reason)
		return err
	})
}

// Reactivate enables a disabled endpoint. Its row of failures and its pause start anew; what it missed is for a redelivery to
// bring. An endpoint that is not disabled is a *store.ConflictError not_disabled.
func (s *Endpoints) Reactivate(ctx context.Context, actor tenant.Actor, id, reason string) (Endpoint, error) {
	reason, err := cleanReason(reason)
	if err != nil {
		return Endpoint{}, err
	}
	return s.changeState(ctx, actor, tenant.PermReactivate, id, func(tx pgx.Tx) error {
		if err := lockLaneTx(ctx, tx, actor.ProjectID, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			update endpoint_lanes set failing_since = null, failures_in_a_row = 0, pause_until = null
			where project_id = $1 and endpoint_id = $2`, actor.ProjectID, id); err != nil {
			return fmt.Errorf("clear its health: %w", err)
		}
		was, err := enableTx(ctx, tx, actor.ProjectID, id)
		if err != nil {
			return err
		}
		if err := s.resumeTx(ctx, tx, id); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, actor, "endpoint.reactivate", "endpoint", id, map[string]any{"reason": reason, "was": was})
	})
}

// enableTx takes the mark away and says what it was for.
func enableTx(ctx context.Context, tx pgx.Tx, project, id string) (DisabledReason, error) {
	var was *string
	err := tx.QueryRow(ctx, `select disabled_reason from endpoints where project_id = $1 and id = $2 and deleted_at is null for update`, project, id).Scan(&was)
	if err != nil {
		return "", store.MapError(err)
	}
	if was == nil {
		return "", &store.ConflictError{Code: CodeNotDisabled, Sentence: "This endpoint is not disabled."}
	}
	if _, err := tx.Exec(ctx, `
		update endpoints set disabled_at = null, disabled_reason = null, disabled_detail = null, version = version + 1, updated_at = now()
		where project_id = $1 and id = $2`, project, id); err != nil {
		return "", fmt.Errorf("enable: %w", err)
	}
	return DisabledReason(*was), nil
}

// Pause holds deliveries back until Unpause. Nothing is lost and no attempt is spent; tests are still sent.
func (s *Endpoints) Pause(ctx context.Context, actor tenant.Actor, id string) (Endpoint, error) {
	return s.changeState(ctx, actor, tenant.PermPauseEndpoint, id, func(tx pgx.Tx) error {
		return setPausedTx(ctx, tx, actor, id, "endpoint.pause", `paused_at = now()`, `paused_at is null`)
	})
}

// Unpause lets deliveries go on at once.
func (s *Endpoints) Unpause(ctx context.Context, actor tenant.Actor, id string) (Endpoint, error) {
	return s.changeState(ctx, actor, tenant.PermPauseEndpoint, id, func(tx pgx.Tx) error {
		if err := lockLaneTx(ctx, tx, actor.ProjectID, id); err != nil {
			return err
		}
		if err := setPausedTx(ctx, tx, actor, id, "endpoint.unpause", `paused_at = null`, `paused_at is not null`); err != nil {
			return err
		}
		return s.resumeTx(ctx, tx, id)
	})
}

// setPausedTx writes and audits a change; what is so already is left alone.
func setPausedTx(ctx context.Context, tx pgx.Tx, actor tenant.Actor, id, action, set, unless string) error {
	tag, err := tx.Exec(ctx, `update endpoints set `+set+`, version = version + 1, updated_at = now()
		where project_id = $1 and id = $2 and deleted_at is null and `+unless, actor.ProjectID, id)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return tenant.Audit(ctx, tx, actor, action, "endpoint", id, nil)
}

// changeState runs a change in one transaction and returns the endpoint as it is then.
func (s *Endpoints) changeState(ctx context.Context, actor tenant.Actor, p tenant.Permission, id string, change func(tx pgx.Tx) error) (Endpoint, error) {
	project := actor.ProjectID
	if err := actor.RequireIn(project, p); err != nil {
		return Endpoint{}, err
	}
	var e Endpoint
	err := store.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		var err error
		e, err = s.EndpointByID(ctx, tx, project, id)
		return err
	})
	if err != nil {
		return Endpoint{}, fmt.Errorf("change the state of an endpoint: %w", err)
	}
	outlast(ctx)
	return e, nil
}

// lockLaneTx locks the lane of a project's endpoint and tells who works it to look anew. The lane comes before the endpoint and the deliveries, in the
// order that an attempt's health and a promotion take them.
func lockLaneTx(ctx context.Context, tx pgx.Tx, project, id string) error {
	_, err := tx.Exec(ctx, `select pg_notify($3, $2) from endpoint_lanes where project_id = $1 and endpoint_id = $2 for update`, project, id, channel)
	if err != nil {
		return fmt.Errorf("lock a lane: %w", err)
	}
	return nil
}

// resumeTx lets the deliveries of an endpoint, whose lane is locked, go on at once, as far as its window has room.
func (s *Endpoints) resumeTx(ctx context.Context, tx pgx.Tx, id string) error {
	if err := wakeTx(ctx, tx, id); err != nil {
		return err
	}
	_, err := promote(ctx, tx, promoter{now: s.now(), want: laneWindow, resumed: true}, id)
	return err
}

func cleanReason(reason string) (string, error) {
	reason = strings.TrimSpace(reason)
	if !utf8.ValidString(reason) || strings.ContainsRune(reason, 0) || utf8.RuneCountInString(reason) > maxReasonLength {
		return "", store.Invalid("reason", fmt.Sprintf("Use up to %d characters.", maxReasonLength))
	}
	return reason, nil
}
