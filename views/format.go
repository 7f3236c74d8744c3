package views

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// nbsp keeps a number and its unit on one line.
const nbsp = "\u00a0"

// count writes an integer with separators: 184,203.
func count(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "−", digits[1:]
	}
	var b strings.Builder
	b.WriteString(sign)
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// countUpTo writes a count that was only taken up to a bound: "10,000+".
func countUpTo(n int, capped bool) string {
	if capped {
		return count(n) + "+"
	}
	return count(n)
}

// mostCounted is where counts of a page stop; one more means more than that.
const mostCounted = 10_000

// bounded writes a count that was taken up to mostCounted and one more.
func bounded(n int) string { return countUpTo(min(n, mostCounted), n > mostCounted) }

// plural writes a count with its noun: "1 delivery", "132 deliveries".
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// percent writes a ratio between 0 and 1 with up to two digits, and never
// rounds what is short of everything up to 100 %.
func percent(ratio float64) string {
	p := math.Floor(ratio*10000) / 100
	return strconv.FormatFloat(p, 'f', -1, 64) + nbsp + "%"
}

// size writes a number of bytes in binary units.
func size(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return fmt.Sprintf("%d%sB", bytes, nbsp)
	}
	value, exp := float64(bytes), -1
	for value >= unit && exp < 4 {
		value /= unit
		exp++
	}
	return trimZero(value, 1) + nbsp + [...]string{"KiB", "MiB", "GiB", "TiB", "PiB"}[exp]
}

// duration writes how long something took or will take, with the precision a
// person can use: 412 ms, 5.2 s, 29 min 36 s, 2 h 5 min, 5 d 3 h.
func duration(d time.Duration) string {
	if d >= time.Second && d < time.Minute {
		d = d.Round(100 * time.Millisecond)
	}
	switch {
	case d < 0:
		return "−" + duration(-d)
	case d == 0:
		return "0" + nbsp + "s"
	case d < time.Millisecond:
		return trimZero(float64(d)/float64(time.Millisecond), 2) + nbsp + "ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + nbsp + "ms"
	case d < time.Minute:
		return trimZero(d.Seconds(), 1) + nbsp + "s"
	case d < time.Hour:
		return pair(d, time.Minute, "min", time.Second, "s")
	case d < 24*time.Hour:
		return pair(d, time.Hour, "h", time.Minute, "min")
	default:
		return pair(d, 24*time.Hour, "d", time.Hour, "h")
	}
}

func pair(d, big time.Duration, bigUnit string, small time.Duration, smallUnit string) string {
	text := strconv.FormatInt(int64(d/big), 10) + nbsp + bigUnit
	if rest := int64(d % big / small); rest > 0 {
		text += " " + strconv.FormatInt(rest, 10) + nbsp + smallUnit
	}
	return text
}

// trimZero writes a number with at most the given digits after the point.
func trimZero(v float64, digits int) string {
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// jitter says how far a chosen wait lies from the policy's own: "jitter +3.1 %".
func jitter(base, chosen time.Duration) string {
	if base <= 0 {
		return ""
	}
	p := (float64(chosen)/float64(base) - 1) * 100
	sign := "+"
	if p < 0 {
		sign, p = "−", -p
	}
	return "jitter " + sign + strconv.FormatFloat(p, 'f', 1, 64) + nbsp + "%"
}

// relative writes an instant as seen from now: "2 min ago", "in 28 min".
// The panel's script counts on with the same words.
func relative(now, at time.Time) string {
	d := at.Sub(now)
	if d <= 0 {
		return ago(-d, at)
	}
	if d < time.Second {
		return "now"
	}
	return "in " + coarse(d, true)
}

func ago(d time.Duration, at time.Time) string {
	switch {
	case d < 5*time.Second:
		return "just now"
	case d < 30*24*time.Hour:
		return coarse(d, false) + " ago"
	default:
		return at.UTC().Format("2 Jan 2006")
	}
}

// coarse keeps one unit, and a second one for a wait short enough to sit out.
func coarse(d time.Duration, waiting bool) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + nbsp + "s"
	case waiting && d < 5*time.Minute:
		return pair(d, time.Minute, "min", time.Second, "s")
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + nbsp + "min"
	case waiting && d < 24*time.Hour:
		return pair(d, time.Hour, "h", time.Minute, "min")
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + nbsp + "h"
	default:
		return strconv.Itoa(int(d.Hours()/24)) + nbsp + "d"
	}
}

// absolute writes an instant in full, in UTC.
func absolute(at time.Time) string { return at.UTC().Format("2 Jan 2006, 15:04:05 UTC") }

// machine writes an instant for the datetime attribute.
func machine(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// short cuts a long identifier or hash in its middle.
func short(s string, head, tail int) string {
	r := []rune(s)
	if len(r) <= head+tail+1 {
		return s
	}
	return string(r[:head]) + "…" + string(r[len(r)-tail:])
}

// spaced turns a stored word into one to read: retry_scheduled, "retry scheduled".
func spaced(s string) string { return strings.ReplaceAll(s, "_", " ") }

// fixed writes a mean with two digits: 1.04.
func fixed(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
