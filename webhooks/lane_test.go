package webhooks

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/jobs"
)

// laneBundle is the lanes of one process, without a database, and a clock that stands still.
type laneBundle struct {
	*lanes
	t       *testing.T
	now     time.Time
	drained []string
	left    []string
	unsure  int
}

func setupLanes(t *testing.T, maxParked int) *laneBundle {
	t.Helper()
	b := &laneBundle{t: t, now: time.Now()}
	b.lanes = newLanes(func() time.Time { return b.now }, maxParked, func(id string) { b.drained = append(b.drained, id) },
		func(id string) { b.left = append(b.left, id) },
		func(*lane) { b.unsure++ })
	return b
}

func (b *laneBundle) lane(id string, width int) *lane {
	b.t.Helper()
	ln := b.hold(&target{id: id, projectID: "project", maxInFlight: width})
	b.drop(ln)
	ln.order.through = math.MaxInt64 // Nothing is due that has not come.
	ln.ramp = width
	return ln
}

// join asks for a place: a nil waiter and error is one.
func (b *laneBundle) join(ln *lane, taskID int64) (*waiter, error) {
	b.t.Helper()
	held := b.hold(&target{id: ln.endpointID, projectID: "project", maxInFlight: ln.width})
	return b.take(held, taskID)
}

// answers lists what the waiters were told, by task: place, wait, or a snooze's reason.
func answers(waiters map[int64]*waiter) map[int64]string {
	out := map[int64]string{}
	for id, w := range waiters {
		select {
		case err := <-w.turn:
			out[id] = answerWord(err)
		default:
			out[id] = "wait"
		}
	}
	return out
}

func answerWord(err error) string {
	if err == nil {
		return "place"
	}
	_, reason, _ := jobs.ClassOf(err)
	return reason
}

func TestLane_PlacesAreHadInTheOrderOfTaskIDs(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, 100)
	ln := b.lane("endpoint", 1)
	if w, err := b.join(ln, 5); w != nil || err != nil {
		t.Fatalf("the first came to %v, %v", w, err)
	}
	waiters := map[int64]*waiter{}
	for _, id := range []int64{9, 7, 8, 6} {
		w, err := b.join(ln, id)
		if w == nil {
			t.Fatalf("task %d was not parked: %v", id, err)
		}
		waiters[id] = w
	}
	var order []int64
	for range 4 {
		b.leave(ln, 1, resultSuccess)
		for id, answer := range answers(waiters) {
			if answer == "place" {
				order = append(order, id)
				delete(waiters, id)
			}
		}
	}
	if want := []int64{6, 7, 8, 9}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}

func TestLane_NeverMoreInFlightThanItsWidthAndOneWhileFailing(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, 100)
	ln := b.lane("endpoint", 3)
	places := 0
	for id := range int64(8) {
		if w, err := b.join(ln, id); w == nil && err == nil {
			places++
		}
	}
	if places != 3 {
		t.Errorf("%d places in a lane 3 wide", places)
	}
	b.health(ln, health{failingSince: b.now, failures: 1})
	b.leave(ln, 1, resultSuccess)
	b.leave(ln, 1, resultSuccess)
	if ln.inFlight != 1 {
		t.Errorf("%d in flight while failing, want 1", ln.inFlight)
	}
	b.health(ln, health{})
	b.leave(ln, 1, resultSuccess)
	if ln.inFlight != 3 {
		t.Errorf("%d in flight after the first success, want 3", ln.inFlight)
	}
}

func TestLane_AFailureOrAPauseSendsTheWaitersAway(t *testing.T) {
	t.Parallel()
	for reason, h := range map[string]health{
		reasonFailing: {failingSince: time.Now(), failures: 1},
		reasonPaused:  {failingSince: time.Now(), failures: 1, pauseUntil: time.Now().Add(time.Hour)},
	} {
		b := setupLanes(t, 100)
		ln := b.lane("endpoint", 1)
		waiters := map[int64]*waiter{}
		for id := range int64(4) {
			if w, _ := b.join(ln, id); w != nil {
				waiters[id] = w
			}
		}
		b.health(ln, h)
		b.leave(ln, 1, map[bool]result{true: resultFailure, false: resultRejection}[reason == reasonFailing])
		want := map[int64]string{1: reason, 2: reason, 3: reason}
		if diff := cmp.Diff(want, answers(waiters)); diff != "" {
			t.Errorf("%s: waiters (-want +got):\n%s", reason, diff)
		}
		if ln.inFlight != 0 || b.parked != 0 {
			t.Errorf("%s: %d in flight, %d parked", reason, ln.inFlight, b.parked)
		}
		if _, err := b.join(ln, 9); reason == reasonPaused && answerWord(err) != reasonPaused {
			t.Errorf("a paused lane lets one in: %v", err)
		}
	}
}

func TestLane_ARejectedMessageLetsTheNextOneProbe(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, 100)
	ln := b.lane("endpoint", 1)
	if _, err := b.join(ln, 1); err != nil {
		t.Fatal(err)
	}
	w, _ := b.join(ln, 2)
	b.health(ln, health{failingSince: b.now, failures: 1})
	b.leave(ln, 1, resultSuccess)
	if got := answers(map[int64]*waiter{2: w})[2]; got != "place" {
		t.Errorf("the next one was told %q", got)
	}
}

func TestLane_ParkingIsBoundedPerLaneAndInAll(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, maxWaiting+10)
	first, second := b.lane("first", 1), b.lane("second", 1)
	refused := func(ln *lane, n int) (count int) {
		for id := range int64(n) {
			if w, err := b.join(ln, id); w == nil && answerWord(err) == jobs.ReasonLaneBusy {
				count++
			}
		}
		return count
	}
	if n := refused(first, 1+maxWaiting+7); n != 7 {
		t.Errorf("%d were refused by the lane's own bound, want 7", n)
	}
	if n := refused(second, 1+10+3); n != 3 {
		t.Errorf("%d were refused by the bound over all lanes, want 3", n)
	}
}

func TestLane_AWaiterWhoseContextEndsGivesUpItsTurn(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, 100)
	ln := b.lane("endpoint", 1)
	if _, err := b.join(ln, 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	held := b.hold(&target{id: "endpoint", projectID: "project", maxInFlight: 1})
	if err := b.enter(ctx, held, 2); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want one that keeps context.Canceled", err)
	}
	b.leave(ln, 1, resultSuccess)
	if ln.inFlight != 0 || b.parked != 0 || len(ln.waiting) != 0 {
		t.Errorf("%d in flight, %d parked, %d waiting", ln.inFlight, b.parked, len(ln.waiting))
	}
}

func TestLane_AsksForItsBacklogAsItDrains(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, 100)
	ln := b.lane("endpoint", 2)
	run := func(n int) {
		for range n {
			if _, err := b.join(ln, 1); err != nil {
				t.Fatal(err)
			}
			b.leave(ln, 1, resultSuccess)
			b.settled(ln)
		}
	}
	run(3)
	if len(b.drained) != 0 {
		t.Errorf("asked %d times without a backlog", len(b.drained))
	}
	for range 2 { // The second comes soon, which shows that the lane is fast.
		b.promoted("endpoint", []int64{1}, 1)
	}
	if _, err := b.join(ln, 1); err != nil { // Keeps the lane from being idle.
		t.Fatal(err)
	}
	run(3 * firstAppetite)
	if n := len(b.drained); n != 6 {
		t.Errorf("asked %d times while %d went through a busy lane, want each time a half of its appetite did", n, 3*firstAppetite)
	}
}

func TestLane_PaceSpacesRequestsAndSnoozesLongWaits(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, 100)
	slow := b.hold(&target{id: "slow", projectID: "project", maxInFlight: 1, ratePerSecond: 0.01})
	if err := b.pace(t.Context(), slow); err != nil {
		t.Fatalf("the first request: %v", err)
	}
	_, reason, delay := jobs.ClassOf(b.pace(t.Context(), slow))
	if reason != reasonRate || delay < 90*time.Second || delay > 100*time.Second {
		t.Errorf("the second is put off by %s (%s), want about 100 s", delay, reason)
	}
	fast := b.hold(&target{id: "fast", projectID: "project", maxInFlight: 1, ratePerSecond: 100})
	start := time.Now()
	for range 4 {
		if err := b.pace(t.Context(), fast); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(start); took < 25*time.Millisecond {
		t.Errorf("four requests at 100 a second took %s", took)
	}
}
