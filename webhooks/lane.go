package webhooks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"entrega/jobs"
)

const (
	// laneWindow is how many deliveries of an endpoint are in River's hands at once, at most; the rest waits in the table.
	laneWindow = 256
	// maxWaiting bounds the waiters of one lane. More than the window come when many retries are due at once.
	maxWaiting = 2 * laneWindow
	// defaultMaxParked bounds the waiters of all lanes together, so that slow endpoints cannot take up every worker.
	defaultMaxParked = 700
	// firstAppetite is how many deliveries a lane with a backlog asks for until it has shown how fast it is, and leastAppetite
	// how few when it is slow.
	firstAppetite = 64
	leastAppetite = 4
	// slowAfter is how long a lane may make no progress before its waiters go back to the table and give up their workers.
	slowAfter = 2 * time.Second
	// orderPatience is how long a lane one wide waits for a task that is due before and does not come: longer than the others
	// need to take over from a dead node, and shorter than a worker may wait.
	orderPatience = 30 * time.Second
	// shownAfter is when the table surely shows what was sent back to it: River writes that in batches.
	shownAfter = time.Second
	// paceAtMost is how long a delivery holds its place while it waits for the endpoint's rate.
	paceAtMost = 15 * time.Second
	// cooldown is how long new deliveries to a failing endpoint stay away, and those that a failed one held up.
	cooldown = 5 * time.Minute
	// busyDelay is how long a delivery that went back to the table stays there, should nobody promote it before.
	busyDelay = time.Minute
	// elsewhereDelay is how long a task stays away whose lane another node works.
	elsewhereDelay = time.Second
	// comesSoon is how far ahead a task counts that stays away for that long: it keeps its place in the order.
	comesSoon = elsewhereDelay + elsewhereDelay/10
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

// lane bounds what is in flight to one endpoint: as many as it takes, or one while it fails, and from there twice as many with
// each run of successes. All fields are guarded by the mutex of its lanes.
type lane struct {
	projectID, endpointID string
	width                 int
	limiter               *rate.Limiter

	ramp      int // how many may be in flight by now
	successes int // in a row, since ramp changed
	inFlight  int
	waiting   parking
	order     order
	// entering counts the tasks that hold on to the lane without a place yet.
	entering int
	lease    lease
	leasing  chan struct{} // open while somebody asks for the lease

	known      briefing  // what was read last
	since      time.Time // what was asked for before is not taken in
	refreshing bool
	healthAt   time.Time // when an attempt changed the health that a read may not have seen
	failing    bool
	pauseUntil time.Time
	// lastSuccess is the start of the newest one seen here; the row may be behind.
	lastSuccess time.Time

	// backlog tells that deliveries wait in the table, appetite how many the lane wants in River's hands meanwhile.
	backlog    bool
	appetite   int
	finished   int // since the last promotion was asked for
	promotedAt time.Time
	// limit is the last task that may come while lower ones wait in the table; 0 is none. It was set at limitedAt, and the last
	// task was sent back at heldAt, which the table shows a moment later.
	limit     int64
	limitedAt time.Time
	heldAt    time.Time
	// claimedTo is the last task that was claimed; none below it waits in the table, as far as was seen at seenAt and told since.
	claimedTo  int64
	seenAt     time.Time
	askedAt    time.Time // for a promotion, by look
	progressAt time.Time
	idleSince  time.Time
}

// lanes are the lanes that this process works. It is safe for concurrent use.
type lanes struct {
	now       func() time.Time
	maxParked int
	// drained is told the id of an endpoint whose lane has room for its backlog, left that of one whose lane was given up, and unsure
	// a lane one wide that does not know what comes first. None may block.
	drained func(endpointID string)
	left    func(endpointID string)
	unsure  func(ln *lane)

	mu     sync.Mutex
	byID   map[string]*lane
	parked int
}

func newLanes(now func() time.Time, maxParked int, drained, left func(endpointID string), unsure func(ln *lane)) *lanes {
	return &lanes{now: now, maxParked: maxParked, drained: drained, left: left, unsure: unsure, byID: map[string]*lane{}}
}

// hold returns the endpoint's lane, set to the target's limits. It stays in memory until enter or drop.
func (l *lanes) hold(t *target) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byID[t.id]
	if ln == nil {
		now := time.Now()
		ln = &lane{projectID: t.projectID, endpointID: t.id, limiter: rate.NewLimiter(rate.Inf, 1), ramp: 1, appetite: firstAppetite,
			idleSince: now, progressAt: now}
		l.byID[t.id] = ln
	}
	ln.entering++
	l.adopt(ln, t)
	return ln
}

// adopt takes over a target's limits.
func (l *lanes) adopt(ln *lane, t *target) {
	ln.width = t.maxInFlight
	limit := rate.Inf
	if t.ratePerSecond > 0 {
		limit = rate.Limit(t.ratePerSecond)
	}
	if ln.limiter.Limit() != limit {
		ln.limiter.SetLimit(limit)
	}
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
	select {
	case err := <-w.turn:
		return err
	case <-ctx.Done():
		return l.giveUp(ln, w, stopped(ctx))
	}
}

// take gives a place at once, refuses, or parks: then it returns the waiter.
func (l *lanes) take(ln *lane, taskID int64) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.entering--
	ln.order.arrived(taskID)
	defer ln.rest()
	if pause := ln.pauseUntil.Sub(l.now()); pause > 0 {
		return nil, jobs.Snooze(pause, reasonPaused)
	}
	if ln.limit > 0 && taskID > ln.limit {
		return nil, l.handBack(ln, taskID)
	}
	w := newWaiter(taskID)
	ln.waiting.add(w)
	l.parked++
	l.admit(ln)
	if l.parked > l.maxParked || len(ln.waiting) > maxWaiting {
		if last := ln.waiting.last(); last != nil {
			l.sendBack(ln, last)
		}
	}
	select {
	case err := <-w.turn:
		return nil, err
	default:
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
	l.admit(ln)
	ln.rest()
	return err
}

// result is what came of a place in the lane.
type result int

const (
	resultNone result = iota // nothing was sent
	resultSuccess
	resultFailure   // will be tried again
	resultRejection // will not
)

// leave gives a place back. After a failure that the policy retries the waiters are sent away, so that requests to a failing
// endpoint are probes, one at a time; so they are when it asked for a pause. Otherwise the next in order gets its turn.
func (l *lanes) leave(ln *lane, taskID int64, r result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.inFlight--
	ln.progressAt = time.Now()
	ln.order.finished(taskID)
	ln.climb(r)
	pause := ln.pauseUntil.Sub(l.now())
	switch {
	case pause > 0:
		l.sendAway(ln, pause, reasonPaused)
	case r == resultFailure && ln.failing:
		l.sendAway(ln, cooldown, reasonFailing)
	default:
		l.admit(ln)
	}
	ln.rest()
}

// settled notes that a task which had a place here is finished in the table, so that another may take its place in the window.
func (l *lanes) settled(ln *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.finished++
	if ln.backlog && (ln.finished >= max(ln.appetite/2, 1) || ln.idle()) {
		ln.finished = 0
		l.drained(ln.endpointID)
	}
}

// climb doubles what may be in flight with each run of successes as long as that, and falls to one with a failure.
func (ln *lane) climb(r result) {
	switch r {
	case resultSuccess:
		if ln.successes++; ln.successes >= ln.ramp {
			ln.ramp, ln.successes = min(2*ln.ramp, max(ln.width, 1)), 0
		}
	case resultFailure, resultRejection:
		ln.ramp, ln.successes = 1, 0
	}
}

// admit gives turns as far as there is room. In a lane one wide the first waiter must be known to be the first of all.
func (l *lanes) admit(ln *lane) {
	for ln.inFlight < ln.room() && len(ln.waiting) > 0 {
		if ln.width <= 1 && !ln.order.allows(ln.waiting[0].taskID) {
			if ln.order.asks(ln.waiting[0].taskID) {
				l.unsure(ln)
			}
			return
		}
		w := ln.waiting.next()
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

// sendBack lets a waiter wait in the table. It must be the last in order, since whoever comes behind it must wait there too.
func (l *lanes) sendBack(ln *lane, w *waiter) {
	ln.waiting.remove(w)
	l.parked--
	ln.limit, ln.limitedAt = w.taskID-1, time.Now()
	w.turn <- l.handBack(ln, w.taskID)
}

// handBack is the answer to a task that waits in the table from now on, in the order of ids, until it is promoted.
func (l *lanes) handBack(ln *lane, taskID int64) error {
	if ln.width <= 1 {
		ln.order.expect(taskID)
	}
	ln.backlog, ln.heldAt = true, time.Now()
	ln.lookAnew()
	return jobs.Snooze(busyDelay, jobs.ReasonLaneBusy)
}

func (ln *lane) room() int {
	if ln.failing {
		return 1
	}
	return max(min(ln.width, ln.ramp), 1)
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
func stopped(ctx context.Context) error { return stoppedFor(ctx, jobs.ReasonLaneBusy) }

// stoppedFor is stopped with the word for why a task without time left comes again.
func stoppedFor(ctx context.Context, reason string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return jobs.Snooze(notReadyDelay, reason)
	}
	return fmt.Errorf("stopped before its turn: %w: %w", ctx.Err(), context.Cause(ctx))
}
