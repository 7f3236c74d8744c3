package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"entrega/jobs"
	"entrega/views"
)

// outcomesMost bounds one simulation.
const outcomesMost = 100

// readOutcomes reads made-up outcomes, one per line: a status, perhaps with its Retry-After, or the word of a failure.
func readOutcomes(text string) (answers []jobs.Answer, problem string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		first, rest, _ := strings.Cut(line, " ")
		a := jobs.Answer{Class: strings.ToLower(first), RetryAfter: strings.TrimSpace(rest), Took: 100 * time.Millisecond}
		switch status, err := strconv.Atoi(first); {
		case err == nil && status >= 100 && status <= 599:
			a.Class = fmt.Sprintf("http.%d", status)
		case slices.Contains([]string{"timeout", "dns", "tls", "refused", "lost", "blocked", "configuration", "endpoint_disabled", "success"}, a.Class):
			a.RetryAfter = ""
		default:
			return nil, "“" + firstRunes(line, 40) + "” is no outcome. Use a status such as 503, a status with its Retry-After such as 429 120, or timeout, dns, tls, refused or lost."
		}
		if a.Class == "timeout" {
			a.Took = 10 * time.Second
		}
		if answers = append(answers, a); len(answers) > outcomesMost {
			return nil, fmt.Sprintf("These are more than %d outcomes.", outcomesMost)
		}
	}
	return answers, ""
}

func presentSimulation(props *views.SimulateProps, p jobs.Policy, answers []jobs.Answer, start time.Time) {
	const taskID = 1 // Jitter depends on the task; any will do to show it.
	steps := jobs.Simulate(p, taskID, answers, start)
	for _, step := range steps {
		d := step.Decision
		shown := views.SimulatedStep{Attempt: step.Attempt, Outcome: outcomeWords(step.Answer), Decision: string(d.Verdict),
			Reading: string(jobs.ReadingOf(d.Verdict, d.Reason)), Reason: d.Reason, Base: d.BaseWait, Chosen: d.Wait}
		if !d.NextAttemptAt.IsZero() {
			shown.At = d.NextAttemptAt.Sub(start)
		}
		switch d.Verdict {
		case jobs.VerdictAccepted:
			shown.Reason = "" // It only repeats the decision.
		case jobs.VerdictSnoozed:
			shown.Base = 0 // There is no jitter to tell of.
		}
		props.Steps = append(props.Steps, shown)
	}
	last := steps[len(steps)-1].Decision
	switch {
	case !last.NextAttemptAt.IsZero():
		props.Ends = "The task goes on: its next attempt is due " + longest(last.NextAttemptAt.Sub(start)) + " after the first."
	case last.Verdict == jobs.VerdictAccepted:
		props.Ends = "The task is completed."
	default:
		props.Ends = "The task ends: " + reasonWords(last.Reason) + "."
	}
	if left := len(answers) - len(steps); left > 0 {
		props.Ends += " " + capital(plural(left, "outcome is", "outcomes are")) + " left over."
	}
}

// longest writes a duration of a story in one unit.
func longest(d time.Duration) string {
	if d < 24*time.Hour {
		return shortWait(d)
	}
	return trimmed(d.Hours()/24) + " days"
}

func outcomeWords(a jobs.Answer) string {
	text := a.Class
	if status, err := strconv.Atoi(strings.TrimPrefix(a.Class, "http.")); err == nil {
		text = strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
	}
	if a.RetryAfter != "" {
		text += ", Retry-After: " + a.RetryAfter
	}
	return text
}
