package web

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

func presentPolicies(l views.Layout, v *visit, policies []jobs.Policy, shipped *jobs.PolicySet, profiles []string) views.PoliciesProps {
	p := views.PoliciesProps{Layout: l, Profile: v.project.Profile, Profiles: sameOptions(profiles), CanChoose: v.can(tenant.PermChooseProfile)}
	for _, policy := range policies {
		p.Rows = append(p.Rows, presentPolicyRow(policy, shipped))
	}
	return p
}

func presentPolicyRow(p jobs.Policy, shipped *jobs.PolicySet) views.PolicyRow {
	asShipped, ok := shipped.For(p.Kind, p.Profile)
	row := views.PolicyRow{Policy: refOf(p), Schedule: scheduleOf(p), Timeout: timeoutWords(p.Timeout), Exhausted: exhaustedWords(p),
		Waits: waitsWords(p), Periodic: p.Kind == "periodic", Own: !ok || asShipped.Hash != p.Hash}
	if p.Horizon > 0 {
		row.GivesUp = longTime(p.Horizon)
	}
	return row
}

// refOf names a policy. The profile says something where there is a choice: for webhooks, and where it is not the usual one.
func refOf(p jobs.Policy) views.PolicyRef {
	ref := views.PolicyRef{Kind: p.Kind, Version: p.Version, Hash: hex.EncodeToString(p.Hash[:])}
	if p.Kind == webhooks.Deliver.Name || p.Profile != jobs.DefaultProfile {
		ref.Profile = p.Profile
	}
	return ref
}

func scheduleOf(p jobs.Policy) views.Schedule {
	s := views.Schedule{Jitter: p.Jitter.Fraction, Full: p.Jitter.Full}
	for attempt := 1; attempt < p.Attempts; attempt++ {
		s.Waits = append(s.Waits, p.BaseWait(attempt))
	}
	return s
}

func timeoutWords(t jobs.Timeout) string {
	if t.Connect > 0 {
		return longTime(t.Total) + ", connect " + longTime(t.Connect)
	}
	return longTime(t.Total)
}

func exhaustedWords(p jobs.Policy) string {
	text := "discarded, with an alert"
	if rule := disableRule(p.Disable); rule != "" {
		text += "; the endpoint is disabled after " + rule
	}
	return text
}

// waitsWords writes the waits, and says the last one once where it repeats: "5 s, 5 min, 30 min, then 10 h each".
func waitsWords(p jobs.Policy) string {
	waits := scheduleOf(p).Waits
	if len(waits) == 0 {
		return "none"
	}
	last := len(waits) - 1
	repeats := last
	for repeats > 0 && waits[repeats-1] == waits[last] {
		repeats--
	}
	parts := make([]string, 0, repeats+1)
	for _, w := range waits[:repeats] {
		parts = append(parts, shortWait(w))
	}
	text := shortWait(waits[last])
	if repeats < last {
		text = "then " + text + " each"
	}
	return strings.Join(append(parts, text), ", ")
}

// shortWait writes a wait of a schedule in one unit or two: 5 s, 30 min, 4 min 16 s.
func shortWait(d time.Duration) string {
	switch {
	case d >= 2*time.Hour || d >= time.Hour && d%time.Minute == 0:
		return twoUnits(d, time.Hour, "h", time.Minute, "min")
	case d >= 2*time.Minute || d >= time.Minute && d%time.Minute == 0:
		return twoUnits(d, time.Minute, "min", time.Second, "s")
	default:
		return trimmed(d.Seconds()) + " s"
	}
}

func twoUnits(d, big time.Duration, bigUnit string, small time.Duration, smallUnit string) string {
	text := fmt.Sprintf("%d %s", d/big, bigUnit)
	if rest := d % big / small; rest > 0 {
		text += fmt.Sprintf(" %d %s", rest, smallUnit)
	}
	return text
}

func trimmed(f float64) string { return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64) }

func presentPolicy(l views.Layout, p jobs.Policy, shipped *jobs.PolicySet, versions []jobs.PolicyVersion, chosen int) views.PolicyProps {
	props := views.PolicyProps{Layout: l, Row: presentPolicyRow(p, shipped), Document: p.YAML()}
	for _, class := range slices.Sorted(maps.Keys(p.Classes)) {
		props.Classes = append(props.Classes, views.Fact{Label: classWords(class), Value: string(p.Classes[class])})
	}
	byVersion := map[int]jobs.Policy{}
	for _, version := range versions {
		byVersion[version.Version] = version.Policy
		props.Versions = append(props.Versions, views.PolicyVersion{Version: version.Version, Hash: hex.EncodeToString(version.Hash[:]),
			At: version.CreatedAt, Current: version.Hash == p.Hash})
	}
	now, known := byVersion[chosen]
	before, hasBefore := byVersion[chosen-1]
	if known && hasBefore {
		props.DiffOf, props.Diff = chosen, diffLines(before, now)
	}
	return props
}

// classWords reads a class of a policy: http.4xx, "HTTP 4xx".
func classWords(class string) string {
	if status, ok := strings.CutPrefix(class, "http."); ok {
		return "HTTP " + status
	}
	return capital(spaced(class))
}

// diffLines shows both documents as one, with the lines that differ marked.
func diffLines(before, after jobs.Policy) []views.DiffLine {
	changed := map[string]bool{}
	var lines []views.DiffLine
	for _, c := range jobs.Diff(before, after) {
		if c.Before != "" {
			lines = append(lines, views.DiffLine{Removed: true, Text: c.Key + ": " + c.Before})
		}
		if c.After != "" {
			lines = append(lines, views.DiffLine{Added: true, Text: c.Key + ": " + c.After})
		}
		changed[c.Key] = true
	}
	if len(changed) == 0 {
		return []views.DiffLine{{Text: "Nothing differs."}}
	}
	return lines
}

// policyValue names a policy in a form: "webhook.deliver/standard".
func policyValue(p jobs.Policy) string {
	ref := refOf(p)
	if ref.Profile == "" {
		return ref.Kind
	}
	return ref.Kind + "/" + ref.Profile
}

func policyOptions(policies []jobs.Policy) []views.Option {
	options := make([]views.Option, len(policies))
	for i, p := range policies {
		value := policyValue(p)
		options[i] = views.Option{Value: value, Label: strings.ReplaceAll(value, "/", ", ")}
	}
	return options
}
