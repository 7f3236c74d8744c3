package web

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
	"entrega/webhooks"
)

func presentEndpoints(l views.Layout, v *visit, f views.EndpointFilter, list store.List[webhooks.Endpoint],
	strips map[string][]webhooks.StripAttempt, loads map[string]load) views.EndpointsProps {
	p := views.EndpointsProps{Layout: l, Filter: f, CanCreate: v.can(tenant.PermManageEndpoints)}
	for _, e := range list.Rows {
		p.Rows = append(p.Rows, presentEndpointRow(v, l.Now, e, strips[e.ID], loads[e.ID]))
	}
	if list.Prev != "" {
		p.Pager.NewerURL = views.EndpointsURL(v.project.ID, f.Page("", list.Prev))
	}
	if list.Next != "" {
		p.Pager.OlderURL = views.EndpointsURL(v.project.ID, f.Page(list.Next, ""))
	}
	return p
}

func presentEndpointRow(v *visit, now time.Time, e webhooks.Endpoint, strip []webhooks.StripAttempt, l load) views.EndpointRow {
	health := healthOf(e, now)
	if health == views.Unused && len(strip) > 0 {
		health = views.Healthy
	}
	return views.EndpointRow{
		ID: e.ID, Name: endpointName(e), URL: urlFor(v, e.URL), Subscriber: e.Subscriber, Health: health, Note: healthNote(e, now),
		Strip: presentStrip(strip), Backlog: l.backlog, EventTypes: e.EventTypes,
		CanTest:       v.can(tenant.PermSendTest) && e.DisabledAt == nil,
		CanReactivate: v.can(tenant.PermReactivate) && e.DisabledAt != nil,
		CanRedeliver:  v.can(tenant.PermRedeliver) && e.DisabledAt == nil, Missed: l.redeliverable(),
	}
}

func presentEndpoint(l views.Layout, v *visit, d endpointDetail) views.EndpointProps {
	e, s := d.endpoint, d.stats
	disabled, paused := e.DisabledAt != nil, e.PausedAt != nil
	manage := v.can(tenant.PermManageEndpoints)
	p := views.EndpointProps{
		Layout: l, ID: e.ID, Name: endpointName(e), URL: urlFor(v, e.URL), Description: e.Description, Subscriber: e.Subscriber,
		Profile: d.policy.Profile, EventTypes: e.EventTypes, Headers: ownHeaders(v, e), Health: healthOf(e, l.Now),
		Strip: presentStrip(s.Strip), CreatedAt: e.CreatedAt, LastSuccessAt: lastSuccess(e, s.Strip),
		FailingSince: orZero(e.FailingSince), FailuresInARow: e.FailuresInARow, DisableRule: disableRule(d.policy.Disable),
		DisabledAt: orZero(e.DisabledAt), DisabledReason: disabledReason(e), PausedUntil: orZero(e.PauseUntil),
		Discarded: d.load.discarded, Missed: d.load.missed,
		Lane:    presentLane(e, s.Lane),
		Latency: views.Latency{P50: s.P50, P95: s.P95, Attempts: s.Answered},
		Clicks:  presentClicks(v, d.clicks),
		CanEdit: manage, CanDelete: manage, CanRotate: manage, CanDisable: manage && !disabled,
		CanTest:       v.can(tenant.PermSendTest) && !disabled,
		CanPause:      v.can(tenant.PermPauseEndpoint) && !disabled && !paused,
		CanResume:     v.can(tenant.PermPauseEndpoint) && !disabled && paused,
		CanReactivate: v.can(tenant.PermReactivate) && disabled,
		CanRedeliver:  v.can(tenant.PermRedeliver) && !disabled,
	}
	if p.Health == views.Unused && len(s.Strip) > 0 {
		p.Health = views.Healthy
	}
	if p.Health == views.Failing {
		p.DisablesAt = s.DisableAt
	}
	for _, secret := range d.secrets {
		p.Secrets = append(p.Secrets, views.Secret{Masked: "whsec_" + masked, CreatedAt: secret.CreatedAt, ExpiresAt: orZero(secret.ExpiresAt)})
	}
	for _, t := range d.deliveries {
		p.Deliveries = append(p.Deliveries, presentTaskRow(t, v))
	}
	return p
}

func presentLane(e webhooks.Endpoint, l webhooks.LaneStats) views.Lane {
	return views.Lane{InFlight: l.InFlight, MaxInFlight: e.MaxInFlight, Outstanding: l.Outstanding, Pending: l.Pending, Later: l.Later,
		RatePerSecond: e.RatePerSecond, OldestAt: l.OldestAt, Holder: l.Holder, HeldUntil: l.HeldUntil, PauseUntil: l.PauseUntil,
		Timeout: time.Duration(e.TimeoutSeconds) * time.Second}
}

// healthOf is an endpoint's condition at now, the gravest that holds. A receiver that asked to wait is told from one that fails.
func healthOf(e webhooks.Endpoint, now time.Time) views.Health {
	switch {
	case e.DisabledAt != nil:
		return views.Disabled
	case e.PausedAt != nil:
		return views.Paused
	case e.PauseUntil != nil && e.PauseUntil.After(now):
		return views.RateLimited
	case e.FailingSince != nil:
		return views.Failing
	case e.LastSuccessAt == nil && e.LastFailureAt == nil:
		return views.Unused
	default:
		return views.Healthy
	}
}

// healthNote says more about what is wrong.
func healthNote(e webhooks.Endpoint, now time.Time) string {
	switch healthOf(e, now) {
	case views.Disabled:
		return "disabled since " + clock(*e.DisabledAt, now) + ": " + disabledWord(e.DisabledReason)
	case views.Paused:
		return "paused by a person since " + clock(*e.PausedAt, now)
	case views.RateLimited:
		return "asked to wait until " + clock(*e.PauseUntil, now)
	case views.Failing:
		return "failing since " + clock(*e.FailingSince, now)
	default:
		return ""
	}
}

// clock writes an instant with the day only where it is another one.
func clock(at, now time.Time) string {
	at = at.UTC()
	if at.Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return at.Format("15:04 UTC")
	}
	return at.Format("2 Jan 15:04 UTC")
}

func disabledWord(r webhooks.DisabledReason) string {
	switch r {
	case webhooks.DisabledGone:
		return "the receiver answered 410, gone"
	case webhooks.DisabledFailing:
		return "it failed for too long"
	case webhooks.DisabledFailuresInARow:
		return "too many failures in a row"
	default:
		return "by a person"
	}
}

// disabledReason is the recorded word with what was noted beside it, without its full stop: the page adds one.
func disabledReason(e webhooks.Endpoint) string {
	if e.DisabledAt == nil {
		return ""
	}
	text := disabledWord(e.DisabledReason)
	if e.DisabledDetail != "" {
		text += ". " + e.DisabledDetail
	}
	return strings.TrimSuffix(text, ".")
}

// disableRule says in words when a policy disables an endpoint.
func disableRule(r jobs.DisableRule) string {
	switch {
	case r.FailingFor > 0 && r.FailuresInARow > 0:
		return fmt.Sprintf("%s of unbroken failure, or %d failures in a row", longTime(r.FailingFor), r.FailuresInARow)
	case r.FailingFor > 0:
		return longTime(r.FailingFor) + " of unbroken failure"
	case r.FailuresInARow > 0:
		return fmt.Sprintf("%d failures in a row", r.FailuresInARow)
	default:
		return ""
	}
}

// lastSuccess is the newest success: the strip may know a later one than the endpoint's row, which is written only when its
// health changes.
func lastSuccess(e webhooks.Endpoint, strip []webhooks.StripAttempt) time.Time {
	last := orZero(e.LastSuccessAt)
	for _, a := range strip {
		if a.Decision == jobs.VerdictAccepted && a.StartedAt.After(last) {
			last = a.StartedAt
		}
	}
	return last
}

func presentStrip(attempts []webhooks.StripAttempt) views.Strip {
	strip := make(views.Strip, 0, len(attempts))
	for _, a := range attempts {
		strip = append(strip, verdictTone(a.Decision))
	}
	return strip
}

// verdictTone colours an attempt by what was decided after it.
func verdictTone(d jobs.Verdict) views.Tone {
	switch d {
	case jobs.VerdictAccepted:
		return views.Good
	case jobs.VerdictRetryScheduled:
		return views.Warn
	case jobs.VerdictSnoozed:
		return views.Wait
	case jobs.VerdictPermanentFailure:
		return views.Bad
	default:
		return views.Calm
	}
}

// endpointName is what an endpoint is called: its description, else its host.
func endpointName(e webhooks.Endpoint) string {
	if e.Description != "" {
		return e.Description
	}
	return hostOf(e.URL)
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "endpoint"
	}
	return u.Host
}

// urlFor hides from viewers all of an address but its host: path and query may hold keys.
func urlFor(v *visit, raw string) string {
	if v.can(tenant.PermSeePayloads) {
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		return masked
	}
	return u.Scheme + "://" + u.Host + "/" + masked
}

// ownHeaders are an endpoint's headers, sorted. Values that look like credentials are hidden from everybody.
func ownHeaders(v *visit, e webhooks.Endpoint) []views.Header {
	shown := webhooks.MaskHeaders(e.Headers)
	headers := make([]views.Header, 0, len(shown))
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		h := views.Header{Name: strings.ToLower(name), Value: shown[name]}
		if !v.can(tenant.PermSeePayloads) {
			h.Value = masked
		}
		headers = append(headers, h)
	}
	return headers
}

func taskNumber(id int64) string { return strconv.FormatInt(id, 10) }
