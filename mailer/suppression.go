package mailer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// SuppressionReason is why a recipient gets no more mail.
type SuppressionReason string

// The reasons of a suppression.
const (
	HardBounce SuppressionReason = "hard_bounce"
	Complaint  SuppressionReason = "complaint"
)

// Suppression keeps a project's mail from a recipient.
type Suppression struct {
	ID             string            `db:"id"`
	Reason         SuppressionReason `db:"reason"`
	Detail         string            `db:"detail"`
	NotificationID string            `db:"notification_id"`
	Address        string            `db:"address"`
	CreatedAt      time.Time         `db:"created_at"`
	RemovedAt      *time.Time        `db:"removed_at"`
	RemovedBy      string            `db:"removed_by"`
}

// suppressedRef tells whether a recipient gets no mail.
func suppressedRef(ctx context.Context, db store.DB, project string, ref []byte) (bool, error) {
	var there bool
	err := db.QueryRow(ctx, `select exists (select from mail_suppressions where project_id = $1 and ref = $2 and removed_at is null)`, project, ref).Scan(&there)
	if err != nil {
		return false, fmt.Errorf("look for a suppression: %w", err)
	}
	return there, nil
}

// suppress adds a suppression, unless there is one.
func suppress(ctx context.Context, db store.DB, project string, ref []byte, reason SuppressionReason, detail, notificationID string) error {
	_, err := db.Exec(ctx, `
		insert into mail_suppressions (id, project_id, ref, reason, detail, notification_id) values ($1, $2, $3, $4, $5, nullif($6, ''))
		on conflict (project_id, ref) where removed_at is null do nothing`, store.NewID("suppression"), project, ref, string(reason), cut(detail, 500), notificationID)
	if err != nil {
		return fmt.Errorf("suppress a recipient: %w", err)
	}
	return nil
}

// ListSuppressions pages through those that stand, the newest first.
func (m *Mailer) ListSuppressions(ctx context.Context, db store.DB, project string, page store.Page) (store.List[Suppression], error) {
	k, err := store.KeysetOf[string](page)
	if err != nil {
		return store.List[Suppression]{}, err
	}
	order, beyond := "desc", "s.id < @from"
	if k.Backward() {
		order, beyond = "asc", "s.id > @from"
	}
	args := pgx.StrictNamedArgs{"project": project, "fetch": k.Fetch()}
	condition := "s.project_id = @project and s.removed_at is null"
	if k.From != nil {
		condition, args["from"] = condition+" and "+beyond, *k.From
	}
	rows, err := db.Query(ctx, `
		select s.id, s.reason, s.detail, coalesce(s.notification_id, '') as notification_id, coalesce(r.address, '') as address, s.created_at,
			s.removed_at, coalesce(s.removed_by, '') as removed_by
		from mail_suppressions s left join mail_recipients r on r.project_id = s.project_id and r.ref = s.ref
		where `+condition+` order by s.id `+order+` limit @fetch`, args)
	if err != nil {
		return store.List[Suppression]{}, fmt.Errorf("list suppressions: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Suppression])
	if err != nil {
		return store.List[Suppression]{}, fmt.Errorf("list suppressions: %w", err)
	}
	return store.ListOf(k, found, func(s Suppression) string { return s.ID }), nil
}

// RemoveSuppression lets mail to a recipient out again. why is kept in the audit log. One that does not stand is store.ErrNotFound.
func (m *Mailer) RemoveSuppression(ctx context.Context, actor tenant.Actor, project, id, why string) error {
	if err := actor.RequireIn(project, tenant.PermManageTeam); err != nil {
		return err
	}
	return store.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			update mail_suppressions set removed_at = now(), removed_by = $3 where project_id = $1 and id = $2 and removed_at is null`, project, id, actor.Name)
		if err != nil {
			return fmt.Errorf("remove a suppression: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return store.ErrNotFound
		}
		return tenant.Audit(ctx, tx, actor.In(project), "suppression.remove", "suppression", id, map[string]any{"reason": cut(why, 500)})
	})
}
