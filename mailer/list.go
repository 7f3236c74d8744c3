package mailer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
)

// State is how far a mail is, in the words of the panel. Accepted is the transport's word; only feedback says delivered.
type State string

// The states of a mail.
const (
	StateQueued     State = "queued"
	StateSending    State = "sending"
	StateRetrying   State = "retrying"
	StateWaiting    State = "waiting"
	StateAccepted   State = "accepted"
	StateCaptured   State = "captured"
	StateDelayed    State = "delayed"
	StateDelivered  State = "delivered"
	StateBounced    State = "bounced"
	StateComplained State = "complained"
	StateSuppressed State = "suppressed"
	StateDropped    State = "dropped"
	StateCancelled  State = "cancelled"
	StateFailed     State = "failed"
)

// Listed is a notification with where its task stands.
type Listed struct {
	*Notification
	State State
	// Reason is the recorded word behind the state, such as recipient_cap. NextAttemptAt is zero when none is to come.
	Reason        string
	NextAttemptAt time.Time
}

// Filter narrows a list of notifications. Empty fields do not narrow.
type Filter struct {
	OrderID string
	// Recipient is a whole address.
	Recipient string
	// Captured keeps those that were not sent but kept here.
	Captured bool
}

// listedRow is a notification with its task's row.
type listedRow struct {
	notificationRow
	RiverState  *string    `db:"river_state"`
	Outcome     *string    `db:"outcome"`
	ScheduledAt *time.Time `db:"scheduled_at"`
	Reason      *string    `db:"reason"`
}

// linkShown stands for a one-time link where a mail is looked at: the link itself is made when the mail is sent.
const linkShown = "(a one-time link)"

// Private says that the mail is about people's access: what it says is for those who decide about that.
func (l Listed) Private() bool { return l.Kind != OrderNotification.Name }

// allowed asks for a permission in a project, or for the admin's where the mail is the installation's own.
func allowed(actor tenant.Actor, project string, p tenant.Permission) error {
	if project == "" {
		return actor.Require(tenant.PermAdmin)
	}
	return actor.RequireIn(project, p)
}

const listedFrom = `
	select n.id, n.project_id, n.kind, n.task_id, n.order_id, n.about_kind, n.about_id, n.recipient_ref, r.address, n.from_address, n.subject, n.body_text,
		n.body_html, n.boundary, n.message_id, n.dated_at, n.link_sealed, n.link_made_at, n.slot_at, n.owner_slot_at, n.held_until, n.transport,
		n.accepted_at, n.captured, n.provider_id, n.possible_duplicate, n.feedback, n.feedback_at, n.ended_reason, n.erased_at, n.created_at,
		j.state::text as river_state, j.outcome, j.scheduled_at, j.metadata ->> 'reason' as reason
	from notifications n
	left join mail_recipients r on r.project_id = n.project_id and r.ref = n.recipient_ref
	left join river_job j on j.id = n.task_id`

// ListNotifications pages through the mails of a project, the newest first; of the installation, for the empty project.
func (m *Mailer) ListNotifications(ctx context.Context, db store.DB, project string, f Filter, page store.Page) (store.List[Listed], error) {
	k, err := store.KeysetOf[string](page)
	if err != nil {
		return store.List[Listed]{}, err
	}
	order, beyond := "desc", " and n.id < @from"
	if k.Backward() {
		order, beyond = "asc", " and n.id > @from"
	}
	where, args := "n.project_id = @project", pgx.StrictNamedArgs{"project": project, "fetch": k.Fetch()}
	if f.OrderID != "" {
		where, args["order"] = where+" and n.order_id = @order", f.OrderID
	}
	if f.Recipient != "" {
		ref, err := m.refOf(ctx, db, project, f.Recipient)
		if err != nil {
			return store.List[Listed]{}, err
		}
		where, args["ref"] = where+" and n.recipient_ref = @ref", ref
	}
	if f.Captured {
		where += " and n.captured"
	}
	if k.From != nil {
		where, args["from"] = where+beyond, *k.From
	}
	rows, err := db.Query(ctx, listedFrom+` where `+where+` order by n.id `+order+` limit @fetch`, args)
	if err != nil {
		return store.List[Listed]{}, fmt.Errorf("list notifications: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[listedRow])
	if err != nil {
		return store.List[Listed]{}, fmt.Errorf("list notifications: %w", err)
	}
	list := make([]Listed, len(found))
	for i, row := range found {
		list[i] = m.listed(row)
	}
	return store.ListOf(k, list, func(l Listed) string { return l.ID }), nil
}

// NotificationByID reads one mail of a project; any other is store.ErrNotFound.
func (m *Mailer) NotificationByID(ctx context.Context, db store.DB, project, id string) (Listed, error) {
	rows, err := db.Query(ctx, listedFrom+` where n.project_id = $1 and n.id = $2`, project, id)
	if err != nil {
		return Listed{}, fmt.Errorf("read a notification: %w", err)
	}
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[listedRow])
	if err != nil {
		return Listed{}, fmt.Errorf("read a notification: %w", store.MapError(err))
	}
	return m.listed(row), nil
}

func (m *Mailer) listed(row listedRow) Listed {
	l := Listed{Notification: row.notification(), Reason: deref(row.Reason)}
	l.Text, l.HTML = strings.ReplaceAll(l.Text, linkMark, linkShown), strings.ReplaceAll(l.HTML, linkMark, linkShown)
	if row.RiverState == nil {
		l.State = l.withoutTask()
		return l
	}
	task := jobs.StateOf(*row.RiverState, deref(row.Outcome), deref(row.ScheduledAt), m.now())
	l.State = l.stateOf(task)
	if task == jobs.StatePending || task == jobs.StateRetryable || task == jobs.StateSnoozed {
		l.NextAttemptAt = deref(row.ScheduledAt).UTC()
	}
	if l.EndedReason != "" {
		l.Reason = l.EndedReason
	}
	return l
}

// stateOf reads the facts first: what was told later, then the transport's word, then the task.
func (l Listed) stateOf(task jobs.TaskState) State {
	switch {
	case l.Feedback != "" && !l.Captured:
		return State(l.Feedback)
	case l.AcceptedAt != nil && l.Captured && l.Feedback == "":
		return StateCaptured
	case l.Feedback != "":
		return State(l.Feedback)
	case l.AcceptedAt != nil:
		return StateAccepted
	}
	switch task {
	case jobs.StateRunning:
		return StateSending
	case jobs.StateRetryable:
		return StateRetrying
	case jobs.StateSnoozed:
		return StateWaiting
	case jobs.StatePending:
		return StateQueued
	case jobs.StateCancelled:
		return StateCancelled
	}
	return l.withoutTask()
}

// withoutTask is the state of a mail whose task is gone or at its end.
func (l Listed) withoutTask() State {
	switch {
	case l.Feedback != "":
		return State(l.Feedback)
	case l.AcceptedAt != nil && l.Captured:
		return StateCaptured
	case l.AcceptedAt != nil:
		return StateAccepted
	case l.EndedReason == ReasonSuppressed:
		return StateSuppressed
	case l.EndedReason == ReasonBurstCap:
		return StateDropped
	default:
		return StateFailed
	}
}

// Source is the whole message as it is sent over SMTP, without its DKIM signature: what was captured, else what the stored fields make.
// A mail whose content was removed is a *store.ConflictError.
func (m *Mailer) Source(ctx context.Context, db store.DB, l Listed) ([]byte, error) {
	if l.Captured {
		raw, _, err := m.CapturedRaw(ctx, db, l.ProjectID, l.ID)
		if !errors.Is(err, store.ErrNotFound) {
			return raw, err
		}
	}
	if l.address == "" || l.ErasedAt != nil {
		return nil, &store.ConflictError{Code: "erased", Sentence: contentRemoved}
	}
	return Message{ID: l.ID, Recipient: l.address, From: l.From, Subject: l.Subject, Text: l.Text, HTML: l.HTML, MessageID: l.MessageID, Date: l.datedAt,
		Boundary: l.boundary}.Raw(DKIMSettings{})
}

// AttemptsOf are the ledger's rows of a mail.
func AttemptsOf(ctx context.Context, db store.DB, l Listed) ([]jobs.Record, error) {
	return jobs.AttemptsOfTask(ctx, db, l.ProjectID, l.TaskID)
}
