package mailer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
)

// How long mails stay. What was attempted is the ledger's and stays as long as that does.
const (
	// keepCaptured is for the whole messages of the transport capture, which may hold one-time links.
	keepCaptured = 30 * 24 * time.Hour
	// keepContent is for what mails say and for clear addresses: as long as a discarded task can be tried again.
	keepContent = 90 * 24 * time.Hour
	// keepRows is for the notifications themselves and what was told of them.
	keepRows = 400 * 24 * time.Hour
	// retentionBatch bounds the rows that one statement locks.
	retentionBatch = 5000
)

// Removed counts what retention took away.
type Removed struct {
	// Captured messages, Contents of notifications, Addresses, and whole Notifications with their Facts.
	Captured, Contents, Addresses, Notifications, Facts int64
}

// Retention removes, as a periodic job, what was kept long enough.
func Retention(db store.DB, now func() time.Time) jobs.Periodic {
	return jobs.Periodic{Name: "mail.retention", About: "Removes captured mails after 30 days, what mails say after 90, and their rows after 400.",
		Every: 6 * time.Hour, RunOnStart: true, Do: func(ctx context.Context) error {
			_, err := RemoveOld(ctx, db, now())
			return err
		}}
}

// RemoveOld removes what was kept long enough at an instant. A mail whose task has not ended keeps what it says. It may be called
// again at any time, and does the rest of what a call that failed has left.
func RemoveOld(ctx context.Context, db store.DB, now time.Time) (Removed, error) {
	var r Removed
	for _, step := range []struct {
		count     *int64
		keep      time.Duration
		what      string
		statement string
	}{
		{&r.Captured, keepCaptured, "captured mails", `
			delete from captured_mails where notification_id in (select notification_id from captured_mails where captured_at < @before limit @batch)`},
		{&r.Contents, keepContent, "what mails say", `
			update notifications set subject = '', body_text = '', body_html = null, link_sealed = null, erased_at = @now
			where id in (
				select n.id from notifications n left join river_job j on j.id = n.task_id
				where n.created_at < @before and n.erased_at is null and (j.id is null or j.finalized_at is not null) limit @batch)`},
		{&r.Addresses, keepContent, "addresses", `
			delete from mail_recipients where (project_id, ref) in (
				select r.project_id, r.ref from mail_recipients r
				where r.created_at < @before
					and not exists (select from notifications n where n.project_id = r.project_id and n.recipient_ref = r.ref and n.erased_at is null)
					and not exists (select from mail_suppressions s where s.project_id = r.project_id and s.ref = r.ref and s.removed_at is null)
				limit @batch)`},
		{&r.Facts, keepRows, "feedback", `
			delete from mail_feedback where id in (
				select f.id from mail_feedback f left join notifications n on n.id = f.notification_id
				where f.received_at < @before and (n.id is null or n.created_at < @before) limit @batch)`},
		{&r.Notifications, keepRows, "notifications", `
			delete from notifications where id in (
				select n.id from notifications n
				where n.created_at < @before and n.erased_at is not null and not exists (select from mail_feedback f where f.notification_id = n.id) limit @batch)`},
	} {
		args := pgx.NamedArgs{"before": now.Add(-step.keep), "batch": retentionBatch, "now": now}
		for {
			tag, err := db.Exec(ctx, step.statement, args)
			if err != nil {
				return r, fmt.Errorf("remove old %s: %w", step.what, err)
			}
			*step.count += tag.RowsAffected()
			if tag.RowsAffected() < retentionBatch {
				break
			}
		}
	}
	return r, nil
}
