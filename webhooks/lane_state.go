package webhooks

import (
	"context"
	"slices"
	"time"

	"entrega/jobs"
)

// observe takes in what the database says of the endpoint.
func (l *lanes) observe(ln *lane, h health, backlog bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.failing, ln.pauseUntil, ln.backlog = !h.failingSince.IsZero(), h.pauseUntil, backlog
}

// health takes in what an attempt changed.
func (l *lanes) health(ln *lane, h health) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.failing, ln.pauseUntil = !h.failingSince.IsZero(), h.pauseUntil
}

// succeeded remembers when the newest success started, and reports whether the endpoint was taken for healthy.
func (l *lanes) succeeded(ln *lane, startedAt time.Time) (healthy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if startedAt.After(ln.lastSuccess) {
		ln.lastSuccess = startedAt
	}
	return !ln.failing
}

func (l *lanes) lastSuccess(ln *lane) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ln.lastSuccess
}

// worked are the tasks of an endpoint that were worked here last.
func (l *lanes) worked(endpointID string) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln := l.byID[endpointID]; ln != nil {
		return slices.Clone(ln.done)
	}
	return nil
}

// pace waits until the endpoint's rate allows one more request, holding the place meanwhile. A wait that is too long for a
// worker is a snooze.
func (l *lanes) pace(ctx context.Context, ln *lane) error {
	r := ln.limiter.Reserve()
	delay := r.Delay()
	if delay == 0 {
		return nil
	}
	if delay > parkAtMost {
		r.Cancel()
		return jobs.Snooze(delay, reasonRate)
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		r.Cancel()
		return stopped(ctx)
	}
}
