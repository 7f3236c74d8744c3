// Package backoff stands in for the library of that name.
package backoff

// Retry calls operation.
func Retry(operation func() error) error { return operation() }
