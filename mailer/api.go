package mailer

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strconv"
	"time"

	"entrega/internal/egress"
	"entrega/jobs"
)

// apiTransport posts each message to a mail API. It is safe for concurrent use.
type apiTransport struct {
	settings Settings
	door     *egress.Door
	now      func() time.Time
}

// Send makes one request. The idempotency key is the notification's id, the same at each attempt, where the API knows one.
func (t *apiTransport) Send(ctx context.Context, m Message) Result {
	req, err := t.request(m)
	if err != nil {
		return Result{Verdict: Refused, ResponseClass: "policy", ErrorType: string(egress.ConfigurationError), StartedAt: t.now(), FinishedAt: t.now(),
			Sentence: "No request can be made from the settings of the mail API: " + err.Error() + "."}
	}
	resp := t.door.Send(ctx, req)
	r := readAPI(resp, m.Policy)
	r.StartedAt, r.FinishedAt = resp.StartedAt, resp.FinishedAt
	r.Timings = jobs.Timings{DNS: resp.Timings.DNS, Connect: resp.Timings.Connect, TLS: resp.Timings.TLS, FirstByte: resp.Timings.FirstByte,
		Total: resp.Timings.Total}
	if resp.Peer.IsValid() {
		r.Peer = resp.Peer.String()
	}
	if r.Verdict == Accepted {
		r.ProviderID = t.settings.API.providerID(resp.Body)
	}
	// A key lets the API tell a second copy; without one it cannot.
	r.PossibleDuplicate = r.Verdict != Accepted && resp.Status == 0 && resp.WroteRequest && !t.settings.API.Shape.idempotent()
	sum := sha256.Sum256(req.Body)
	r.Request = jobs.Excerpt{Line: http.MethodPost + " " + req.URL, SHA256: sum[:],
		Header: http.Header{"Message-Id": {m.MessageID}, "Content-Length": {strconv.Itoa(len(req.Body))}}}
	r.Response = answerExcerpt(resp)
	return r
}

func answerExcerpt(resp *egress.Response) jobs.Excerpt {
	e := jobs.Excerpt{Header: resp.Header.Clone(), Body: append([]byte(nil), resp.Body...), Truncated: resp.BodyTruncated}
	if len(resp.Body) > 0 {
		sum := sha256.Sum256(resp.Body)
		e.SHA256 = sum[:]
	}
	return e
}

// request composes the request of the API's shape.
func (t *apiTransport) request(m Message) (*egress.Request, error) {
	body, err := t.settings.API.body(m)
	if err != nil {
		return nil, err
	}
	req := &egress.Request{URL: t.settings.API.url(), Body: body, AllowIdempotencyKey: true,
		Header:   http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
		Timeouts: egress.Timeouts{Total: m.Policy.Timeout.Total, Connect: m.Policy.Timeout.Connect}}
	if t.settings.API.Shape.idempotent() {
		req.Header.Set("Idempotency-Key", m.ID)
	}
	return req, t.settings.API.authorize(req, t.now())
}

// readAPI gives an answer its meaning by the policy's classes (3-retry.md, "Mail answers"). An answer that refuses our credentials
// is about the transport and never about the message.
func readAPI(resp *egress.Response, p jobs.Policy) Result {
	r := Result{Status: resp.Status, Reached: resp.Status != 0 && resp.Status != http.StatusUnauthorized && resp.Status != http.StatusForbidden}
	if resp.Status == 0 {
		return readNoAnswer(r, resp.Failure)
	}
	ra := jobs.ParseRetryAfter(resp.Header.Get("Retry-After"), resp.FinishedAt)
	r.ResponseClass = apiClass(resp.Status, ra)
	if resp.Status/100 == 2 {
		r.Verdict = Accepted
		if resp.BodyError != nil {
			r.Note = "The status came in full and decides; the body behind it broke off: " + resp.BodyError.Sentence
		}
		return r
	}
	r.ErrorType, r.RetryAfter = string(egress.HttpError), ra
	r.Sentence = "The mail API answered " + strconv.Itoa(resp.Status) + " " + http.StatusText(resp.Status) + "."
	if !r.Reached {
		r.Verdict, r.Sentence = Refused, r.Sentence+" It refuses the credentials or the sender: check the settings of the transport."
		return r
	}
	switch action := p.Action("http." + strconv.Itoa(resp.Status)); {
	case action == jobs.ActionSnooze && ra.Usable():
		r.Verdict = Later
	case action == jobs.ActionDiscard || action == jobs.ActionGone || action == jobs.ActionCancel:
		r.Verdict = Rejected
	default:
		r.Verdict = Failed
	}
	return r
}

// readNoAnswer is a request that never got a status.
func readNoAnswer(r Result, f *egress.Failure) Result {
	r.ErrorType, r.Phase, r.Sentence = string(f.Type), string(f.Phase), f.Sentence
	r.Verdict, r.ResponseClass = Failed, "network"
	switch f.Type {
	case egress.BlockedByPolicy, egress.ConfigurationError:
		r.Verdict, r.ResponseClass = Refused, "policy"
	case egress.Interrupted, egress.Cancelled:
		r.Verdict, r.ResponseClass, r.cause = Stopped, "unknown", f.Err
	}
	return r
}

func apiClass(status int, ra *jobs.RetryAfter) string {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && ra.Usable():
		return "throttle"
	case status/100 == 2:
		return "success"
	case status/100 == 3:
		return "redirect"
	case status/100 == 4:
		return "client"
	case status/100 == 5:
		return "server"
	default:
		return "unknown"
	}
}
