package jobs

import (
	"math"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// How a Retry-After was read.
const (
	// RetryAfterUsed is a value that was understood and is within the policy's cap.
	RetryAfterUsed = "used"
	// RetryAfterCapped is a value that was understood and is longer than the policy's cap, which took its place.
	RetryAfterCapped = "capped"
	// RetryAfterIgnored is a value that means nothing by RFC 9110, section 10.2.3.
	RetryAfterIgnored = "ignored"
)

// retryAfterRawLimit bounds how many bytes of the header are kept as evidence.
const retryAfterRawLimit = 256

// RetryAfter is one Retry-After header and how it was read.
type RetryAfter struct {
	// Raw is the value as it came, cut to 256 bytes. What no text column takes (broken UTF-8, NUL) reads U+FFFD.
	Raw string
	// Delay is the wait that the value asks for, never negative; 0 when it is ignored or names an instant in the past.
	Delay time.Duration
	// Read is used or ignored as ParseRetryAfter gives it. Whether a used value was then capped depends on the policy:
	// Decision.RetryAfterRead says so.
	Read string
}

// Usable tells whether the receiver named a time to come back. It is false for nil, which stands for no header.
func (ra *RetryAfter) Usable() bool { return ra != nil && ra.Read != RetryAfterIgnored }

// ParseRetryAfter reads the value of a Retry-After header at the instant it arrived. It answers nil for the empty string.
// Digits only are seconds, a number too large for a duration counts as the longest one. Otherwise the value must be an
// HTTP date in one of the three forms of RFC 9110, section 5.6.7, in GMT; one in the past means now. Blanks around the
// value are no part of it (section 5.5). Anything else is ignored, and kept as evidence.
func ParseRetryAfter(raw string, now time.Time) *RetryAfter {
	if raw == "" {
		return nil
	}
	ra := &RetryAfter{Raw: evidenceText(raw, retryAfterRawLimit), Read: RetryAfterIgnored}
	value := strings.Trim(raw, " \t")
	if delay, ok := parseSeconds(value); ok {
		ra.Delay, ra.Read = delay, RetryAfterUsed
		return ra
	}
	if at, ok := parseHTTPDate(value); ok {
		ra.Delay, ra.Read = max(at.Sub(now), 0), RetryAfterUsed
	}
	return ra
}

// parseSeconds reads delay-seconds = 1*DIGIT, where only the ten ASCII digits count. The sum stops growing at the longest
// duration, so that neither the digits nor the multiplication can overflow.
func parseSeconds(s string) (time.Duration, bool) {
	const most = math.MaxInt64 / int64(time.Second)
	var seconds int64
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		seconds = min(seconds*10+int64(c-'0'), most)
	}
	return time.Duration(seconds) * time.Second, s != ""
}

// parseHTTPDate takes the three forms that net/http.ParseTime takes, with two of its liberties less: a zone other than
// GMT, whose abbreviation would be read by this machine's own time zone, and fractions of a second.
func parseHTTPDate(s string) (time.Time, bool) {
	if strings.Contains(s, ".") {
		return time.Time{}, false
	}
	for _, layout := range []string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC} {
		if at, err := time.Parse(layout, s); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// evidenceText makes what a stranger sent fit a text column: at most limit bytes, valid UTF-8, without NUL.
func evidenceText(s string, limit int) string {
	s = s[:min(len(s), limit)]
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
