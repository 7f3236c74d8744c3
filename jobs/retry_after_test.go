package jobs

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const longest = math.MaxInt64 / time.Second * time.Second

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(1994, time.November, 6, 8, 49, 0, 0, time.UTC)
	ignored, used := RetryAfterIgnored, RetryAfterUsed

	for _, test := range []struct {
		raw   string
		delay time.Duration
		read  string
	}{
		{"2", 2 * time.Second, used},
		{" 2 ", 2 * time.Second, used},
		{"\t2", 2 * time.Second, used},
		{"0", 0, used},
		{"007", 7 * time.Second, used},
		{"120", 2 * time.Minute, used},
		{"9223372036", 9223372036 * time.Second, used},
		{"9223372037", longest, used},
		{"99999999999999999999", longest, used},
		{"1735689600", 1735689600 * time.Second, used},
		{"soon", 0, ignored},
		{"-1", 0, ignored},
		{"inf", 0, ignored},
		{"nan", 0, ignored},
		{"2.5", 0, ignored},
		{"2,5", 0, ignored},
		{"+2", 0, ignored},
		{"0x2", 0, ignored},
		{"1e3", 0, ignored},
		{"1_000", 0, ignored},
		{"2s", 0, ignored},
		{"2 3", 0, ignored},
		{"\u0662", 0, ignored},
		{"\uff12", 0, ignored},
		{"\u00a02", 0, ignored},
		{"2\n", 0, ignored},
		{" ", 0, ignored},
		{"PT2S", 0, ignored},
		{"Sun, 06 Nov 1994 08:49:37 GMT", 37 * time.Second, used},
		{"Sunday, 06-Nov-94 08:49:37 GMT", 37 * time.Second, used},
		{"Sun Nov  6 08:49:37 1994", 37 * time.Second, used},
		{"Sunday, 06-Nov-94 08:49:37 BST", 0, ignored},
		{" Sun, 06 Nov 1994 08:49:37 GMT ", 37 * time.Second, used},
		{"Sun, 06 Nov 1994 08:48:59 GMT", 0, used},
		{"Thu, 01 Jan 1970 00:00:00 GMT", 0, used},
		{"Fri, 31 Dec 9999 23:59:59 GMT", math.MaxInt64, used},
		{"Sun, 06 Nov 1994 08:49:37 UTC", 0, ignored},
		{"Sun, 06 Nov 1994 08:49:37 EST", 0, ignored},
		{"Sun, 06 Nov 1994 08:49:37 +0200", 0, ignored},
		{"Sunday, 06-Nov-94 08:49:37 CET", 0, ignored},
		{"Sun, 06 Nov 1994 08:49:37", 0, ignored},
		{"Sun, 06 Nov 1994 08:49:37.5 GMT", 0, ignored},
		{"Sun, 31 Nov 1994 08:49:37 GMT", 0, ignored},
		{"1994-11-06T08:49:37Z", 0, ignored},
	} {
		want := &RetryAfter{Raw: test.raw, Delay: test.delay, Read: test.read}
		if diff := cmp.Diff(want, ParseRetryAfter(test.raw, now)); diff != "" {
			t.Errorf("ParseRetryAfter(%q): -want +got\n%s", test.raw, diff)
		}
	}
}

func TestParseRetryAfter_NoHeaderIsNoValue(t *testing.T) {
	t.Parallel()
	ra := ParseRetryAfter("", time.Now())
	if ra != nil || ra.Usable() {
		t.Errorf("ParseRetryAfter(\"\") = %v, want nil", ra)
	}
}

func TestParseRetryAfter_KeepsAtMost256BytesOfValidText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ raw, kept string }{
		{strings.Repeat("9", 10_000), strings.Repeat("9", 256)},
		{strings.Repeat("x", 256), strings.Repeat("x", 256)},
		{strings.Repeat("x", 255) + "\u00e9", strings.Repeat("x", 255)},
		{"a\x00b\xffc", "a\uFFFDb\uFFFDc"},
	} {
		if got := ParseRetryAfter(test.raw, time.Now()).Raw; got != test.kept {
			t.Errorf("%.20q… is kept as %d bytes %.20q…, want %d bytes %.20q…", test.raw, len(got), got, len(test.kept), test.kept)
		}
	}
	digits := ParseRetryAfter(strings.Repeat("9", 10_000), time.Now())
	if digits.Read != RetryAfterUsed || digits.Delay != longest {
		t.Errorf("10,000 digits are %s as %s, want the longest delay", digits.Read, digits.Delay)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "2", " 2 ", "soon", "-1", "9223372037", "Sun, 06 Nov 1994 08:49:37 GMT",
		"Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "\xff\x00", strings.Repeat("9", 300)} {
		f.Add(seed, int64(784111740))
	}
	f.Fuzz(func(t *testing.T, raw string, unix int64) {
		now := time.Unix(unix%(1<<40), 0)
		ra := ParseRetryAfter(raw, now)
		if (ra == nil) != (raw == "") {
			t.Fatalf("ParseRetryAfter(%q) = %v", raw, ra)
		}
		if ra == nil {
			return
		}
		if ra.Delay < 0 {
			t.Errorf("negative delay %s", ra.Delay)
		}
		if ra.Read != RetryAfterUsed && ra.Read != RetryAfterIgnored {
			t.Errorf("read as %q", ra.Read)
		}
		if ra.Read == RetryAfterIgnored && ra.Delay != 0 {
			t.Errorf("ignored, yet it asks for %s", ra.Delay)
		}
		if len(ra.Raw) > retryAfterRawLimit || !utf8.ValidString(ra.Raw) || strings.Contains(ra.Raw, "\x00") {
			t.Errorf("raw is kept as %q", ra.Raw)
		}
		if diff := cmp.Diff(ra, ParseRetryAfter(raw, now)); diff != "" {
			t.Errorf("read twice, it differs: %s", diff)
		}
	})
}
