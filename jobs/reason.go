package jobs

// The recorded words for why a decision was what it was. They are written to the ledger and shown by the API, so a word
// never changes its meaning; a handler may give others of its own.
const (
	// ReasonAccepted is a success.
	ReasonAccepted = "accepted"
	// ReasonFailed is a plain failure that the policy retries.
	ReasonFailed = "failed"
	// ReasonCancelled is a person's wish, which wins over whatever the attempt would have led to.
	ReasonCancelled = "cancelled"
	// ReasonHorizon is a deadline that has passed, or that passes before the next attempt could start.
	ReasonHorizon = "horizon"
	// ReasonAttemptsExhausted is a budget of attempts that is used up.
	ReasonAttemptsExhausted = "attempts_exhausted"
	// ReasonGone is a receiver that wants nothing more, by 410.
	ReasonGone = "gone"
	// ReasonRejected is an answer that no repetition can change.
	ReasonRejected = "rejected"
	// ReasonBlocked is a target that the guard of outgoing calls refuses.
	ReasonBlocked = "blocked"
	// ReasonConfiguration is a URL or a header of ours that cannot be sent.
	ReasonConfiguration = "configuration"
	// ReasonEndpointDisabled is an endpoint that was disabled or deleted before the task's turn. Nothing was sent.
	ReasonEndpointDisabled = "endpoint_disabled"
	// ReasonUndecodable is a task whose arguments cannot be read.
	ReasonUndecodable = "undecodable_args"
	// ReasonDiscarded is a permanent failure whose handler gave no word of its own.
	ReasonDiscarded = "discarded"
	// ReasonWorkerLost is an attempt that never reported back.
	ReasonWorkerLost = "worker_lost"
	// ReasonPanic is a handler that panicked.
	ReasonPanic = "panic"
	// ReasonInterrupted is a shutdown that ended an attempt, which comes back without being charged.
	ReasonInterrupted = "interrupted"
	// ReasonRetryAfter is a receiver that named the time to come back.
	ReasonRetryAfter = "retry_after"
	// ReasonLaneBusy is an endpoint that has as many requests in flight as it takes. Nothing was sent.
	ReasonLaneBusy = "lane_busy"
)
