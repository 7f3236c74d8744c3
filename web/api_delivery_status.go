package web

import (
	"errors"

	"entrega/internal/store"
	"entrega/jobs"
)

// deliveryStatus is the state of a delivery in the API's words.
type deliveryStatus string

// The statuses of a delivery (1-product.md, "States of a task").
const (
	statusPending    deliveryStatus = "pending"
	statusProcessing deliveryStatus = "processing"
	statusRetrying   deliveryStatus = "retrying"
	statusDelivered  deliveryStatus = "delivered"
	statusExhausted  deliveryStatus = "exhausted"
	statusCancelled  deliveryStatus = "cancelled"
)

// reasonSnoozed is the reason of a delivery that was asked to come back later.
const reasonSnoozed = "snoozed"

// deliveryStatusOf words the state of a task as the status and reason of a delivery. A reason that would only repeat the status
// is left out.
func deliveryStatusOf(t jobs.Task) (status deliveryStatus, reason string) {
	switch t.State {
	case jobs.StateRunning:
		return statusProcessing, ""
	case jobs.StateRetryable:
		return statusRetrying, ""
	case jobs.StateSnoozed:
		return statusRetrying, reasonSnoozed
	case jobs.StateCompleted:
		return statusDelivered, ""
	case jobs.StateDiscarded:
		return statusExhausted, unless(t.Reason, jobs.ReasonAttemptsExhausted)
	case jobs.StateCancelled:
		return statusCancelled, unless(t.Reason, jobs.ReasonCancelled)
	default:
		return statusPending, ""
	}
}

// states turns the mapping round, for the filter of lists. The second state is empty where one has the status alone.
func (s deliveryStatus) states() (state, or jobs.TaskState) {
	switch s {
	case statusPending:
		return jobs.StatePending, ""
	case statusProcessing:
		return jobs.StateRunning, ""
	case statusRetrying:
		return jobs.StateRetryable, jobs.StateSnoozed
	case statusDelivered:
		return jobs.StateCompleted, ""
	case statusExhausted:
		return jobs.StateDiscarded, ""
	case statusCancelled:
		return jobs.StateCancelled, ""
	default:
		return "", ""
	}
}

func unless(reason, repeated string) string {
	if reason == repeated {
		return ""
	}
	return reason
}

// recode gives a conflict that has one code another.
func recode(err error, from, to string) error {
	var conflicting *store.ConflictError
	if errors.As(err, &conflicting) && conflicting.Code == from {
		return &store.ConflictError{Code: to, Sentence: conflicting.Sentence}
	}
	return err
}
