// Package jobs owns retries.
package jobs

// Job is one attempt.
type Job[T any] struct{ Args T }
