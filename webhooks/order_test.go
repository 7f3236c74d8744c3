package webhooks

import (
	"math"
	"testing"
	"time"

	"entrega/jobs"
)

func TestOrder_ALaneOneWideWaitsForWhatIsDueBefore(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, 100)
	ln := b.lane("endpoint", 1)
	ln.order = order{}
	second, err := b.join(ln, 12)
	if second == nil || err != nil || b.unsure != 1 {
		t.Fatalf("a task that nothing is known of: %v, %v, asked %d times", second, err, b.unsure)
	}
	b.learn(ln, []int64{11, 12}, 12, true)
	if got := answers(map[int64]*waiter{12: second})[12]; got != "wait" {
		t.Fatalf("task 12 was told %q while 11 has not come", got)
	}
	if w, err := b.join(ln, 11); w != nil || err != nil {
		t.Fatalf("task 11 came to %v, %v", w, err)
	}
	b.leave(ln, 11, resultSuccess)
	if got := answers(map[int64]*waiter{12: second})[12]; got != "place" {
		t.Errorf("task 12 was told %q after 11 had its turn", got)
	}
}

func TestOrder_AClaimTellsWhatComesFirst(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, 100)
	ln := b.lane("endpoint", 1)
	ln.order = order{}
	b.claimed(jobs.Claimed{Claim: jobs.Claim{EndpointID: "endpoint"}, Room: 2, Found: 2, IDs: []int64{12, 13}, Order: []int64{11, 12, 13}})
	waiters := map[int64]*waiter{}
	for _, id := range []int64{13, 12} {
		w, err := b.join(ln, id)
		if w == nil || err != nil {
			t.Fatalf("task %d came to %v, %v while 11 has not come", id, w, err)
		}
		waiters[id] = w
	}
	if w, err := b.join(ln, 11); w != nil || err != nil {
		t.Fatalf("task 11 came to %v, %v", w, err)
	}
	// An answer to a question of before tells of what is in the lane by now.
	b.learn(ln, []int64{11, 12, 13}, 13, true)
	b.leave(ln, 11, resultSuccess)
	if got := answers(waiters); got[12] != "place" || got[13] != "wait" {
		t.Errorf("behind 11: %v", got)
	}
	b.leave(ln, 12, resultSuccess)
	if got := answers(waiters); got[13] != "place" {
		t.Errorf("behind 12: %v", got)
	}
	if b.unsure != 0 {
		t.Errorf("the table was asked %d times", b.unsure)
	}
}

func TestOrder_ATaskThatNeverComesHoldsNobodyUpForLong(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, 100)
	ln := b.lane("endpoint", 1)
	ln.order = order{}
	w, _ := b.join(ln, 12)
	b.learn(ln, []int64{11}, 12, true)
	ln.progressAt = time.Now().Add(-time.Second)
	b.look()
	if b.unsure != 2 {
		t.Fatalf("the table was asked %d times, want once more", b.unsure)
	}
	b.learn(ln, nil, 0, true) // Task 11 is not due any more.
	if got := answers(map[int64]*waiter{12: w})[12]; got != "place" {
		t.Errorf("task 12 was told %q", got)
	}
}

func TestLane_ClimbsByDoublingAndFallsToOneWithAFailure(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, 100)
	ln := b.lane("endpoint", 8)
	ln.ramp, ln.successes = 1, 0
	var rooms []int
	id := int64(0)
	finish := func(n int, r result) {
		for range n {
			id++
			if _, err := b.join(ln, id); err != nil {
				t.Fatal(err)
			}
			b.leave(ln, id, r)
		}
		rooms = append(rooms, ln.room())
	}
	finish(1, resultSuccess)
	finish(2, resultSuccess)
	finish(4, resultSuccess)
	finish(100, resultSuccess)
	finish(1, resultRejection)
	finish(1, resultSuccess)
	finish(1, resultSuccess)
	finish(1, resultSuccess)
	want := []int{2, 4, 8, 8, 1, 2, 2, 4}
	for i := range want {
		if rooms[i] != want[i] {
			t.Fatalf("room for %v, want %v", rooms, want)
		}
	}
}

func TestLane_WaitersOfASlowLaneGiveUpTheirWorkersFromTheEnd(t *testing.T) {
	t.Parallel()
	b := setupLanes(t, 100)
	ln := b.lane("endpoint", 1)
	waiters := map[int64]*waiter{}
	for id := int64(1); id <= 20; id++ {
		if w, _ := b.join(ln, id); w != nil {
			waiters[id] = w
		}
	}
	b.look()
	ln.progressAt = time.Now().Add(-slowAfter - time.Second)
	b.look()
	for id, answer := range answers(waiters) {
		if want := map[bool]string{true: "wait", false: "lane_busy"}[id <= 1+leastAppetite]; answer != want {
			t.Errorf("task %d was told %q, want %q", id, answer, want)
		}
	}
	if _, err := b.join(ln, 21); answerWord(err) != "lane_busy" {
		t.Errorf("a task behind those that went back came to %v", err)
	}
	// A promotion brings the first of them, and nobody else before.
	b.promoted("endpoint", []int64{6, 7}, 2)
	if w, err := b.join(ln, 6); w == nil {
		t.Errorf("a promoted task came to %v", err)
	}
	if _, err := b.join(ln, 8); answerWord(err) != "lane_busy" {
		t.Errorf("a task that was not promoted came to %v", err)
	}
	ln.limitedAt, ln.heldAt = time.Time{}, time.Time{}
	b.promoted("endpoint", nil, 5)
	if ln.limit != 0 || ln.backlog {
		t.Errorf("nothing waits any more, and the limit is %d, the backlog %t", ln.limit, ln.backlog)
	}
}

func TestLane_ARateGoesWithTheLease(t *testing.T) {
	t.Parallel()
	tx, project, endpoint := laneRow(t)
	run(t, tx, `insert into nodes (id, host, version) values ('a', 'h', '1'), ('b', 'h', '1')`)
	run(t, tx, `update endpoints set rate_per_second = 0.1 where id = $1`, endpoint)
	b := setupLanes(t, 100)
	ln := b.hold(&target{id: endpoint, projectID: project, maxInFlight: 1, ratePerSecond: 0.1})
	b.leased(ln, take(t, tx, "a", project, endpoint))
	if err := b.pace(t.Context(), ln); err != nil {
		t.Fatalf("the first request: %v", err)
	}
	if err := releaseLeases(t.Context(), tx, "a", []leaseRow{ln.row(time.Now())}); err != nil {
		t.Fatal(err)
	}
	given := take(t, tx, "b", project, endpoint)
	if given.restFor < 8*time.Second || given.restFor > 10*time.Second {
		t.Errorf("the next holder must rest for %s, want about 10 s", given.restFor)
	}
	run(t, tx, `delete from nodes where id = 'b'`)
	if taken := take(t, tx, "a", project, endpoint); taken.restFor != 10*time.Second {
		t.Errorf("who takes over from a dead holder must rest for %s, want 10 s", taken.restFor)
	}
	next := setupLanes(t, 100)
	other := next.hold(&target{id: endpoint, projectID: project, maxInFlight: 1, ratePerSecond: 0.1})
	next.leased(other, leaseState{lease: lease{until: time.Now().Add(time.Hour), busyUntil: time.Now()}, taken: true, restFor: 10 * time.Second})
	if wait := other.restUntil(time.Now()); math.Abs(wait.Seconds()-10) > 0.5 {
		t.Errorf("the next holder's rate allows a request in %s, want 10 s", wait)
	}
}
