// Package webhooks owns endpoints and what is delivered to them: their settings, secrets and health, the fan-out of events,
// the lane of each endpoint, signing, sending and reading the answer, and what people do about it (test, redeliver,
// reactivate).
//
// It classifies and never waits: whether and when something is tried again is decided by package jobs, and requests leave
// through the guarded door of internal/egress only. It knows nothing of pages, of the API's shape or of HTTP servers.
package webhooks
