package main

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"entrega/internal/egress"
	"entrega/jobs"
)

// seedFailure is a way in which a receiver fails.
type seedFailure struct {
	class     string
	status    int
	errorType egress.ErrorType
	phase     egress.Phase
	sentence  string
	took      time.Duration
}

var seedFailures = []seedFailure{
	{"server", 500, egress.HttpError, "", "The receiver answered 500 Internal Server Error.", 80 * time.Millisecond},
	{"network", 0, egress.Timeout, egress.PhaseHeaders, "The receiver did not answer within 10 s.", 10 * time.Second},
	{"server", 502, egress.HttpError, "", "The receiver answered 502 Bad Gateway.", 40 * time.Millisecond},
	{"network", 0, egress.ConnectionFailed, egress.PhaseConnect, "The connection was refused.", 2 * time.Millisecond},
	{"network", 0, egress.TlsError, egress.PhaseTLS, "The certificate has expired.", 30 * time.Millisecond},
	{"network", 0, egress.DnsFailure, egress.PhaseDNS, "The name has no address.", 9 * time.Millisecond},
}

// The ways that end a delivery, or put it off.
var (
	seedGone      = seedFailure{"client", http.StatusGone, egress.HttpError, "", "The receiver answered 410 Gone.", 30 * time.Millisecond}
	seedRefused   = seedFailure{"client", http.StatusUnprocessableEntity, egress.HttpError, "", "The receiver answered 422 Unprocessable Entity.", 30 * time.Millisecond}
	seedThrottled = seedFailure{"throttle", http.StatusTooManyRequests, egress.HttpError, "", "The receiver answered 429 Too Many Requests.", 20 * time.Millisecond}
	seedDisabled  = seedFailure{sentence: "The endpoint was disabled before its turn came."}
)

// seedThrottledFor is how long the busiest receivers have asked for less, so that tasks wait for them.
const seedThrottledFor = 3 * time.Hour

// always is more failures than any policy has attempts.
const always = 1000

// play is how one delivery goes, attempt by attempt.
type play struct {
	endpoint *seedEndpoint
	event    seedEvent
	random   *rand.Rand
	// failures is how many attempts fail before one succeeds, throttled how many are put off before, and refused that no
	// attempt can succeed.
	failures, throttled int
	refused, excerpts   bool
}

func (f *filling) newPlay(e *seedEndpoint, ev seedEvent) *play {
	p := &play{endpoint: e, event: ev, random: rand.New(rand.NewPCG(f.random.Uint64(), f.random.Uint64())), excerpts: f.now.Sub(ev.at) < seedDetailed}
	throttled := e.throttleShare
	if e.subscriber == "" && f.now.Sub(ev.at) < seedThrottledFor {
		throttled = 300
	}
	switch lot := p.random.IntN(1000); {
	case lot < e.failureShare:
		p.failures = 1 + int(p.random.ExpFloat64())
	case lot < e.failureShare+throttled:
		p.throttled = 1
	case lot >= 996:
		p.refused = true
	case lot >= 994:
		p.failures = always
	}
	return p
}

// attempt is what the attempt leaves behind that starts at an instant.
func (p *play) attempt(number int, at time.Time) (jobs.Evidence, error) {
	e := p.endpoint
	switch {
	case !e.disabledAt.IsZero() && at.After(e.disabledAt):
		return jobs.Evidence{StartedAt: at, FinishedAt: at.Add(time.Millisecond)}, jobs.Discard(errors.New(seedDisabled.sentence), jobs.ReasonEndpointDisabled)
	case e.gone && !e.disabledAt.IsZero() && e.disabledAt.Sub(at) < time.Hour:
		ev, err := p.failed(at, seedGone)
		return ev, jobs.Discard(err, jobs.ReasonGone)
	case !e.failingSince.IsZero() && at.After(e.failingSince), number <= p.failures:
		return p.failed(at, seedFailures[(e.failure+p.random.IntN(10)/9)%len(seedFailures)])
	case p.throttled > 0:
		p.throttled--
		ev, _ := p.failed(at, seedThrottled)
		ev.RetryAfter = jobs.ParseRetryAfter("21600", at)
		return ev, jobs.Snooze(ev.RetryAfter.Delay, jobs.ReasonRetryAfter)
	case p.refused:
		ev, err := p.failed(at, seedRefused)
		return ev, jobs.Discard(err, jobs.ReasonRejected)
	default:
		took := 10*time.Millisecond + time.Duration(p.random.ExpFloat64()*float64(60*time.Millisecond))
		ev := p.exchange(at, took, http.StatusOK)
		ev.ResponseClass = "success"
		return ev, nil
	}
}

func (p *play) failed(at time.Time, f seedFailure) (jobs.Evidence, error) {
	ev := p.exchange(at, f.took+time.Duration(p.random.IntN(5000))*time.Microsecond, f.status)
	ev.ResponseClass, ev.ErrorType, ev.Phase, ev.Error = f.class, string(f.errorType), string(f.phase), f.sentence
	return ev, errors.New(f.sentence)
}

// exchange is a request and, with a status, its answer.
func (p *play) exchange(at time.Time, took time.Duration, status int) jobs.Evidence {
	ev := jobs.Evidence{Sent: true, StartedAt: at, FinishedAt: at.Add(took), Status: status, IdempotencyKey: p.event.id,
		Peer:    fmt.Sprintf("203.0.113.%d:443", 1+p.endpoint.index%250),
		Timings: jobs.Timings{DNS: took / 20, Connect: took / 10, TLS: took / 10, Total: took}}
	if status != 0 {
		ev.Timings.FirstByte = took / 10 * 9
	}
	body := fmt.Appendf(nil, `{"type":%q,"timestamp":%q,"data":%s}`, p.event.typ, p.event.at.Format(time.RFC3339Nano), p.event.data)
	sum := sha256.Sum256(body)
	ev.Request.SHA256 = sum[:]
	if !p.excerpts {
		return ev
	}
	ev.Request.Line, ev.Request.Body = "POST /webhooks", body
	ev.Request.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Entrega/" + version}, "Webhook-Id": {p.event.id},
		"Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(sum[:])}}
	if status != 0 {
		ev.Response.Header = http.Header{"Content-Type": {"text/plain"}, "Date": {at.Format(http.TimeFormat)}, "Server": {"nginx"}}
		ev.Response.Body = []byte(http.StatusText(status))
		sum := sha256.Sum256(ev.Response.Body)
		ev.Response.SHA256 = sum[:]
	}
	return ev
}
