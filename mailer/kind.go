package mailer

import (
	"time"

	"entrega/jobs"
)

// SendArgs name the notification that a task sends.
type SendArgs struct {
	// ProjectID is empty for a mail of the installation itself.
	ProjectID      string `json:"projectId,omitempty"`
	NotificationID string `json:"notificationId"`
}

// handlerTimeout leaves room for the longest attempt over SMTP and for the bookkeeping around it.
const handlerTimeout = 6 * time.Minute

// The kinds of mail.
var (
	// OrderNotification tells a seller of an order; it is asked for over the API.
	OrderNotification = kind("order.notification")
	// OwnerNotify tells the owners of a project about a matter of it.
	OwnerNotify = kind("owner.notify")
	// ApprovalMail tells somebody that an access request was approved.
	ApprovalMail = kind("access_request.approval_mail")
	// EmailConfirmation carries the link that confirms an address.
	EmailConfirmation = kind("owner.email_confirmation")
)

func kind(name string) jobs.Kind[SendArgs] {
	return jobs.Kind[SendArgs]{Name: name, Queue: jobs.QueueNotify, Timeout: handlerTimeout}
}

// Kinds are all kinds of mail.
func Kinds() []jobs.Kind[SendArgs] {
	return []jobs.Kind[SendArgs]{OrderNotification, OwnerNotify, ApprovalMail, EmailConfirmation}
}

// profileSMTP is the profile of a policy that gives a relay the time it may take. Kinds without it keep the standard one.
const profileSMTP = "smtp"

// The recorded words for mails that end, or wait, for a reason of their own.
const (
	// ReasonSuppressed is a recipient that bounced or complained before. Nothing was sent.
	ReasonSuppressed = "suppressed"
	// ReasonBurstCap is an owner's notice beyond the hour's five, dropped on purpose. Nothing was sent.
	ReasonBurstCap = "dropped_burst_cap"
	// ReasonRecipientCap is a recipient whose slots of this hour are taken; the mail waits for the next hour.
	ReasonRecipientCap = "recipient_cap"
	// ReasonTransportPaused is a transport that refused our credentials; the mail waits until it takes them again.
	ReasonTransportPaused = "transport_paused"
	// ReasonRelayBusy is a relay that closed the connection with 421.
	ReasonRelayBusy = "relay_busy"
	// ReasonErased is a recipient whose address was erased. Nothing was sent.
	ReasonErased = "recipient_erased"
	// ReasonContentRemoved is a mail whose content was removed, with an erased recipient or by retention. Nothing was sent.
	ReasonContentRemoved = "content_removed"
	// ReasonNotificationGone is a notification that is not there any more.
	ReasonNotificationGone = "notification_gone"
	// ReasonConfirmed is an address that was confirmed before the mail's turn.
	ReasonConfirmed = "already_confirmed"
	// ReasonTestFailed is a test mail that failed. A test is tried once.
	ReasonTestFailed = "test_failed"
	reasonNotReady   = "not_ready"
)
