package mailer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// Notification is one mail to one recipient, with what is known of it.
type Notification struct {
	ID        string
	ProjectID string
	Kind      string
	// TaskID is 0 when the task is gone.
	TaskID  int64
	OrderID string
	// Recipient is the masked address; empty when it was erased.
	Recipient  string
	Subject    string
	Text, HTML string
	From       string
	MessageID  string
	CreatedAt  time.Time
	AcceptedAt *time.Time
	Captured   bool
	Transport  string
	ProviderID string
	Feedback   Feedback
	FeedbackAt *time.Time
	// ErasedAt is when the content was removed, with its recipient or by retention.
	ErasedAt    *time.Time
	HeldUntil   *time.Time
	EndedReason string
	// PossibleDuplicate says that the answer to an attempt was lost when the far side had the mail already.
	PossibleDuplicate bool

	aboutID, aboutKind  string
	ref                 []byte
	address             string
	boundary            string
	datedAt             time.Time
	linkSealed          []byte
	linkMadeAt          time.Time
	slotAt, ownerSlotAt time.Time
	heldUntil           time.Time
}

// notificationRow is the row as it is read, with the clear address beside it.
type notificationRow struct {
	ID                string     `db:"id"`
	ProjectID         string     `db:"project_id"`
	Kind              string     `db:"kind"`
	TaskID            *int64     `db:"task_id"`
	OrderID           *string    `db:"order_id"`
	AboutKind         *string    `db:"about_kind"`
	AboutID           *string    `db:"about_id"`
	Ref               []byte     `db:"recipient_ref"`
	Address           *string    `db:"address"`
	From              string     `db:"from_address"`
	Subject           string     `db:"subject"`
	Text              string     `db:"body_text"`
	HTML              *string    `db:"body_html"`
	Boundary          string     `db:"boundary"`
	MessageID         string     `db:"message_id"`
	DatedAt           time.Time  `db:"dated_at"`
	LinkSealed        []byte     `db:"link_sealed"`
	LinkMadeAt        *time.Time `db:"link_made_at"`
	SlotAt            *time.Time `db:"slot_at"`
	OwnerSlotAt       *time.Time `db:"owner_slot_at"`
	HeldUntil         *time.Time `db:"held_until"`
	Transport         *string    `db:"transport"`
	AcceptedAt        *time.Time `db:"accepted_at"`
	Captured          bool       `db:"captured"`
	ProviderID        *string    `db:"provider_id"`
	PossibleDuplicate bool       `db:"possible_duplicate"`
	Feedback          *string    `db:"feedback"`
	FeedbackAt        *time.Time `db:"feedback_at"`
	EndedReason       *string    `db:"ended_reason"`
	ErasedAt          *time.Time `db:"erased_at"`
	CreatedAt         time.Time  `db:"created_at"`
}

const notificationFrom = `
	select n.id, n.project_id, n.kind, n.task_id, n.order_id, n.about_kind, n.about_id, n.recipient_ref, r.address, n.from_address, n.subject, n.body_text,
		n.body_html, n.boundary, n.message_id, n.dated_at, n.link_sealed, n.link_made_at, n.slot_at, n.owner_slot_at, n.held_until, n.transport,
		n.accepted_at, n.captured, n.provider_id, n.possible_duplicate, n.feedback, n.feedback_at, n.ended_reason, n.erased_at, n.created_at
	from notifications n
	left join mail_recipients r on r.project_id = n.project_id and r.ref = n.recipient_ref`

func (r notificationRow) notification() *Notification {
	n := &Notification{ID: r.ID, ProjectID: r.ProjectID, Kind: r.Kind, TaskID: deref(r.TaskID), OrderID: deref(r.OrderID), Subject: r.Subject, Text: r.Text,
		HTML: deref(r.HTML), From: r.From, MessageID: r.MessageID, CreatedAt: r.CreatedAt.UTC(), AcceptedAt: r.AcceptedAt, Captured: r.Captured,
		Transport: deref(r.Transport), ProviderID: deref(r.ProviderID), Feedback: Feedback(deref(r.Feedback)), FeedbackAt: r.FeedbackAt, ErasedAt: r.ErasedAt,
		HeldUntil: r.HeldUntil, EndedReason: deref(r.EndedReason), PossibleDuplicate: r.PossibleDuplicate,
		aboutKind: deref(r.AboutKind), aboutID: deref(r.AboutID), ref: r.Ref, address: deref(r.Address), boundary: r.Boundary, datedAt: r.DatedAt.UTC(),
		linkSealed: r.LinkSealed, linkMadeAt: deref(r.LinkMadeAt), slotAt: deref(r.SlotAt), ownerSlotAt: deref(r.OwnerSlotAt), heldUntil: deref(r.HeldUntil)}
	if n.address != "" {
		n.Recipient = Mask(n.address)
	}
	return n
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// load reads one notification of a project; any other is store.ErrNotFound.
func (m *Mailer) load(ctx context.Context, db store.DB, project, id string) (*Notification, error) {
	rows, err := db.Query(ctx, notificationFrom+` where n.project_id = $1 and n.id = $2`, project, id)
	if err != nil {
		return nil, fmt.Errorf("read a notification: %w", err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[notificationRow])
	if err != nil {
		return nil, fmt.Errorf("read a notification: %w", store.MapError(err))
	}
	return row.notification(), nil
}

// Address is the clear address; empty when it was erased. It is for those who may see payloads.
func (n *Notification) Address() string { return n.address }

// Date is the mail's own, which is when it was asked for.
func (n *Notification) Date() time.Time { return n.datedAt }

// linkMark stands in a text where the one-time link goes.
const linkMark = "{{link}}"

// linkFresh is how long a link that was made for an earlier attempt is used again. It works for a day.
const linkFresh = 20 * time.Hour

// message makes the notification ready to be handed over. The link of a confirmation is made now, and once: the next attempt has the
// same bytes.
func (s *Sender) message(ctx context.Context, n *Notification, t *transport) (Message, error) {
	_, sender, err := ParseFrom(n.From)
	if err != nil {
		return Message{}, fmt.Errorf("the sender of a notification %w", err)
	}
	m := Message{ID: n.ID, Sender: sender, Recipient: n.address, From: n.From, Subject: n.Subject, Text: n.Text, HTML: n.HTML, MessageID: n.MessageID,
		Date: n.datedAt, Boundary: n.boundary}
	if n.Kind != EmailConfirmation.Name {
		return m, nil
	}
	link, err := s.linkFor(ctx, n)
	if err != nil {
		return m, err
	}
	m.Text = strings.ReplaceAll(m.Text, linkMark, link)
	m.HTML = strings.ReplaceAll(m.HTML, linkMark, link)
	return m, nil
}

// linkFor reads the link of an earlier attempt, or makes one and keeps it, sealed, until the mail was accepted.
func (s *Sender) linkFor(ctx context.Context, n *Notification) (string, error) {
	if n.linkSealed != nil && s.now().Sub(n.linkMadeAt) < linkFresh {
		raw, err := s.box.Open(n.linkSealed, "notifications", n.ID)
		if err != nil {
			return "", fmt.Errorf("open the link of a mail: %w", err)
		}
		var link string
		return link, json.Unmarshal(raw, &link)
	}
	var link string
	var err error
	if n.aboutKind == aboutNewAddress {
		link, err = s.links.ChangeEmailLink(ctx, n.aboutID, n.address)
	} else {
		link, err = s.links.ConfirmationLink(ctx, n.aboutID)
	}
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(link)
	if err != nil {
		return "", fmt.Errorf("encode the link of a mail: %w", err)
	}
	_, err = s.pool.Exec(ctx, `update notifications set link_sealed = $2, link_made_at = $3 where id = $1`, n.ID, s.box.Seal(raw, "notifications", n.ID), s.now())
	if err != nil {
		return "", fmt.Errorf("keep the link of a mail: %w", err)
	}
	return link, nil
}
