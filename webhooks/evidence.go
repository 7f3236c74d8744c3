package webhooks

import (
	"crypto/sha256"
	"net/http"
	"net/url"

	"entrega/internal/egress"
	"entrega/jobs"
)

// excerptBytes is how much of a body is kept.
const excerptBytes = 16 << 10

// note writes what one attempt did and what came back into its evidence. The signature that was sent is kept, the secrets
// that made it never come near.
func note(ev *jobs.Evidence, webhookID, requestLine string, req *egress.Request, resp *egress.Response, r reading) {
	ev.StartedAt, ev.FinishedAt = resp.StartedAt, resp.FinishedAt
	ev.Timings = jobs.Timings{DNS: resp.Timings.DNS, Connect: resp.Timings.Connect, TLS: resp.Timings.TLS,
		FirstByte: resp.Timings.FirstByte, Total: resp.Timings.Total}
	if resp.Peer.IsValid() {
		ev.Peer = resp.Peer.String()
	}
	ev.ResponseClass, ev.Status = r.responseClass, r.status
	ev.ErrorType, ev.Phase, ev.Error, ev.Note = string(r.errorType), string(r.phase), r.sentence, r.note
	ev.RetryAfter = r.retryAfter
	ev.IdempotencyKey = webhookID
	ev.Request = excerpt(requestLine, excerptHeader(req.Header), req.Body, false)
	ev.Response = excerpt("", resp.Header, resp.Body, resp.BodyTruncated)
}

func excerpt(line string, header http.Header, body []byte, truncated bool) jobs.Excerpt {
	e := jobs.Excerpt{Line: line, Header: header, Body: body, Truncated: truncated}
	if len(body) > 0 {
		sum := sha256.Sum256(body)
		e.SHA256 = sum[:]
	}
	if len(body) > excerptBytes {
		e.Body, e.Truncated = body[:excerptBytes], true
	}
	return e
}

// requestLineOf is method and target of a delivery as they are on the wire, without the version, which the connection chooses.
func requestLineOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return http.MethodPost
	}
	return http.MethodPost + " " + u.RequestURI()
}
