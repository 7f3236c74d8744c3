package web

import (
	"context"
	"net/http"

	"entrega/internal/tenant"
	"entrega/mailer"
)

const tagMail = "Mail"

// notificationBytes bounds the body of a notification: text and HTML, escaped.
const notificationBytes = 3 * mailer.MaxBodyBytes

// mountNotifications lists the calls about mail.
func (a *api) mountNotifications() {
	register(a, operation{
		id: "notify", method: http.MethodPost, path: "/v1/notifications", tag: tagMail, needs: tenant.PermPublish,
		summary: "Send a mail about an order",
		description: "Stores one mail to one recipient and hands it to the project's transport. `accepted` in the evidence is the transport's word that it has the mail; what becomes of it comes later, as feedback. " +
			"A recipient gets 30 mails of a project in a clock hour; further ones wait for the next hour. The same `idempotencyKey`, or header `Idempotency-Key`, with the same content answers the first notification with `duplicate: true`.",
		body: notifyBody{}, bodyBytes: notificationBytes, status: http.StatusAccepted,
		answers:   map[int]string{http.StatusAccepted: "The notification is stored and will be sent."},
		conflicts: []conflict{{mailer.CodeMismatch, "the key was used before for another notification"}},
	}, a.notify)
	a.mountEvidence()
}

// notifyBody is a mail about an order.
type notifyBody struct {
	_              struct{} `additionalProperties:"false"`
	OrderID        string   `json:"orderId" maxLength:"128" doc:"The order that the mail is about." example:"SO-10482"`
	To             string   `json:"to" doc:"One plain address, without a name." example:"sales@acme.example"`
	Subject        string   `json:"subject" maxLength:"200" doc:"One line." example:"New order SO-10482"`
	Text           string   `json:"text" doc:"The mail as plain text; 256 KiB at most." example:"You have a new order: SO-10482."`
	HTML           string   `json:"html,omitempty" doc:"The same in HTML; 256 KiB at most." example:"<p>You have a new order: <b>SO-10482</b>.</p>"`
	IdempotencyKey string   `json:"idempotencyKey,omitempty" maxLength:"255" doc:"A second request with the same key sends no second mail." example:"order-10482-created"`
}

// notificationShown is a notification on its way.
type notificationShown struct {
	ID        string `json:"id" doc:"Also the left part of the mail's Message-ID." example:"notification_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	TaskID    int64  `json:"taskId" doc:"The task that sends it." example:"1042"`
	Duplicate bool   `json:"duplicate" doc:"The key was used before: this is the notification of then." example:"false"`
}

type notifyOutput struct{ Body notificationShown }

func (a *api) notify(ctx context.Context, c call, _ *IdempotentInput) (*notifyOutput, error) {
	var body notifyBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if body.IdempotencyKey == "" {
		body.IdempotencyKey = c.key
	}
	queued, err := a.mailer.Notify(ctx, c.actor, c.project(), mailer.New{OrderID: body.OrderID, To: body.To, Subject: body.Subject, Text: body.Text,
		HTML: body.HTML, IdempotencyKey: body.IdempotencyKey})
	if err != nil {
		return nil, err
	}
	return &notifyOutput{notificationShown{ID: queued.ID, TaskID: queued.TaskID, Duplicate: queued.Duplicate}}, nil
}
