package web

import (
	"testing"

	"entrega/jobs"
)

// The table of 1-product.md, "States of a task".
func TestDeliveryStatus_FollowsTheTable(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		state  jobs.TaskState
		reason string
		status deliveryStatus
		shown  string
	}{
		{jobs.StatePending, "", "pending", ""},
		{jobs.StateRunning, "", "processing", ""},
		{jobs.StateRetryable, "failed", "retrying", ""},
		{jobs.StateSnoozed, "retry_after", "retrying", "snoozed"},
		{jobs.StateSnoozed, "lane_busy", "retrying", "snoozed"},
		{jobs.StateCompleted, "accepted", "delivered", ""},
		{jobs.StateDiscarded, "attempts_exhausted", "exhausted", ""},
		{jobs.StateDiscarded, "gone", "exhausted", "gone"},
		{jobs.StateDiscarded, "rejected", "exhausted", "rejected"},
		{jobs.StateDiscarded, "blocked", "exhausted", "blocked"},
		{jobs.StateDiscarded, "horizon", "exhausted", "horizon"},
		{jobs.StateDiscarded, "endpoint_disabled", "exhausted", "endpoint_disabled"},
		{jobs.StateCancelled, "cancelled", "cancelled", ""},
		{jobs.StateCancelled, "endpoint_disabled", "cancelled", "endpoint_disabled"},
	} {
		status, reason := deliveryStatusOf(jobs.Task{State: test.state, Reason: test.reason})
		if status != test.status || reason != test.shown {
			t.Errorf("%s, %s reads %s, %q; want %s, %q", test.state, test.reason, status, reason, test.status, test.shown)
		}
	}
}

func TestDeliveryStatus_FilterFindsEveryStateAgain(t *testing.T) {
	t.Parallel()
	for _, state := range jobs.TaskStates() {
		status, _ := deliveryStatusOf(jobs.Task{State: state})
		if first, second := status.states(); first != state && second != state {
			t.Errorf("tasks that are %s have the status %s, whose filter asks for %s and %q", state, status, first, second)
		}
	}
}
