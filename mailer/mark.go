package mailer

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
)

// What a notification can be about, beside an order.
const (
	aboutAccessRequest = "access_request"
	aboutUser          = "user"
	// aboutNewAddress is a user who wants to move to the address of the mail.
	aboutNewAddress = "new_address"
)

// accepted writes down the far side's word, what it means for what the mail is about, and the end of the task, all in one
// transaction. When that fails the far side has the mail and we have no record of it: the task is tried again, so that there may be
// one mail more but never one less.
func (s *Sender) accepted(ctx context.Context, job *jobs.Job[SendArgs], n *Notification, t *transport, r Result) error {
	err := store.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			update notifications set accepted_at = @now, transport = @transport, captured = @captured, provider_id = nullif(@provider, ''), link_sealed = null,
				ended_reason = null
			where id = @id`, pgx.StrictNamedArgs{"id": n.ID, "now": s.now(), "transport": t.settings.About(), "captured": r.captured, "provider": r.ProviderID})
		if err != nil {
			return fmt.Errorf("note that a mail was accepted: %w", err)
		}
		if err := s.markTx(ctx, tx, n); err != nil {
			return err
		}
		if err := s.adoptFeedbackTx(ctx, tx, n, t.owner, r.ProviderID); err != nil {
			return err
		}
		if r.captured {
			if err := s.playFeedbackTx(ctx, tx, n); err != nil {
				return err
			}
		}
		return job.CompleteTx(ctx, tx)
	})
	if err != nil {
		s.log.ErrorContext(ctx, "a mail was accepted but that could not be written", "project_id", n.ProjectID, "job_id", job.TaskID, "error", err)
		return &sendError{sentence: "The mail was accepted, but that could not be written down; another copy may follow.", cause: err}
	}
	return nil
}

// markTx writes the mark of the matter that the mail is about.
func (s *Sender) markTx(ctx context.Context, tx pgx.Tx, n *Notification) error {
	statement := map[string]string{
		OwnerNotify.Name:       `update access_requests set notified_at = coalesce(notified_at, $2) where id = $1`,
		ApprovalMail.Name:      `update access_requests set replied_at = $2, mail_state = 'sent' where id = $1`,
		EmailConfirmation.Name: `update users set confirmation_sent_at = $2 where id = $1`,
	}[n.Kind]
	if statement == "" || n.aboutID == "" {
		return nil
	}
	if _, err := tx.Exec(ctx, statement, n.aboutID, s.now()); err != nil {
		return fmt.Errorf("mark what a mail is about: %w", err)
	}
	return nil
}

// noteFailure keeps what an attempt taught about the message and its recipient.
func (s *Sender) noteFailure(ctx context.Context, n *Notification, r Result) error {
	if r.PossibleDuplicate {
		if _, err := s.pool.Exec(ctx, `update notifications set possible_duplicate = true where id = $1`, n.ID); err != nil {
			return fmt.Errorf("mark a possible duplicate: %w", err)
		}
	}
	if !r.Suppress {
		return nil
	}
	return suppress(ctx, s.pool, n.ProjectID, n.ref, HardBounce, scrub(r.Sentence, n.address), n.ID)
}

// ended notes why a mail will not be sent, for lists that outlive its task. It passes the outcome on.
func (s *Sender) ended(ctx context.Context, job *jobs.Job[SendArgs], n *Notification, outcome error) error {
	var discard *jobs.DiscardError
	if !errors.As(outcome, &discard) {
		return outcome
	}
	_, err := s.pool.Exec(ctx, `update notifications set ended_reason = $2 where id = $1 and accepted_at is null`, n.ID, discard.Reason)
	if err != nil {
		s.log.ErrorContext(ctx, "the end of a mail could not be written", "project_id", n.ProjectID, "job_id", job.TaskID, "error", err)
	}
	return outcome
}
