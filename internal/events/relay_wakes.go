package events

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"entrega/internal/store"
)

const (
	// restEach and restMost are how long the relay rests after a pass for each event that it brought, and at most: what comes meanwhile
	// shares the next pass and the tasks that it makes. A lone event makes the next one wait for a millisecond. One project's many are no
	// reason for another to wait: crowdFrom is from how many on.
	restEach  = time.Millisecond
	restMost  = 25 * time.Millisecond
	crowdFrom = leastShare
	// passSoon is how long a pass may take for its relay to be told alone.
	passSoon = time.Second
	// tellTimeout bounds what a relay that ends tells the others.
	tellTimeout = 2 * time.Second
)

// told is what a relay was told of lately. It is safe for concurrent use.
type told struct {
	mu      sync.Mutex
	running bool
	// failed says that the last pass did, passing when the one under way began.
	failed  bool
	passing time.Time
	// since has the marks of those who published since the last pass began, crowding of those after whose events the relay rests.
	since, crowding map[string]bool
}

func (t *told) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = true
}

func (t *told) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = false
}

func (t *told) passBegins(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passing, t.since = now, map[string]bool{}
}

func (t *told) passEnds(well bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passing, t.failed = time.Time{}, !well
}

// works reports whether the relay runs, and was neither in trouble lately nor is in a pass that does not end.
func (t *told) works() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running && !t.failed && (t.passing.IsZero() || time.Since(t.passing) < passSoon)
}

// note takes in who published, and reports whether a rest should end for it.
func (t *told) note(mark string) (hurry bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.since != nil {
		t.since[mark] = true
	}
	return t.crowding != nil && !t.crowding[mark]
}

// rests begins a rest after events of some, unless another published since the pass began.
func (t *told) rests(crowding map[string]bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for mark := range t.since {
		if !crowding[mark] {
			return false
		}
	}
	t.crowding = crowding
	return true
}

func (t *told) rested() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.crowding = nil
}

// markOf stands for a project in notifications, which anybody may listen to (entrega_project_mark, migration 020).
func markOf(project string) string {
	sum := sha256.Sum256([]byte(project))
	return hex.EncodeToString(sum[:6])
}

// listen wakes the relay at each publish until the connection is lost, which closes the channel it returns. The first
// wake comes as soon as it listens, for what was published before.
func (r *Relay) listen(ctx context.Context) <-chan struct{} {
	deaf := make(chan struct{})
	go func() {
		defer close(deaf)
		err := store.Listen(ctx, r.pool, channel, r.published)
		if ctx.Err() == nil {
			r.logger.WarnContext(ctx, "the relay lost its notifications and sweeps until it has them again", "error", err)
		}
	}()
	return deaf
}

// works reports whether this relay may be told instead of all. A nil one may not.
func (r *Relay) works() bool { return r != nil && r.told.works() }

// tell tells this relay that projects published, once that is committed, or all where it does not work any more.
func (r *Relay) tell(ctx context.Context, projects ...string) {
	for _, project := range projects {
		r.published(markOf(project))
	}
	if !r.works() {
		r.tellAll(ctx)
	}
}

// leave has the others look after what only this relay was told of.
func (r *Relay) leave(ctx context.Context) {
	r.told.end()
	r.tellAll(ctx)
}

// tellAll wakes the relays of all nodes. Those that it does not reach sweep.
func (r *Relay) tellAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer cancel()
	if _, err := r.pool.Exec(ctx, `select pg_notify($1, '')`, channel); err != nil {
		r.logger.WarnContext(ctx, "the other relays could not be told of what waits; they find it by sweeping", "error", err)
	}
}

// published takes in the mark of a project that published; "" is that any may have.
func (r *Relay) published(mark string) {
	hurry := r.told.note(mark)
	rouse(r.wake)
	if hurry {
		rouse(r.hurry)
	}
}

func rouse(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default: // A wake that waits already covers this one.
	}
}

// rest lets more come that shares the next pass. What a crowd of one project's events adds to it ends when another project publishes.
func (r *Relay) rest(ctx context.Context, brought []outboxRow) {
	each := map[string]int{}
	for _, row := range brought {
		each[row.ProjectID]++
	}
	few, crowding := 0, map[string]bool{}
	for project, n := range each {
		if n < crowdFrom {
			few += n
		} else {
			crowding[markOf(project)] = true
		}
	}
	all, least := restFor(len(brought)), restFor(few)
	pause(ctx, least, nil)
	if all == least || !r.told.rests(crowding) {
		return
	}
	pause(ctx, all-least, r.hurry)
	r.told.rested()
	select {
	case <-r.hurry: // It came as the rest ended.
	default:
	}
}

func restFor(events int) time.Duration { return min(time.Duration(events)*restEach, restMost) }

// pause waits for d, or until something can be read from early.
func pause(ctx context.Context, d time.Duration, early <-chan struct{}) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-early:
	case <-ctx.Done():
	}
}
