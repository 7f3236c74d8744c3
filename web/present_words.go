package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// spaced turns a stored word into one to read: attempts_exhausted, "attempts exhausted".
func spaced(s string) string { return strings.ReplaceAll(s, "_", " ") }

// plural writes a count with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// shortTime writes a duration with the precision that a list has room for: 412 ms, 5.2 s, 3 min.
func shortTime(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "under 1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + " s"
	default:
		return longTime(d)
	}
}

// longTime writes a duration of a rule in its largest whole unit: 5 days, 36 hours, 90 seconds.
func longTime(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= day && d%day == 0:
		return plural(int(d/day), "day", "days")
	case d >= time.Hour && d%time.Hour == 0:
		return plural(int(d/time.Hour), "hour", "hours")
	case d >= time.Minute && d%time.Minute == 0:
		return plural(int(d/time.Minute), "minute", "minutes")
	default:
		return plural(int(d/time.Second), "second", "seconds")
	}
}

// orZero is the instant, or zero for none.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

// orEmpty is the text, or "" for none.
func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// capital writes a word with a capital first letter.
func capital(s string) string {
	for i, r := range s {
		return string(unicode.ToUpper(r)) + s[i+utf8.RuneLen(r):]
	}
	return s
}

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
