package mailer

import (
	"context"
	"errors"
	"time"

	"entrega/jobs"
)

// Transport hands one message over, once, and says what came of it. It never fails otherwise than through the result.
type Transport interface {
	Send(ctx context.Context, m Message) Result
}

// Verdict is what an answer means for the message, before caps and marks.
type Verdict string

// The verdicts.
const (
	// Accepted is the far side's word that it has the message. That is not delivery.
	Accepted Verdict = "accepted"
	// Failed is tried again as the policy says.
	Failed Verdict = "failed"
	// Later is a far side that asks for a pause; no attempt is spent.
	Later Verdict = "later"
	// Rejected is an answer that no repetition can change.
	Rejected Verdict = "rejected"
	// Refused is our fault or the transport's, not the message's: it pauses the transport and spends no attempt.
	Refused Verdict = "refused"
	// Unknown is an answer that was lost when the far side had the message already: it is sent again with the same bytes.
	Unknown Verdict = "unknown"
	// Stopped is an attempt that we broke off ourselves.
	Stopped Verdict = "stopped"
)

// The values of errorType that only mail has, beside those of package egress.
const errorSMTP = "SmtpError"

// Result is what came of one attempt.
type Result struct {
	Verdict Verdict
	// ResponseClass, Status, ErrorType, Phase and Sentence are as in the ledger.
	ResponseClass string
	Status        int
	// Enhanced is the enhanced status code (RFC 3463), such as 5.1.1; empty without one.
	Enhanced         string
	ErrorType, Phase string
	Sentence         string
	// Note is a remark about a success that was not quite clean.
	Note string
	// Suppress says that the recipient is not there and should get no more mail.
	Suppress bool
	// PossibleDuplicate says that the far side may have the message although the answer does not say so.
	PossibleDuplicate bool
	// ProviderID is the far side's name for the mail, which its feedback will use.
	ProviderID string
	// RetryAfter and Delay say how long to stay away, for Later.
	RetryAfter            *jobs.RetryAfter
	Delay                 time.Duration
	StartedAt, FinishedAt time.Time
	Timings               jobs.Timings
	Peer                  string
	Request, Response     jobs.Excerpt
	// Reached says that the transport took our credentials, whatever it said of the message.
	Reached bool
	// captured says that the mail was kept here and went nowhere.
	captured bool
	// reason replaces the recorded word of a rejection.
	reason string
	cause  error
}

// sendError is a failed attempt as the job layer gets it. It reads as the sentence that people see.
type sendError struct {
	sentence string
	cause    error
}

func (e *sendError) Error() string { return e.sentence }

func (e *sendError) Unwrap() error { return e.cause }

// outcome turns the result of an attempt into what the job layer is told.
func (r Result) outcome(pause time.Duration) error {
	err := &sendError{sentence: r.Sentence}
	switch r.Verdict {
	case Accepted:
		return nil
	case Later:
		if r.RetryAfter != nil {
			return jobs.Snooze(r.RetryAfter.Delay, jobs.ReasonRetryAfter)
		}
		return jobs.Snooze(r.Delay, ReasonRelayBusy)
	case Rejected:
		if r.reason != "" {
			return jobs.Discard(err, r.reason)
		}
		return jobs.Discard(err, jobs.ReasonRejected)
	case Refused:
		return jobs.Snooze(pause, ReasonTransportPaused)
	case Stopped:
		err.cause = r.cause
		if !errors.Is(r.cause, context.Canceled) {
			err.cause = errors.Join(r.cause, context.Canceled)
		}
		return err
	default:
		return err
	}
}

// note writes the attempt into its evidence. Neither the address nor a body enters it: the hash proves the bytes.
func (r Result) note(ev *jobs.Evidence, recipient string) {
	ev.StartedAt, ev.FinishedAt, ev.Timings, ev.Peer = r.StartedAt, r.FinishedAt, r.Timings, r.Peer
	ev.ResponseClass, ev.Status = r.ResponseClass, r.Status
	ev.ErrorType, ev.Phase, ev.Error = r.ErrorType, r.Phase, r.Sentence
	ev.RetryAfter, ev.Note = r.RetryAfter, r.Note
	if r.PossibleDuplicate {
		ev.Note = joinSentences(ev.Note, "The far side may have the message: another copy, with the same bytes, may be a duplicate.")
	}
	ev.Request, ev.Response = r.Request, r.Response
	if len(ev.Response.Body) > 0 {
		ev.Response.Body = []byte(scrub(string(ev.Response.Body), recipient))
	}
	for name, values := range ev.Response.Header {
		for i, v := range values {
			ev.Response.Header[name][i] = scrub(v, recipient)
		}
	}
}

func joinSentences(a, b string) string {
	if a == "" {
		return b
	}
	return a + " " + b
}
