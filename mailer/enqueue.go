package mailer

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
)

// CodeMismatch is the conflict of an idempotency key that was used before for another notification.
const CodeMismatch = "idempotency_mismatch"

// New is an order's notification, as a caller asks for it.
type New struct {
	OrderID string
	// To is one plain address.
	To, Subject, Text string
	// HTML is the same in HTML; empty for a mail of text alone.
	HTML string
	// IdempotencyKey makes a second request with it answer the first notification; empty is none.
	IdempotencyKey string
}

// Queued is a notification that is stored, and whose task will send it.
type Queued struct {
	ID     string
	TaskID int64
	// Duplicate says that the idempotency key was used before; nothing was stored this time.
	Duplicate bool
}

// draft is a mail before it has a row.
type draft struct {
	kind                    jobs.Kind[SendArgs]
	project, orderID        string
	to, subject, text, html string
	key                     string
	aboutKind, aboutID      string
	trigger                 jobs.Trigger
}

// Notify stores an order's notification with its task. What is wrong with the input is a *store.InvalidError, a key that was used
// for something else a *store.ConflictError idempotency_mismatch.
func (m *Mailer) Notify(ctx context.Context, actor tenant.Actor, project string, n New) (Queued, error) {
	if err := actor.RequireIn(project, tenant.PermPublish); err != nil {
		return Queued{}, err
	}
	d, err := n.draft(project)
	if err != nil {
		return Queued{}, err
	}
	var queued Queued
	err = store.InTx(ctx, m.pool, func(tx pgx.Tx) (err error) {
		queued, err = m.enqueueTx(ctx, tx, d)
		return err
	})
	return queued, err
}

// draft checks the input, all of it at once.
func (n New) draft(project string) (draft, error) {
	var bad store.InvalidError
	switch n.OrderID = strings.TrimSpace(n.OrderID); n.OrderID {
	case "":
		bad.Add("orderId", "Name the order that the mail is about.")
	default:
		checkLine(&bad, "orderId", n.OrderID, maxOrderRunes)
	}
	to := checkAddress(&bad, "to", n.To)
	if strings.TrimSpace(n.Subject) == "" {
		bad.Add("subject", "Give the mail a subject.")
	}
	checkLine(&bad, "subject", n.Subject, maxSubjectRunes)
	if strings.TrimSpace(n.Text) == "" {
		bad.Add("text", "Give the mail a text; HTML comes beside it.")
	}
	checkBody(&bad, "text", n.Text)
	checkBody(&bad, "html", n.HTML)
	checkLine(&bad, "idempotencyKey", n.IdempotencyKey, maxKeyRunes)
	return draft{kind: OrderNotification, project: project, orderID: n.OrderID, to: to, subject: n.Subject, text: n.Text, html: n.HTML,
		key: n.IdempotencyKey}, bad.OrNil()
}

// requestHash tells whether a repeated key asks for the same.
func (d draft) requestHash() []byte {
	raw, _ := json.Marshal([]string{d.kind.Name, d.orderID, d.to, d.subject, d.text, d.html}) // Strings always encode.
	sum := sha256.Sum256(raw)
	return sum[:]
}

// enqueueTx stores the mail and then its task, in the caller's transaction: no worker can see the task without the mail. What makes
// its bytes is fixed here.
func (m *Mailer) enqueueTx(ctx context.Context, tx pgx.Tx, d draft) (Queued, error) {
	settings, _, err := m.SettingsOf(ctx, tx, d.project)
	if err != nil {
		return Queued{}, err
	}
	from, sender, err := ParseFrom(m.fromOf(settings))
	if err != nil {
		return Queued{}, fmt.Errorf("the sender of the transport %w", err)
	}
	ref, err := m.refOf(ctx, tx, d.project, d.to)
	if err != nil {
		return Queued{}, err
	}
	id := store.NewID("notification")
	tag, err := tx.Exec(ctx, `
		insert into notifications (id, project_id, kind, order_id, idempotency_key, request_hash, about_kind, about_id, recipient_ref, from_address,
			subject, body_text, body_html, boundary, message_id, dated_at, created_at)
		values (@id, @project, @kind, nullif(@order, ''), nullif(@key, ''), @hash, nullif(@about_kind, ''), nullif(@about_id, ''), @ref, @from,
			@subject, @text, nullif(@html, ''), @boundary, @message_id, date_trunc('second', @now::timestamptz), @now)
		on conflict (project_id, idempotency_key) where idempotency_key is not null do nothing`,
		pgx.StrictNamedArgs{"id": id, "project": d.project, "kind": d.kind.Name, "order": d.orderID, "key": d.key, "hash": d.requestHash(),
			"about_kind": d.aboutKind, "about_id": d.aboutID, "ref": ref, "from": from, "subject": d.subject, "text": d.text, "html": d.html,
			"boundary": newBoundary(), "message_id": "<" + id + "@" + domainOf(sender) + ">", "now": m.now()})
	if err != nil {
		return Queued{}, fmt.Errorf("store a notification: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return earlierTx(ctx, tx, d)
	}
	if err := rememberTx(ctx, tx, d.project, ref, d.to); err != nil {
		return Queued{}, err
	}
	queued := Queued{ID: id}
	queued.TaskID, err = jobs.InsertTx(ctx, m.client, tx, d.kind, SendArgs{ProjectID: d.project, NotificationID: id},
		jobs.Insert{ProjectID: d.project, IdempotencyKey: id, OrderID: d.orderID, RecipientRef: ref, Trigger: d.trigger, Label: d.label()})
	if err != nil {
		return Queued{}, err
	}
	if _, err := tx.Exec(ctx, `update notifications set task_id = $2 where id = $1`, id, queued.TaskID); err != nil {
		return Queued{}, fmt.Errorf("note the task of a notification: %w", err)
	}
	return queued, nil
}

// fromOf is the sender of a project's transport, which may leave it to the installation's.
func (m *Mailer) fromOf(s Settings) string {
	if s.From != "" {
		return s.From
	}
	return m.installation.From
}

// label is what lists show of the task. An address is not among it: it must stay erasable.
func (d draft) label() map[string]string {
	switch {
	case d.trigger == jobs.TriggerTest:
		return map[string]string{"event_type": testLabel}
	case d.orderID == "":
		return nil
	default:
		return map[string]string{"subject": d.orderID}
	}
}

// earlierTx finds what an idempotency key stands for already.
func earlierTx(ctx context.Context, tx pgx.Tx, d draft) (Queued, error) {
	queued := Queued{Duplicate: true}
	var hash []byte
	var task *int64
	err := tx.QueryRow(ctx, `select id, task_id, request_hash from notifications where project_id = $1 and idempotency_key = $2`, d.project, d.key).
		Scan(&queued.ID, &task, &hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return Queued{}, errors.New("a notification with this key came and went")
	}
	if err != nil {
		return Queued{}, fmt.Errorf("read an earlier notification: %w", err)
	}
	if string(hash) != string(d.requestHash()) {
		return Queued{}, &store.ConflictError{Code: CodeMismatch, Sentence: "This idempotency key was used before for another notification. Use a new key for a new one."}
	}
	if task != nil {
		queued.TaskID = *task
	}
	return queued, nil
}

// newBoundary separates the parts of one message. It is too long to occur in them by chance.
func newBoundary() string {
	raw := make([]byte, 24)
	rand.Read(raw) // Never fails: see crypto/rand.
	return hex.EncodeToString(raw)
}
