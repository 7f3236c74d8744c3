package mailer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// Feedback is what a provider told about a mail after it was accepted.
type Feedback string

// The kinds of feedback, from the least to the most telling.
const (
	Delayed    Feedback = "delayed"
	Delivered  Feedback = "delivered"
	Bounced    Feedback = "bounced"
	Complained Feedback = "complained"
)

// rank orders kinds of feedback by what a list shows when there are several: facts arrive in any order.
func (f Feedback) rank() int {
	return map[Feedback]int{Delayed: 1, Delivered: 2, Bounced: 3, Complained: 4}[f]
}

// Fact is one piece of feedback, as a provider told it.
type Fact struct {
	Kind Feedback
	// EventKey is the provider's id of the fact; a repetition with it is the same fact.
	EventKey string
	// ProviderMessageID and MessageID name the mail, in the provider's words and in ours.
	ProviderMessageID, MessageID string
	// Status is the enhanced status, such as 5.1.1; Permanent says that the address is not there.
	Status     string
	Permanent  bool
	Detail     string
	OccurredAt time.Time
}

// RecordedFact is a fact that is kept.
type RecordedFact struct {
	ID                string    `db:"id"`
	Provider          string    `db:"provider"`
	Kind              Feedback  `db:"kind"`
	ProviderMessageID string    `db:"provider_message_id"`
	Status            string    `db:"status"`
	Detail            string    `db:"detail"`
	OccurredAt        time.Time `db:"occurred_at"`
	ReceivedAt        time.Time `db:"received_at"`
}

// recordTx keeps a fact once, and joins it to its mail where that is known. project is that of the transport which the provider
// serves; empty for the installation's, whose mails are of every project.
func (m *Mailer) recordTx(ctx context.Context, tx pgx.Tx, project, provider string, f Fact) (fresh bool, err error) {
	n, err := m.mailOf(ctx, tx, project, f)
	if err != nil {
		return false, err
	}
	of, id := project, ""
	f.Detail = scrubAll(f.Detail)
	if n != nil {
		of, id = n.ProjectID, n.ID
	}
	if project != "" {
		// What one project's provider tells must not stand for what another's does.
		f.EventKey = project + " " + f.EventKey
	}
	tag, err := tx.Exec(ctx, `
		insert into mail_feedback (id, project_id, provider, event_key, kind, notification_id, provider_message_id, status, permanent, detail, occurred_at)
		values (@id, @project, @provider, @key, @kind, nullif(@notification, ''), nullif(@message, ''), nullif(@status, ''), @permanent, @detail, @at)
		on conflict (provider, event_key) do nothing`,
		pgx.StrictNamedArgs{"id": store.NewID("fact"), "project": of, "provider": provider, "key": f.EventKey, "kind": string(f.Kind), "notification": id,
			"message": f.ProviderMessageID, "status": f.Status, "permanent": f.Permanent, "detail": cut(f.Detail, 1000), "at": f.OccurredAt})
	if err != nil {
		return false, fmt.Errorf("record feedback: %w", err)
	}
	if tag.RowsAffected() == 0 || n == nil {
		return tag.RowsAffected() > 0, nil
	}
	return true, m.joinTx(ctx, tx, n, f)
}

// mailOf finds the mail of a fact: by our own id in the Message-ID, else by the provider's. Nil when there is none.
func (m *Mailer) mailOf(ctx context.Context, tx pgx.Tx, project string, f Fact) (*Notification, error) {
	rows, err := tx.Query(ctx, notificationFrom+`
		where (@project = '' or n.project_id = @project) and (n.id = @id or (@provider <> '' and n.provider_id = @provider)) order by n.id desc limit 1`,
		pgx.StrictNamedArgs{"project": project, "id": notificationIn(f.MessageID), "provider": f.ProviderMessageID})
	if err != nil {
		return nil, fmt.Errorf("find the mail of feedback: %w", err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[notificationRow])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the mail of feedback: %w", err)
	}
	return row.notification(), nil
}

// joinTx shows a fact at its mail, and suppresses a recipient who is not there or does not want the mail.
func (m *Mailer) joinTx(ctx context.Context, tx pgx.Tx, n *Notification, f Fact) error {
	if f.Kind.rank() > n.Feedback.rank() {
		if _, err := tx.Exec(ctx, `update notifications set feedback = $2, feedback_at = $3 where id = $1`, n.ID, string(f.Kind), f.OccurredAt); err != nil {
			return fmt.Errorf("show feedback at its mail: %w", err)
		}
		n.Feedback = f.Kind
	}
	switch {
	case f.Kind == Complained:
		return suppress(ctx, tx, n.ProjectID, n.ref, Complaint, f.Detail, n.ID)
	case f.Kind == Bounced && f.Permanent:
		return suppress(ctx, tx, n.ProjectID, n.ref, HardBounce, f.Detail, n.ID)
	default:
		return nil
	}
}

// adoptFeedbackTx joins facts that came before their mail's own answer did, as far as the transport's owner was told them.
func (s *Sender) adoptFeedbackTx(ctx context.Context, tx pgx.Tx, n *Notification, owner, providerID string) error {
	if providerID == "" {
		return nil
	}
	rows, err := tx.Query(ctx, `
		update mail_feedback set notification_id = $2, project_id = $3 where provider_message_id = $1 and notification_id is null and project_id = $4
		returning kind, coalesce(status, ''), permanent, detail, occurred_at`, providerID, n.ID, n.ProjectID, owner)
	if err != nil {
		return fmt.Errorf("join earlier feedback: %w", err)
	}
	facts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Fact, err error) {
		err = row.Scan(&f.Kind, &f.Status, &f.Permanent, &f.Detail, &f.OccurredAt)
		return f, err
	})
	if err != nil {
		return fmt.Errorf("join earlier feedback: %w", err)
	}
	for _, f := range facts {
		if err := s.joinTx(ctx, tx, n, f); err != nil {
			return err
		}
	}
	return nil
}

// playFeedbackTx records what a simulated recipient stands for.
func (s *Sender) playFeedbackTx(ctx context.Context, tx pgx.Tx, n *Notification) error {
	kind := playsLater(n.address)
	if kind == "" {
		return nil
	}
	f := Fact{Kind: kind, EventKey: n.ID, MessageID: n.MessageID, Detail: "Simulated by the address.", OccurredAt: s.now(), Permanent: true}
	if kind == Bounced {
		f.Status = "5.1.1"
	}
	_, err := s.recordTx(ctx, tx, n.ProjectID, string(Capture), f)
	return err
}

// FactsOf lists what was told about a mail, in the order it happened.
func FactsOf(ctx context.Context, db store.DB, notificationID string) ([]RecordedFact, error) {
	rows, err := db.Query(ctx, `
		select id, provider, kind, coalesce(provider_message_id, '') as provider_message_id, coalesce(status, '') as status, detail, occurred_at, received_at
		from mail_feedback where notification_id = $1 order by occurred_at, id`, notificationID)
	if err != nil {
		return nil, fmt.Errorf("read feedback: %w", err)
	}
	facts, err := pgx.CollectRows(rows, pgx.RowToStructByName[RecordedFact])
	if err != nil {
		return nil, fmt.Errorf("read feedback: %w", err)
	}
	return facts, nil
}
