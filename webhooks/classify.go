package webhooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"entrega/internal/egress"
	"entrega/jobs"
)

// The keys by which a policy names what happened, beside http.<status>.
const (
	classBlocked          = "blocked"
	classConfiguration    = "configuration"
	classEndpointDisabled = "endpoint_disabled"
)

// The response classes of the ledger.
const (
	responseSuccess  = "success"
	responseRedirect = "redirect"
	responseClient   = "client"
	responseThrottle = "throttle"
	responseServer   = "server"
	responseNetwork  = "network"
	responsePolicy   = "policy"
	responseUnknown  = "unknown"
)

// reading is what one answer, or its absence, means before any policy is asked.
type reading struct {
	success bool
	// class is the policy's key; empty for what no policy names, which is retried.
	class         string
	responseClass string
	status        int
	errorType     egress.ErrorType
	phase         egress.Phase
	// sentence is for people. It never holds an address that was looked up.
	sentence string
	// note is a remark about a success whose answer broke off.
	note       string
	retryAfter *jobs.RetryAfter
	// interrupted holds the cause when the attempt was broken off from our side before the receiver answered.
	interrupted error
}

// read gives an answer its meaning (3-retry.md, "HTTP answers to a webhook"). The status line decides where there is one: a
// body that broke off behind it changes the error's type and never what the receiver said.
func read(resp *egress.Response) reading {
	r := reading{status: resp.Status}
	if resp.Status != 0 {
		r.class = "http." + strconv.Itoa(resp.Status)
		r.retryAfter = jobs.ParseRetryAfter(resp.Header.Get("Retry-After"), resp.FinishedAt)
		r.responseClass = responseClassOf(resp.Status, r.retryAfter)
	}
	switch failure := resp.Failure; {
	case failure == nil && resp.Status/100 == 2:
		r.success, r.retryAfter = true, nil
		if resp.BodyError != nil {
			r.note = "The status came in full and decides; the body behind it broke off: " + resp.BodyError.Sentence
		}
	case failure == nil:
		r.errorType, r.sentence = egress.HttpError, httpSentence(resp.Status)
	default:
		r.readFailure(failure)
	}
	return r
}

func (r *reading) readFailure(failure *egress.Failure) {
	r.errorType, r.phase, r.sentence = failure.Type, failure.Phase, failure.Sentence
	if r.status != 0 {
		r.sentence = httpSentence(r.status) + " " + failure.Sentence
		return
	}
	switch failure.Type {
	case egress.BlockedByPolicy:
		r.class, r.responseClass = classBlocked, responsePolicy
	case egress.ConfigurationError:
		r.class, r.responseClass = classConfiguration, responsePolicy
	case egress.Interrupted, egress.Cancelled:
		r.responseClass, r.interrupted = responseUnknown, failure.Err
	default:
		r.responseClass = responseNetwork
	}
}

// responseClassOf sorts a status. A 503 that names a time is a receiver that asks for less, like a 429.
func responseClassOf(status int, ra *jobs.RetryAfter) string {
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && ra.Usable():
		return responseThrottle
	case status/100 == 2:
		return responseSuccess
	case status/100 == 3:
		return responseRedirect
	case status/100 == 4:
		return responseClient
	case status/100 == 5:
		return responseServer
	default:
		return responseUnknown
	}
}

func httpSentence(status int) string {
	answer := fmt.Sprintf("The receiver answered %d.", status)
	if text := http.StatusText(status); text != "" {
		answer = fmt.Sprintf("The receiver answered %d %s.", status, text)
	}
	switch {
	case status/100 == 3:
		return answer + " Redirects are not followed: give the endpoint the URL it leads to."
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return answer + " It refuses the signature or the credentials: send a test."
	default:
		return answer
	}
}

// deliveryError is a failed attempt as the job layer gets it. It reads as the sentence that people see.
type deliveryError struct {
	sentence string
	cause    error
}

func (e *deliveryError) Error() string { return e.sentence }

func (e *deliveryError) Unwrap() error { return e.cause }

// outcome turns a reading into what the job layer is told, by the policy's classes.
func (r reading) outcome(p jobs.Policy) error {
	if r.success {
		return nil
	}
	err := &deliveryError{sentence: r.sentence}
	if r.interrupted != nil {
		// River gives the task back without spending an attempt when it sees context.Canceled.
		err.cause = r.interrupted
		if !errors.Is(r.interrupted, context.Canceled) {
			err.cause = errors.Join(r.interrupted, context.Canceled)
		}
		return err
	}
	switch r.action(p) {
	case jobs.ActionSnooze:
		return jobs.Snooze(r.retryAfter.Delay, jobs.ReasonRetryAfter)
	case jobs.ActionGone:
		return jobs.Discard(err, jobs.ReasonGone)
	case jobs.ActionDiscard:
		return jobs.Discard(err, r.discardReason())
	case jobs.ActionCancel:
		return jobs.Cancel(err, r.discardReason())
	default:
		return err
	}
}

// action is the policy's, less a snooze that has no time to come back: that is a retry.
func (r reading) action(p jobs.Policy) jobs.Action {
	if r.class == "" {
		return jobs.ActionRetry
	}
	action := p.Action(r.class)
	if action == jobs.ActionSnooze && !r.retryAfter.Usable() {
		return jobs.ActionRetry
	}
	return action
}

func (r reading) discardReason() string {
	switch r.class {
	case classBlocked:
		return jobs.ReasonBlocked
	case classConfiguration:
		return jobs.ReasonConfiguration
	default:
		return jobs.ReasonRejected
	}
}

// pause is how long the whole lane stays away when the receiver asked for it; 0 is not at all.
func (r reading) pause(p jobs.Policy) time.Duration {
	if r.success || r.action(p) != jobs.ActionSnooze {
		return 0
	}
	limit := p.RetryAfterCap
	if limit <= 0 {
		limit = jobs.DefaultRetryAfterCap
	}
	return min(r.retryAfter.Delay, limit)
}
