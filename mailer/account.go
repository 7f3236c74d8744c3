package mailer

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
)

// NotifyOwnersTx tells every owner of a project that somebody asks to join, as part of the request's transaction. link leads to where
// they decide.
func (m *Mailer) NotifyOwnersTx(ctx context.Context, tx pgx.Tx, r tenant.AccessRequest, link string) error {
	project, err := tenant.ProjectByID(ctx, tx, r.ProjectID)
	if err != nil {
		return err
	}
	members, err := tenant.ListMembers(ctx, tx, r.ProjectID)
	if err != nil {
		return err
	}
	for _, owner := range members {
		if owner.Role != tenant.RoleOwner {
			continue
		}
		d, err := accessLetter(r.Email, project.Name, r.Message, link).draft(ctx,
			draft{kind: OwnerNotify, project: r.ProjectID, to: owner.Email, aboutKind: aboutAccessRequest, aboutID: r.ID})
		if err != nil {
			return err
		}
		if _, err := m.enqueueTx(ctx, tx, d); err != nil {
			return err
		}
	}
	return nil
}

// NotifyApprovedTx tells somebody that the request was approved, as part of the approval's transaction. The request is marked as
// replied to once the mail was accepted, not before.
func (m *Mailer) NotifyApprovedTx(ctx context.Context, tx pgx.Tx, r tenant.AccessRequest, link string) error {
	project, err := tenant.ProjectByID(ctx, tx, r.ProjectID)
	if err != nil {
		return err
	}
	d, err := approvalLetter(project.Name, strings.ReplaceAll(string(r.Role), "_", "-"), link).draft(ctx,
		draft{kind: ApprovalMail, project: r.ProjectID, to: r.Email, aboutKind: aboutAccessRequest, aboutID: r.ID})
	if err != nil {
		return err
	}
	if _, err := m.enqueueTx(ctx, tx, d); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `update access_requests set mail_state = 'sending' where project_id = $1 and id = $2`, r.ProjectID, r.ID); err != nil {
		return fmt.Errorf("note that a reply is on its way: %w", err)
	}
	return nil
}

// NoteReplies corrects the state of requests by what only their mail knows: failed when it will not be sent any more, captured when it
// was kept here and went nowhere.
func (m *Mailer) NoteReplies(ctx context.Context, db store.DB, requests []tenant.AccessRequest) error {
	var ids []string
	for _, r := range requests {
		if r.MailState == "sending" || r.MailState == "sent" {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := db.Query(ctx, `
		select distinct on (n.about_id) n.about_id, case
			when n.captured then 'captured'
			when n.accepted_at is null and j.state in ('discarded', 'cancelled') then 'failed'
			else '' end as state
		from notifications n left join river_job j on j.id = n.task_id
		where n.about_id = any($1) and n.kind = $2 order by n.about_id, n.id desc`, ids, ApprovalMail.Name)
	if err != nil {
		return fmt.Errorf("read what became of replies: %w", err)
	}
	type reply struct {
		About string `db:"about_id"`
		State string `db:"state"`
	}
	replies, err := pgx.CollectRows(rows, pgx.RowToStructByName[reply])
	if err != nil {
		return fmt.Errorf("read what became of replies: %w", err)
	}
	for _, reply := range replies {
		for i := range requests {
			if requests[i].ID == reply.About && reply.State != "" {
				requests[i].MailState = reply.State
			}
		}
	}
	return nil
}

// ConfirmTx sends a user the link that ends the sign-up, as part of the sign-up's transaction. The link is made when the mail is sent.
func (m *Mailer) ConfirmTx(ctx context.Context, tx pgx.Tx, user tenant.User) error {
	d, err := confirmationLetter().draft(ctx, draft{kind: EmailConfirmation, to: user.Email, aboutKind: aboutUser, aboutID: user.ID})
	if err != nil {
		return err
	}
	_, err = m.enqueueTx(ctx, tx, d)
	return err
}

// ConfirmAddress sends the link that moves a user to another address, to that address. The answer does not tell whether somebody has it
// already: the link would.
func (m *Mailer) ConfirmAddress(ctx context.Context, actor tenant.Actor, user tenant.User, email string) error {
	var bad store.InvalidError
	to := checkAddress(&bad, "email", email)
	if to == user.Email {
		bad.Add("email", "This is your address already.")
	}
	if err := bad.OrNil(); err != nil {
		return err
	}
	d, err := newAddressLetter(user.Email).draft(ctx, draft{kind: EmailConfirmation, to: to, aboutKind: aboutNewAddress, aboutID: user.ID})
	if err != nil {
		return err
	}
	return store.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		if _, err := m.enqueueTx(ctx, tx, d); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, actor, "user.ask_change_email", "user", user.ID, nil)
	})
}

// testOrder is what a test mail is filed under.
const testOrder = "test"

// testLabel marks a task as a test, whose failure its sender sees and no alert tells.
const testLabel = "entrega.test"

// SendTest sends a mail to see whether the project's transport works. It is tried once.
func (m *Mailer) SendTest(ctx context.Context, actor tenant.Actor, project, to string) (Queued, error) {
	if err := actor.RequireIn(project, tenant.PermSendTest); err != nil {
		return Queued{}, err
	}
	var bad store.InvalidError
	to = checkAddress(&bad, "to", to)
	if err := bad.OrNil(); err != nil {
		return Queued{}, err
	}
	var queued Queued
	err := store.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		p, err := tenant.ProjectByID(ctx, tx, project)
		if err != nil {
			return err
		}
		settings, _, err := m.SettingsOf(ctx, tx, project)
		if err != nil {
			return err
		}
		d, err := testLetter(p.Name, settings.About()).draft(ctx, draft{kind: OrderNotification, project: project, orderID: testOrder, to: to, trigger: jobs.TriggerTest})
		if err != nil {
			return err
		}
		if queued, err = m.enqueueTx(ctx, tx, d); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, actor.In(project), "mail.test", "notification", queued.ID, nil)
	})
	return queued, err
}

// SendAgain makes a new notification of an earlier one: the same words to the same recipient, under a new id. Content that was erased
// cannot be sent, which is a *store.ConflictError.
func (m *Mailer) SendAgain(ctx context.Context, actor tenant.Actor, project, id string) (Queued, error) {
	if err := allowed(actor, project, tenant.PermRetry); err != nil {
		return Queued{}, err
	}
	var queued Queued
	err := store.InTx(ctx, m.pool, func(tx pgx.Tx) error {
		n, err := m.load(ctx, tx, project, id)
		if err != nil {
			return err
		}
		if n.address == "" || n.ErasedAt != nil {
			return &store.ConflictError{Code: "erased", Sentence: contentRemoved + " It cannot be sent again."}
		}
		d := draft{project: project, orderID: n.OrderID, to: n.address, subject: n.Subject, text: n.Text, html: n.HTML, aboutKind: n.aboutKind,
			aboutID: n.aboutID, trigger: jobs.TriggerManual}
		for _, k := range Kinds() {
			if k.Name == n.Kind {
				d.kind = k
			}
		}
		if queued, err = m.enqueueTx(ctx, tx, d); err != nil {
			return err
		}
		return tenant.Audit(ctx, tx, actor.In(project), "mail.send_again", "notification", id, map[string]any{"newId": queued.ID})
	})
	return queued, err
}
