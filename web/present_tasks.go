package web

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
)

func presentTasks(props *views.TasksProps, v *visit, counts jobs.TaskCounts, list store.List[jobs.Task]) {
	props.Periods = periods()
	props.Total, props.Counts = presentCounts(counts)
	for _, t := range list.Rows {
		row := presentTaskRow(t, v)
		for _, e := range props.Endpoints {
			if e.Value == t.EndpointID {
				row.To = e.Label
			}
		}
		props.Rows = append(props.Rows, row)
	}
	props.Pager = taskPager(v.project.ID, props.Filter, list)
	props.CanExport = true
	// All at once is for tasks of one state: what it touches is then what the list shows.
	state := jobs.TaskState(props.Filter.State)
	props.CanBulkRetry = v.can(tenant.PermRetry) && retryableState(state)
	props.CanBulkCancel = v.can(tenant.PermCancel) && state != "" && !finished(state)
	props.Matching, props.MatchingCapped = props.Total.Count, props.Total.Capped
	for _, n := range props.Counts {
		if props.Filter.State == string(n.State) {
			props.Matching, props.MatchingCapped = n.Count, n.Capped
		}
	}
}

// presentCounts caps each count at jobs.CountLimit, and the sum where a part is capped.
func presentCounts(counts jobs.TaskCounts) (total views.StateCount, all []views.StateCount) {
	for _, state := range views.States() {
		n := views.StateCount{State: state, Count: counts[jobs.TaskState(state)]}
		if n.Count > jobs.CountLimit {
			n.Count, n.Capped = jobs.CountLimit, true
		}
		total.Count += n.Count
		total.Capped = total.Capped || n.Capped
		all = append(all, n)
	}
	return total, all
}

func taskPager(project string, f views.TaskFilter, list store.List[jobs.Task]) views.Pager {
	var p views.Pager
	if list.Prev != "" {
		p.NewerURL = views.TasksURL(project, f.Page("", list.Prev))
	}
	if list.Next != "" {
		p.OlderURL = views.TasksURL(project, f.Page(list.Next, ""))
	}
	return p
}

func presentTaskRow(t jobs.Task, v *visit) views.TaskRow {
	return views.TaskRow{
		ID: strconv.FormatInt(t.ID, 10), State: views.State(t.State), Cancelling: t.Cancelling, Kind: t.Kind,
		Label: taskLabel(t), To: t.Label["host"], Attempt: t.Attempt, MaxAttempts: t.Max,
		LastResult: lastResult(t), NextAttemptAt: nextAttempt(t), NextNote: nextNote(t), CreatedAt: t.CreatedAt,
		CanRetry: retryable(t) && v.can(tenant.PermRetry), CanCancel: cancellable(t) && v.can(tenant.PermCancel),
	}
}

// taskLabel says what a task is about.
func taskLabel(t jobs.Task) string {
	for _, key := range []string{"event_type", "subject"} {
		if text := t.Label[key]; text != "" {
			return text
		}
	}
	return t.Kind
}

// lastResult is the newest attempt in a few words.
func lastResult(t jobs.Task) string {
	switch {
	case t.State == jobs.StateRunning:
		return "under way"
	case t.Last == nil && t.Reason != "":
		return reasonWords(t.Reason)
	case t.Last == nil:
		return "not tried yet"
	}
	took := shortTime(time.Duration(t.Last.DurationMS) * time.Millisecond)
	switch {
	case t.Last.Reason == jobs.ReasonEndpointDisabled:
		return "not sent: endpoint disabled"
	case jobs.ParseRetryAfter(t.Last.RetryAfter, t.CreatedAt).Usable(): // One that says nothing was not followed either.
		return fmt.Sprintf("%s, Retry-After %s", resultWord(t.Last.Status, t.Last.ErrorType), retryAfterWords(t.Last.RetryAfter))
	case t.Last.Status != 0 || t.Last.ErrorType != "":
		return resultWord(t.Last.Status, t.Last.ErrorType) + " in " + took
	case t.Last.Decision == jobs.VerdictAccepted:
		return "done in " + took
	default:
		return reasonWords(t.Last.Reason)
	}
}

// retryAfterWords is the header as it came, with its unit where it is a number of seconds.
func retryAfterWords(raw string) string {
	if _, err := strconv.ParseUint(raw, 10, 64); err == nil {
		return raw + " s"
	}
	return firstRunes(raw, 40)
}

// resultWord is what came back: a status, else the kind of failure.
func resultWord(status int, errorType string) string {
	switch {
	case status != 0:
		return strconv.Itoa(status)
	case errorType == "":
		return "no answer"
	}
	return errorWord(errorType)
}

// errorWord reads an attempt's errorType (3-retry.md) to people.
func errorWord(errorType string) string {
	switch errorType {
	case "BlockedByPolicy":
		return "blocked"
	case "Interrupted":
		return "interrupted"
	case "Cancelled":
		return "cancelled"
	case "DnsFailure":
		return "name not found"
	case "TlsError":
		return "TLS error"
	case "Timeout":
		return "timeout"
	case "ConnectionFailed":
		return "connection failed"
	case "ConfigurationError":
		return "cannot be sent"
	default:
		return errorType
	}
}

// reasonWords read the recorded words of reasons to people; an unknown one is read as it is.
func reasonWords(reason string) string {
	switch reason {
	case "":
		return ""
	case jobs.ReasonAttemptsExhausted:
		return "attempts used up"
	case jobs.ReasonHorizon:
		return "out of time"
	case jobs.ReasonGone:
		return "the receiver is gone"
	case jobs.ReasonRejected:
		return "rejected by the receiver"
	case jobs.ReasonBlocked:
		return "blocked by the guard"
	case jobs.ReasonConfiguration:
		return "cannot be sent"
	case jobs.ReasonEndpointDisabled:
		return "endpoint disabled"
	case jobs.ReasonUndecodable:
		return "cannot be read"
	case jobs.ReasonWorkerLost:
		return "its node was lost"
	case jobs.ReasonCancelled:
		return "cancelled by a person"
	default:
		return spaced(reason)
	}
}

// nextAttempt is when the next attempt is due, if that lies ahead of a waiting task.
func nextAttempt(t jobs.Task) time.Time {
	if t.State == jobs.StatePending && t.Attempt == 0 && t.Last == nil && !t.NextAttemptAt.After(t.CreatedAt.Add(time.Second)) {
		return time.Time{}
	}
	return t.NextAttemptAt
}

// nextNote says why no next attempt has a time.
func nextNote(t jobs.Task) string {
	switch t.State {
	case jobs.StateCompleted:
		return "done"
	case jobs.StateDiscarded, jobs.StateCancelled:
		return "no further attempt"
	case jobs.StateRunning:
		return "now"
	default:
		return "waits for its turn"
	}
}

// retryable tells whether a person's retry does something: the domain refuses the rest with a sentence.
func retryable(t jobs.Task) bool {
	return retryableState(t.State) || t.State == jobs.StatePending && !nextAttempt(t).IsZero()
}

func retryableState(s jobs.TaskState) bool {
	switch s {
	case jobs.StateRetryable, jobs.StateSnoozed, jobs.StateDiscarded, jobs.StateCancelled:
		return true
	default:
		return false
	}
}

// cancellable tells whether there is something left to cancel.
func cancellable(t jobs.Task) bool { return !finished(t.State) && !t.Cancelling }

func finished(s jobs.TaskState) bool {
	switch s {
	case jobs.StateCompleted, jobs.StateDiscarded, jobs.StateCancelled:
		return true
	default:
		return false
	}
}

// taskColumns and taskCells are the CSV of a task.
func taskColumns() []string {
	return []string{"id", "state", "kind", "about", "to", "attempt", "max_attempts", "last_result", "reason", "event_id",
		"endpoint_id", "created_at", "next_attempt_at", "finished_at"}
}

func taskCells(t jobs.Task) []string {
	return []string{strconv.FormatInt(t.ID, 10), string(t.State), t.Kind, taskLabel(t), t.Label["host"], strconv.Itoa(t.Attempt),
		strconv.Itoa(t.Max), lastResult(t), t.Reason, t.EventID, t.EndpointID, cellTime(t.CreatedAt), cellTime(t.NextAttemptAt), cellTime(t.FinalizedAt)}
}

// statusLine is the first line of an answer with this status.
func statusLine(status int) string {
	if text := http.StatusText(status); text != "" {
		return fmt.Sprintf("HTTP %d %s", status, text)
	}
	return fmt.Sprintf("HTTP %d", status)
}
