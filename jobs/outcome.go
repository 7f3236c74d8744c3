package jobs

import (
	"errors"
	"time"
)

// A handler classifies and nothing else: it returns nil, one of the three outcomes below, or a plain error, which means
// "failed, try again as the policy says". It never waits, loops or computes when to come back.

// SnoozeError asks to come back later without spending an attempt.
type SnoozeError struct {
	// Delay is how long to stay away; it is bounded by the policy's cap and horizon.
	Delay time.Duration
	// Reason is the recorded word, such as "retry_after" or "lane_busy".
	Reason string
}

func (e *SnoozeError) Error() string { return "snoozed for " + e.Delay.String() + ": " + e.Reason }

// DiscardError says that no further attempt can help.
type DiscardError struct {
	Err    error
	Reason string
}

func (e *DiscardError) Error() string { return "discarded (" + e.Reason + "): " + errText(e.Err) }

// Unwrap gives the error that the handler saw.
func (e *DiscardError) Unwrap() error { return e.Err }

// CancelError says that there is nowhere left to deliver.
type CancelError struct {
	Err    error
	Reason string
}

func (e *CancelError) Error() string { return "cancelled (" + e.Reason + "): " + errText(e.Err) }

// Unwrap gives the error that the handler saw.
func (e *CancelError) Unwrap() error { return e.Err }

// Snooze asks to come back after d, spending no attempt.
func Snooze(d time.Duration, reason string) error { return &SnoozeError{Delay: d, Reason: reason} }

// Discard ends the task: err is permanent, reason is the recorded word (gone, rejected, blocked, …).
func Discard(err error, reason string) error { return &DiscardError{Err: err, Reason: reason} }

// Cancel ends the task because there is nowhere left to deliver.
func Cancel(err error, reason string) error { return &CancelError{Err: err, Reason: reason} }

// Class is what a handler's outcome means to Decide.
type Class string

// The classes, one for each kind of outcome.
const (
	ClassSuccess Class = "success"
	ClassRetry   Class = "retry"
	ClassSnooze  Class = "snooze"
	ClassDiscard Class = "discard"
	ClassCancel  Class = "cancel"
)

// ClassOf reads an outcome. The reason is the handler's own word, empty for success and plain errors; delay is set for a
// snooze only.
func ClassOf(err error) (class Class, reason string, delay time.Duration) {
	if err == nil {
		return ClassSuccess, "", 0
	}
	var snooze *SnoozeError
	var discard *DiscardError
	var cancel *CancelError
	switch {
	case errors.As(err, &snooze):
		return ClassSnooze, snooze.Reason, snooze.Delay
	case errors.As(err, &discard):
		return ClassDiscard, discard.Reason, 0
	case errors.As(err, &cancel):
		return ClassCancel, cancel.Reason, 0
	default:
		return ClassRetry, "", 0
	}
}

func errText(err error) string {
	if err == nil {
		return "no detail"
	}
	return err.Error()
}
