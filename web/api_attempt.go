package web

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"entrega/jobs"
)

// attemptShown is one request to an endpoint, what was answered, and what was decided.
type attemptShown struct {
	Attempt       int              `json:"attempt" doc:"Counted from 1; an attempt that was snoozed is not spent, so the next has the same number." example:"2"`
	Trigger       jobs.Trigger     `json:"trigger" enum:"schedule,manual,redeliver,test" doc:"Why the attempt was made." example:"schedule"`
	StartedAt     time.Time        `json:"startedAt" example:"2026-03-01T12:00:05.018Z"`
	DurationMS    int64            `json:"durationMs" doc:"From the start to the last byte of the answer." example:"184"`
	ErrorType     *string          `json:"errorType" doc:"null for a success, else BlockedByPolicy, DnsFailure, TlsError, Timeout, ConnectionFailed, ConfigurationError, HttpError or Cancelled." example:"HttpError"`
	Phase         *string          `json:"phase" doc:"Where a Timeout struck: dns, connect, tls, headers or body."`
	StatusCode    *int             `json:"statusCode" doc:"The status that was answered; null without an answer." example:"503"`
	Decision      jobs.Verdict     `json:"decision" enum:"accepted,retry_scheduled,snoozed,permanent_failure,cancelled,unknown" example:"snoozed"`
	Reason        string           `json:"reason" doc:"Why it was decided so." example:"retry_after"`
	WaitMS        *int64           `json:"waitMs" doc:"How long the next attempt was put off; null when none was to come." example:"120000"`
	RetryAfter    *retryAfterShown `json:"retryAfter"`
	NextAttemptAt *time.Time       `json:"nextAttemptAt" doc:"When the next attempt was to be; null when none was to come." example:"2026-03-01T12:02:05.202Z"`
	Policy        policyRef        `json:"policy"`
	Peer          *string          `json:"peer" doc:"The address that was spoken to." example:"203.0.113.7:443"`
	Response      *responseShown   `json:"response"`
}

// retryAfterShown is a Retry-After header and how it was read.
type retryAfterShown struct {
	Raw  string `json:"raw" doc:"The header as it came." example:"120"`
	Read string `json:"read" enum:"used,capped,ignored" doc:"used, capped by the policy, or ignored because it says nothing." example:"used"`
}

// policyRef names the policy that decided.
type policyRef struct {
	Kind    string `json:"kind" example:"webhook.deliver"`
	Version int    `json:"version" doc:"Counted per kind and profile." example:"1"`
	Hash    string `json:"hash" doc:"SHA-256 of the policy's canonical form, in hex." example:"5c1d9f0e3b7a4f2c8d6e1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d"`
}

// responseShown is what is kept of an answer.
type responseShown struct {
	Headers   map[string][]string `json:"headers" doc:"The values of each header, in their order." example:"{\"Content-Type\":[\"text/plain\"]}"`
	Body      string              `json:"body" doc:"The first 16 KiB. Bytes that are not UTF-8 read U+FFFD." example:"try again in two minutes"`
	Truncated bool                `json:"truncated" doc:"The answer was longer." example:"false"`
}

// TransformSchema says in the document that some objects may be null.
func (attemptShown) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["retryAfter"] = orNullSchema(s.Properties["retryAfter"], "The Retry-After of the answer; null when it had none.")
	s.Properties["response"] = orNullSchema(s.Properties["response"], "What was answered; null without an answer, and when its retention has ended.")
	return s
}

// orNullSchema lets an object be null, for which huma has no tag.
func orNullSchema(s *huma.Schema, description string) *huma.Schema {
	return &huma.Schema{AnyOf: []*huma.Schema{s, {Type: "null"}}, Description: description}
}

func (a *api) listAttempts(ctx context.Context, c call, in *listAttemptsInput) (*listOutput[attemptShown], error) {
	task, err := a.deliveryByID(ctx, c, in.ID)
	if err != nil {
		return nil, err
	}
	list, err := jobs.ListAttempts(ctx, a.pool, c.project(), task.ID, in.page())
	if err != nil {
		return nil, err
	}
	return listOf(list, showAttempt), nil
}

type listAttemptsInput struct {
	DeliveryInput
	PageParams
}

func showAttempt(a jobs.AttemptWithExcerpt) attemptShown {
	r := a.Record
	shown := attemptShown{Attempt: r.Attempt, Trigger: r.Trigger, StartedAt: r.StartedAt, DurationMS: r.Duration().Milliseconds(),
		ErrorType: r.ErrorType, Phase: r.Phase, StatusCode: r.Status, Decision: r.Decision, Reason: r.Reason, WaitMS: r.WaitMS,
		NextAttemptAt: r.NextAttemptAt, Peer: r.Peer,
		Policy: policyRef{Kind: r.Kind, Version: r.PolicyVersion, Hash: hex.EncodeToString(r.PolicyHash)}}
	if r.RetryAfterRaw != nil && r.RetryAfterRead != nil {
		shown.RetryAfter = &retryAfterShown{Raw: *r.RetryAfterRaw, Read: *r.RetryAfterRead}
	}
	if r.Status != nil && a.Excerpt != nil {
		shown.Response = showResponse(a.Excerpt)
	}
	return shown
}

func showResponse(e *jobs.StoredExcerpt) *responseShown {
	shown := &responseShown{Headers: map[string][]string{}, Body: strings.ToValidUTF8(string(e.ResponseBody), "\uFFFD"), Truncated: e.ResponseTruncated}
	for _, pair := range e.ResponseHeaders {
		shown.Headers[pair[0]] = append(shown.Headers[pair[0]], pair[1])
	}
	return shown
}
