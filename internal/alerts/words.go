package alerts

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"entrega/jobs"
)

// number writes a count with separators: 1,204.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural writes a count with its noun.
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + one + "s"
}

// pick chooses a word by number.
func pick(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// bounded is plural for a count that stops at most: beyond it, it is "10,000 events or more".
func bounded(n, most int64, one string) string {
	if n > most {
		return plural(most, one) + " or more"
	}
	return plural(n, one)
}

// span writes a duration in its largest unit that it has one of: 3 days, 12 minutes, 40 seconds.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 2*day:
		return plural(int64(d/day), "day")
	case d >= 2*time.Hour:
		return plural(int64(d/time.Hour), "hour")
	case d >= time.Minute:
		return plural(int64(d/time.Minute), "minute")
	case d >= 10*time.Second:
		return plural(int64(d/time.Second), "second")
	default:
		return "a few seconds"
	}
}

// exact writes a duration that a policy names exactly: 5 days, 36 hours, 1h30m0s.
func exact(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d%day == 0:
		return plural(int64(d/day), "day")
	case d%time.Hour == 0:
		return plural(int64(d/time.Hour), "hour")
	case d%time.Minute == 0:
		return plural(int64(d/time.Minute), "minute")
	default:
		return d.String()
	}
}

// at writes an instant.
func at(t time.Time) string { return t.UTC().Format("2 Jan 15:04 UTC") }

// hostOf is what people call an endpoint by. It comes from the URL, never from a look-up.
func hostOf(raw, id string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return id
	}
	return u.Host
}

// statusWords is a status with its name.
func statusWords(status int) string {
	switch status {
	case 401:
		return "401 Unauthorized"
	case 403:
		return "403 Forbidden"
	default:
		return strconv.Itoa(status)
	}
}

// reasonWords are the recorded words for why tasks were discarded, as the end of a sentence.
func reasonWords(reason string) string {
	words := map[string]string{
		"":                           "no worker reported back",
		jobs.ReasonWorkerLost:        "no worker reported back",
		jobs.ReasonAttemptsExhausted: "the attempts were used up",
		jobs.ReasonHorizon:           "the time for trying was over",
		jobs.ReasonGone:              "the receiver answered 410 Gone",
		jobs.ReasonRejected:          "the receiver rejected what was sent",
		jobs.ReasonBlocked:           "the address is one that Entrega must not call",
		jobs.ReasonConfiguration:     "the URL or a header cannot be sent",
		jobs.ReasonEndpointDisabled:  "the endpoint was disabled",
		jobs.ReasonUndecodable:       "the arguments cannot be read",
		jobs.ReasonPanic:             "the program failed at it",
		"event_pruned":               "the event was removed by retention",
	}
	if w, ok := words[reason]; ok {
		return w
	}
	return fmt.Sprintf("it ended as %q", strings.ReplaceAll(reason, "_", " "))
}
