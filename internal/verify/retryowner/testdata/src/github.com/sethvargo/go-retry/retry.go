// Package retry stands in for the library of that name.
package retry

// Do calls operation.
func Do(operation func() error) error { return operation() }
