package jobs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PolicyChange is one difference between two policies. Before or After is empty where the policy has no such line.
type PolicyChange struct {
	// Key is that of the document, such as attempts or classes.http.410.
	Key           string
	Before, After string
}

func (c PolicyChange) String() string {
	switch {
	case c.Before == "":
		return "+ " + c.Key + ": " + c.After
	case c.After == "":
		return "- " + c.Key + ": " + c.Before
	default:
		return "~ " + c.Key + ": " + c.Before + " -> " + c.After
	}
}

// Diff lists what is different in b, in the order of a document: first what a has, then what only b has.
func Diff(a, b Policy) []PolicyChange {
	before, after := a.lines(), b.lines()
	var changes []PolicyChange
	for _, line := range before {
		if now := valueOf(after, line.key); now != line.value {
			changes = append(changes, PolicyChange{Key: line.key, Before: line.value, After: now})
		}
	}
	for _, line := range after {
		if valueOf(before, line.key) == "" {
			changes = append(changes, PolicyChange{Key: line.key, After: line.value})
		}
	}
	return changes
}

// YAML is the policy as a document that reads back as the same policy.
func (p Policy) YAML() string {
	var out strings.Builder
	inClasses := false
	for _, line := range p.lines() {
		class, ok := strings.CutPrefix(line.key, classesPrefix)
		switch {
		case !ok:
			fmt.Fprintf(&out, "%s: %s\n", line.key, line.value)
			continue
		case !inClasses:
			out.WriteString("classes:\n")
			inClasses = true
		}
		fmt.Fprintf(&out, "  %s: %s\n", class, line.value)
	}
	return out.String()
}

const classesPrefix = "classes."

// policyLine is a key and its value as a document writes them. No value is empty.
type policyLine struct{ key, value string }

func valueOf(lines []policyLine, key string) string {
	for _, line := range lines {
		if line.key == key {
			return line.value
		}
	}
	return ""
}

func (p Policy) lines() []policyLine {
	lines := []policyLine{{"kind", p.Kind}, {"profile", p.Profile}}
	add := func(key, value string) { lines = append(lines, policyLine{key, value}) }
	if len(p.Projects) > 0 {
		add("projects", "["+strings.Join(p.Projects, ", ")+"]")
	}
	add("attempts", strconv.Itoa(p.Attempts))
	if len(p.Waits) > 0 {
		waits := make([]string, len(p.Waits))
		for i, wait := range p.Waits {
			waits[i] = shortDuration(wait)
		}
		add("waits", "["+strings.Join(waits, ", ")+"]")
	}
	if b := p.Backoff; b != nil {
		add("backoff", flow("base", b.Base, "factor", b.Factor, "cap", b.Cap))
	}
	add("jitter", p.Jitter.String())
	add("timeout", flow("total", p.Timeout.Total, "connect", p.Timeout.Connect))
	if p.Horizon > 0 {
		add("horizon", shortDuration(p.Horizon))
	}
	add("retry_after", flow("cap", p.RetryAfterCap))
	if p.Disable != (DisableRule{}) {
		add("disable_endpoint", flow("failing_for", p.Disable.FailingFor, "failures_in_a_row", p.Disable.FailuresInARow))
	}
	for _, class := range slices.Sorted(maps.Keys(p.Classes)) {
		add(classesPrefix+class, string(p.Classes[class]))
	}
	return lines
}

// flow writes pairs of keys and values on one line and leaves out the zero values.
func flow(pairs ...any) string {
	var parts []string
	for pair := range slices.Chunk(pairs, 2) {
		var value string
		switch v := pair[1].(type) {
		case time.Duration:
			if v == 0 {
				continue
			}
			value = shortDuration(v)
		case int:
			if v == 0 {
				continue
			}
			value = strconv.Itoa(v)
		case float64:
			value = strconv.FormatFloat(v, 'f', -1, 64)
		}
		parts = append(parts, fmt.Sprintf("%s: %s", pair[0], value))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// String is the jitter as a document writes it: full, or a percentage.
func (j Jitter) String() string {
	if j.Full {
		return "full"
	}
	// The point is moved in the decimal digits: a multiplication by 100 would turn 7 % into 7.000000000000001 %.
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(j.Fraction, 'e', -1, 64), "e")
	shift, _ := strconv.Atoi(exponent)
	percent, _ := strconv.ParseFloat(fmt.Sprintf("%se%d", mantissa, shift+2), 64)
	return strconv.FormatFloat(percent, 'f', -1, 64) + "%"
}

// shortDuration is Duration.String without the zeros at its end: 10h, not 10h0m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
