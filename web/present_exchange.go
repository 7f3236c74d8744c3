package web

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/views"
)

// excerptBytes is how much of a body a page shows.
const excerptBytes = 16 << 10

// masked stands for what a viewer may not see.
const masked = "•••"

// presentExchange shows the request and the response of the chosen attempt; nil before there is any.
func presentExchange(v *visit, st story) *views.Exchange {
	r, x := st.chosen, st.excerpt
	if r == nil {
		return nil
	}
	e := &views.Exchange{Attempt: r.Seq}
	if x == nil {
		if r.RequestSHA256 != nil {
			e.Pruned = true
			return e
		}
		if r.Status == nil && r.ErrorType == nil {
			return nil // A kind that asks nobody, such as a fan-out.
		}
		e.Request.StartLine, e.NoResponse = "Nothing was sent.", sentenceOf(r)
		return e
	}
	e.Request = views.Message{
		StartLine: requestLine(v, orEmpty(x.RequestLine)), Headers: presentHeaders(v, x.RequestHeaders, nil),
		Body: presentPayload(v, x.RequestBody, x.RequestTruncated),
	}
	if r.Status == nil {
		e.NoResponse = sentenceOf(r)
		return e
	}
	e.Response = &views.Message{
		StartLine: statusLine(*r.Status), Headers: presentHeaders(v, x.ResponseHeaders, r),
		Body: presentPayload(v, x.ResponseBody, x.ResponseTruncated),
	}
	return e
}

// sentenceOf says why nothing came back.
func sentenceOf(r *jobs.Record) string {
	if r.Error != nil {
		return *r.Error
	}
	return "No answer: " + reasonWords(r.Reason) + "."
}

// requestLine hides path and query from viewers: both may hold keys.
func requestLine(v *visit, line string) string {
	if v.can(tenant.PermSeePayloads) {
		return line
	}
	method, _, _ := strings.Cut(line, " ")
	return method + " /" + masked
}

// presentHeaders shows headers in lower case, as HTTP/2 has them. r is given for a response: its Retry-After says how it was read.
func presentHeaders(v *visit, pairs [][2]string, r *jobs.Record) []views.Header {
	headers := make([]views.Header, 0, len(pairs))
	for _, pair := range pairs {
		h := views.Header{Name: strings.ToLower(pair[0]), Value: pair[1]}
		if !v.can(tenant.PermSeePayloads) {
			h.Value = masked
		}
		if r != nil && h.Name == "retry-after" {
			h.Note = retryAfterNote(r)
		}
		headers = append(headers, h)
	}
	return headers
}

func retryAfterNote(r *jobs.Record) string {
	wait := ""
	if r.WaitMS != nil {
		wait = fmt.Sprintf(": waits %s", shortTime(millis(*r.WaitMS)))
	}
	switch orEmpty(r.RetryAfterRead) {
	case jobs.RetryAfterUsed:
		return "used" + wait
	case jobs.RetryAfterCapped:
		return "longer than the policy allows, capped" + wait
	case jobs.RetryAfterIgnored:
		return "ignored: not a delay or date"
	default:
		return ""
	}
}

// presentPayload shows the first 16 KiB of a body as the bytes that it is made of. truncated says that there was more than body.
func presentPayload(v *visit, body []byte, truncated bool) views.Payload {
	p := views.Payload{Bytes: int64(len(body)), Truncated: truncated}
	if truncated {
		p.Bytes = 0 // What is kept of an exchange does not say how much there was.
	}
	if !v.can(tenant.PermSeePayloads) {
		p.Masked = true
		return p
	}
	if len(body) > excerptBytes {
		body, p.Truncated = body[:excerptBytes], true
	}
	if p.Truncated {
		body = wholeRunes(body)
	}
	if !utf8.Valid(body) {
		p.Binary = true
		return p
	}
	p.Text = string(body)
	return p
}

// wholeRunes takes off a character that a cut went through.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if start := len(b) - i; utf8.RuneStart(b[start]) {
			if !utf8.FullRune(b[start:]) {
				return b[:start]
			}
			return b
		}
	}
	return b
}
