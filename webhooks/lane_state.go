package webhooks

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"entrega/jobs"
)

// briefing is what was read of the lane's endpoint last.
func (l *lanes) briefing(ln *lane) briefing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ln.known
}

// refreshes reports whether the caller should read the endpoint again, because nobody else does.
func (l *lanes) refreshes(ln *lane) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln.refreshing {
		return false
	}
	ln.refreshing = true
	return true
}

// observe takes in what the database says of the endpoint, unless that is older than what is known.
func (l *lanes) observe(ln *lane, b briefing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.refreshing = false
	if b.asked.Before(ln.known.asked) || b.asked.Before(ln.since) {
		return
	}
	ln.known = b
	if b.asked.After(ln.healthAt) {
		l.setHealth(ln, b.health)
	}
}

// forget has the endpoints of a project read again before anything is sent to them.
func (l *lanes) forget(project string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ln := range l.byID {
		if project == "" || ln.projectID == project {
			ln.known, ln.since = briefing{}, time.Now()
		}
	}
}

// health takes in what an attempt changed.
func (l *lanes) health(ln *lane, h health) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.healthAt, ln.known = time.Now(), briefing{}
	ln.since = ln.healthAt
	l.setHealth(ln, h)
}

func (l *lanes) setHealth(ln *lane, h health) {
	ln.failing, ln.pauseUntil = !h.failingSince.IsZero(), h.pauseUntil
	if ln.failing {
		ln.ramp, ln.successes = 1, 0
	}
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

// resize takes over a newer target's limits.
func (l *lanes) resize(ln *lane, t *target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adopt(ln, t)
}

// question is what a lane one wide asks the table: what is due behind a task, and what waits before the first that has come.
func (l *lanes) question(ln *lane) (after, first int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(ln.waiting) > 0 {
		first = ln.waiting[0].taskID
	}
	return ln.order.through, first
}

// learn tells a lane one wide what is due. Without an answer it is asked again with the next task.
func (l *lanes) learn(ln *lane, due []int64, through int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.order.looking = false
	if !ok {
		return
	}
	if len(ln.waiting) > 0 {
		through = max(through, ln.waiting[0].taskID)
	}
	ln.order.learn(due, through, ln.waiting.has)
	l.admit(ln)
}

// wants says how much of an endpoint's backlog its lane here could use, and behind which task all must wait in the table.
func (l *lanes) wants(endpointID string) (appetite int, limit int64, own bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byID[endpointID]
	if ln == nil || !ln.lease.good() {
		return laneWindow, 0, false
	}
	return ln.appetite, ln.limit, true
}

// claim is what an endpoint's lane may take from the table at once. A lane that is not ours, or fails, or is paused, or has sent some back
// to the table may not.
func (l *lanes) claim(endpointID string) (c jobs.Claim, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byID[endpointID]
	if ln == nil || !ln.lease.good() || ln.failing || ln.limit > 0 || l.now().Before(ln.pauseUntil) {
		return c, false
	}
	now := time.Now()
	if now.Sub(ln.seenAt) > shownAfter {
		ln.claimedTo = 0
	}
	if ln.claimedTo == 0 {
		ln.seenAt = now
	}
	c = jobs.Claim{EndpointID: endpointID, Window: ln.appetite, After: ln.claimedTo}
	if ln.width <= 1 {
		c.Soon, c.Known = comesSoon, ln.order.through
	}
	return c, true
}

// claimed takes in what a claim brought.
func (l *lanes) claimed(c jobs.Claimed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byID[c.EndpointID]
	if ln == nil {
		return
	}
	if len(c.IDs) > 0 && !ln.seenAt.IsZero() {
		ln.claimedTo = c.IDs[len(c.IDs)-1]
	}
	l.brought(ln, c.IDs, c.Room <= 0 || c.Found >= c.Room)
	if len(c.Order) > 0 && len(c.IDs) > 0 {
		ln.order.learn(c.Order, c.IDs[len(c.IDs)-1], ln.waiting.has)
		l.admit(ln)
	}
}

// added notes that something new waits for an endpoint, and reports whether its lane is worked here.
func (l *lanes) added(endpointID string) (own bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byID[endpointID]
	if ln == nil || !ln.lease.good() {
		return false
	}
	ln.lookAnew()
	return true
}

// lookAnew has the next claim look at all that waits: something may have come before what was claimed.
func (ln *lane) lookAnew() { ln.claimedTo, ln.seenAt = 0, time.Time{} }

// promoted takes in what a promotion brought: ids, of as many as there was room for.
func (l *lanes) promoted(endpointID string, ids []int64, room int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.byID[endpointID]
	if ln == nil {
		return
	}
	l.brought(ln, ids, room <= 0 || len(ids) >= room)
}

// brought adapts the lane's appetite, and what it knows of its backlog: whether more may wait.
func (l *lanes) brought(ln *lane, ids []int64, more bool) {
	now := time.Now()
	if len(ids) > 0 {
		switch since := now.Sub(ln.promotedAt); {
		case since < slowAfter/8:
			ln.appetite = min(2*ln.appetite, laneWindow)
		case since > slowAfter:
			ln.appetite = max(ln.appetite/2, min(2*ln.room(), laneWindow), leastAppetite)
		}
		ln.promotedAt = now
		if ln.limit > 0 {
			ln.limit = max(ln.limit, ids[len(ids)-1])
		}
	}
	if !more && now.Sub(ln.limitedAt) > shownAfter {
		ln.limit = 0
	}
	ln.backlog = more || ln.limit > 0 || now.Sub(ln.heldAt) < shownAfter
}

// look goes over the lanes now and then: waiters of one that makes no progress go back to the table, and one that waits for a
// task which does not come asks again.
func (l *lanes) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for id, ln := range l.byID {
		still := now.Sub(ln.progressAt)
		keep := max(2*ln.room(), leastAppetite)
		if ln.inFlight == 0 && !ln.failing {
			keep = 0 // They wait for one that is not among them: it needs their places in the window.
		}
		if still > slowAfter && len(ln.waiting) > keep {
			for len(ln.waiting) > keep {
				l.sendBack(ln, ln.waiting.last())
			}
			ln.appetite = max(keep, leastAppetite)
		}
		if ln.inFlight == 0 && len(ln.waiting) > 0 && still > lookEvery {
			l.ask(ln, still)
		}
		if ln.backlog && ln.inFlight+len(ln.waiting) < leastAppetite && now.Sub(ln.askedAt) > shownAfter/2 {
			ln.askedAt = now
			l.drained(id)
		}
	}
}

// ask starts the order of a stuck lane anew. When that does not help for long, whoever has come may go. A failing lane is not
// kept from its probe by one that its backlog holds back.
func (l *lanes) ask(ln *lane, still time.Duration) {
	first := ln.waiting[0].taskID
	patience := orderPatience
	if ln.failing {
		patience = 2 * slowAfter
	}
	if still > patience {
		ln.order.expected, ln.order.through = nil, max(ln.order.through, first)
		l.admit(ln)
		return
	}
	if !ln.order.looking {
		ln.order = order{looking: true, done: ln.order.done}
		l.unsure(ln)
	}
}

// pace waits until the endpoint's rate allows one more request, holding the place meanwhile. A wait that is too long for a
// worker is a snooze.
func (l *lanes) pace(ctx context.Context, ln *lane) error {
	r := ln.limiter.Reserve()
	delay := r.Delay()
	if delay == 0 {
		return nil
	}
	if delay > paceAtMost {
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

// restUntil is when the lane's rate allows the next request, counted from now; zero without a rate.
func (ln *lane) restUntil(now time.Time) time.Duration {
	limit := ln.limiter.Limit()
	if limit == rate.Inf {
		return 0
	}
	missing := 1 - ln.limiter.TokensAt(now)
	return max(0, time.Duration(missing/float64(limit)*float64(time.Second)))
}

// restFor keeps the lane's rate from allowing a request before some time has passed.
func (ln *lane) restFor(wait time.Duration) {
	limit := ln.limiter.Limit()
	if limit == rate.Inf || wait <= 0 {
		return
	}
	interval := time.Duration(float64(time.Second) / float64(limit))
	ln.limiter.AllowN(time.Now().Add(wait-interval), 1)
}
