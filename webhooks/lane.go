package webhooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"entrega/jobs"
)

const (
	// laneWindow is how many deliveries of an endpoint are in River's hands at once; the rest waits in the table.
	laneWindow = 16
	// maxWaiting bounds the waiters of one lane. More than the window come when many retries are due at once.
	maxWaiting = 2 * laneWindow
	// keepDone is how many finished tasks a lane remembers: more than River has yet to mark, which it does in batches.
	keepDone = 1024
	// defaultMaxParked bounds the waiters of all lanes together, so that slow endpoints cannot take up every worker.
	defaultMaxParked = 100
	// parkAtMost is how long a task waits for a place before it gives its worker back.
	parkAtMost = 15 * time.Second
	// cooldown is how long new deliveries to a failing endpoint stay away, and those that a failed one held up.
	cooldown = 5 * time.Minute
	// busyDelay is how long a task that found no place stays away.
	busyDelay = 2 * time.Second
	// elsewhereDelay is how long a task stays away whose lane another node works.
	elsewhereDelay = time.Second
)

// The recorded words for why a delivery was put off without a request.
const (
	reasonPaused         = "endpoint_paused"
	reasonPausedByPerson = "endpoint_paused_by_person"
	reasonFailing        = "endpoint_failing"
	reasonElsewhere      = "lane_elsewhere"
	reasonRate           = "rate_limited"
	reasonNotReady       = "not_ready"
)

// lane bounds what is in flight to one endpoint: as many as it takes, or one while it fails. All fields are guarded by the
// mutex of its lanes.
type lane struct {
	projectID, endpointID string
	width                 int
	limiter               *rate.Limiter

	inFlight int
	waiting  parking
	// entering counts the tasks that hold on to the lane without a place yet.
	entering int
	lease    lease

	failing     bool
	pauseUntil  time.Time
	lastSuccess time.Time // start of the newest one seen here; the row may be behind
	backlog     bool      // deliveries wait in the table
	finished    int       // since the last promotion was asked for
	done        []int64   // tasks that were worked last, which River may not have marked yet
	idleSince   time.Time
}

// lanes are the lanes that this process works. It is safe for concurrent use.
type lanes struct {
	now       func() time.Time
	maxParked int
	// drained is told the id of an endpoint whose lane has room for its backlog. It must not block.
	drained func(endpointID string)

	mu     sync.Mutex
	byID   map[string]*lane
	parked int
}

func newLanes(now func() time.Time, maxParked int, drained func(endpointID string)) *lanes {
	return &lanes{now: now, maxParked: maxParked, drained: drained, byID: map[string]*lane{}}
}

// hold returns the endpoint's lane, set to the target's limits. It stays in memory until enter or drop.
func (l *lanes) hold(t *target) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byID[t.id]
	if ln == nil {
		ln = &lane{projectID: t.projectID, endpointID: t.id, limiter: rate.NewLimiter(rate.Inf, 1), idleSince: time.Now()}
		l.byID[t.id] = ln
	}
	ln.entering++
	ln.width = t.maxInFlight
	limit := rate.Inf
	if t.ratePerSecond > 0 {
		limit = rate.Limit(t.ratePerSecond)
	}
	if ln.limiter.Limit() != limit {
		ln.limiter.SetLimit(limit)
	}
	return ln
}

// drop lets go of a lane that was held and not entered.
func (l *lanes) drop(ln *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.entering--
	ln.rest()
}

// enter waits for a place in a lane that was held, in the order of task ids, and lets go of the hold. Its error is what the
// task's handler returns: a snooze, or one that wraps the context's. Without an error the caller must leave.
func (l *lanes) enter(ctx context.Context, ln *lane, taskID int64) error {
	w, err := l.take(ln, taskID)
	if w == nil {
		return err
	}
	timer := time.NewTimer(parkAtMost)
	defer timer.Stop()
	select {
	case err := <-w.turn:
		return err
	case <-timer.C:
		return l.giveUp(ln, w, jobs.Snooze(busyDelay, jobs.ReasonLaneBusy))
	case <-ctx.Done():
		return l.giveUp(ln, w, stopped(ctx))
	}
}

// take gives a place at once, refuses, or parks: then it returns the waiter.
func (l *lanes) take(ln *lane, taskID int64) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.entering--
	ln.done = slices.DeleteFunc(ln.done, func(id int64) bool { return id == taskID })
	defer ln.rest()
	switch {
	case l.now().Before(ln.pauseUntil):
		return nil, jobs.Snooze(ln.pauseUntil.Sub(l.now()), reasonPaused)
	case len(ln.waiting) == 0 && ln.inFlight < ln.room():
		ln.inFlight++
		return nil, nil
	case len(ln.waiting) >= maxWaiting || l.parked >= l.maxParked:
		return nil, jobs.Snooze(busyDelay, jobs.ReasonLaneBusy)
	default:
		w := newWaiter(taskID)
		ln.waiting.add(w)
		l.parked++
		l.admit(ln)
		return w, nil
	}
}

// giveUp takes a waiter out of the parking. Where its turn came in the same moment, that turn counts.
func (l *lanes) giveUp(ln *lane, w *waiter, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !ln.waiting.remove(w) {
		return <-w.turn
	}
	l.parked--
	ln.rest()
	return err
}

// leave gives a place back. After a failure that the policy retries the waiters are sent away, so that requests to a failing
// endpoint are probes, one at a time; so they are when it asked for a pause. Otherwise the next in order gets its turn.
func (l *lanes) leave(ln *lane, taskID int64, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.inFlight--
	ln.finished++
	if len(ln.done) == keepDone {
		ln.done = slices.Delete(ln.done, 0, 1)
	}
	ln.done = append(ln.done, taskID)
	pause := ln.pauseUntil.Sub(l.now())
	switch {
	case pause > 0:
		l.sendAway(ln, pause, reasonPaused)
	case failed && ln.failing:
		l.sendAway(ln, cooldown, reasonFailing)
	default:
		l.admit(ln)
	}
	if ln.backlog && (ln.finished >= laneWindow/2 || ln.idle()) {
		ln.finished = 0
		l.drained(ln.endpointID)
	}
	ln.rest()
}

func (l *lanes) admit(ln *lane) {
	for ln.inFlight < ln.room() {
		w := ln.waiting.next()
		if w == nil {
			return
		}
		l.parked--
		ln.inFlight++
		w.turn <- nil
	}
}

func (l *lanes) sendAway(ln *lane, delay time.Duration, reason string) {
	for w := ln.waiting.next(); w != nil; w = ln.waiting.next() {
		l.parked--
		w.turn <- jobs.Snooze(delay, reason)
	}
}

func (ln *lane) room() int {
	if ln.failing {
		return 1
	}
	return max(ln.width, 1)
}

func (ln *lane) idle() bool { return ln.inFlight == 0 && len(ln.waiting) == 0 && ln.entering == 0 }

// rest notes since when nobody uses the lane.
func (ln *lane) rest() {
	if ln.idle() {
		ln.idleSince = time.Now()
	}
}

// stopped is what a handler returns whose context ended before anything was sent. Out of time is no failure of the receiver's,
// so it spends no attempt; everything else keeps context.Canceled, and the cause, for the job layer to tell apart.
func stopped(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return jobs.Snooze(busyDelay, jobs.ReasonLaneBusy)
	}
	return fmt.Errorf("stopped before its turn: %w: %w", ctx.Err(), context.Cause(ctx))
}
