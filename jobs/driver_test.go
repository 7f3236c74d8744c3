package jobs

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"entrega/internal/store"
)

func TestCompleted_RiverTellsOnlyOfTheOthers(t *testing.T) {
	t.Parallel()
	c := &completed{rows: map[int64]*rivertype.JobRow{}}
	c.add(&rivertype.JobRow{ID: 2, State: rivertype.JobStateCompleted})
	attempt := 3
	all := &riverdriver.JobSetStateIfRunningManyParams{
		ID: []int64{1, 2}, Attempt: []*int{&attempt, nil}, ErrData: [][]byte{[]byte(`{}`), nil}, FinalizedAt: []*time.Time{nil, nil},
		MetadataDoMerge: []bool{true, false}, MetadataUpdates: [][]byte{[]byte(`{"a":1}`), nil}, ScheduledAt: []*time.Time{nil, nil},
		State: []rivertype.JobState{rivertype.JobStateRetryable, rivertype.JobStateCompleted}, Schema: "entrega",
	}
	rest, rows := c.without(all)
	if len(rows) != 1 || rows[0].ID != 2 {
		t.Errorf("rows that are known: %v", rows)
	}
	if len(rest.ID) != 1 || rest.ID[0] != 1 || *rest.Attempt[0] != 3 || string(rest.ErrData[0]) != `{}` || !rest.MetadataDoMerge[0] ||
		string(rest.MetadataUpdates[0]) != `{"a":1}` || rest.State[0] != rivertype.JobStateRetryable || rest.Schema != "entrega" ||
		len(rest.ScheduledAt) != 1 || len(rest.FinalizedAt) != 1 {
		t.Errorf("what River tells of the other: %+v", rest)
	}
	if again, rows := c.without(all); len(rows) != 0 || len(again.ID) != 2 {
		t.Errorf("the second time %d are known, want none: it is told once", len(rows))
	}
}

// silent is a listener to which nobody notifies anything, but for what is put into notes.
type silent struct {
	riverdriver.Listener
	notes chan *riverdriver.Notification
	// waits counts how often somebody began to wait.
	waits *atomic.Int32
}

// WaitForNotification waits.
func (s silent) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	s.waits.Add(1)
	select {
	case n := <-s.notes:
		return n, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestListener_TellsOfWhatTheNodeWants(t *testing.T) {
	t.Parallel()
	wanted, notes := make(chan struct{}, 1), make(chan *riverdriver.Notification, 1)
	d := newDriver(WorkerOptions{Claimer: content{}}, "node_a")
	var waits atomic.Int32
	l := &listener{Listener: silent{notes: notes, waits: &waits}, driver: d, wanted: wanted}

	wanted <- struct{}{}
	n, err := l.WaitForNotification(t.Context())
	if err != nil || n.Topic != "river_insert" || n.Payload != `{"queue":"webhook_of_node_a"}` {
		t.Fatalf("a wish brought %+v, %v", n, err)
	}
	if d.own.due.Load() {
		t.Error("a wish makes nothing due")
	}
	for range 3 {
		d.own.rouse()
		if n, err := l.WaitForNotification(t.Context()); err != nil || n.Payload != `{"queue":"webhook_of_node_a"}` {
			t.Fatalf("to be roused brought %+v, %v", n, err)
		}
	}

	d.rouse(QueueWebhook)
	if n, err := l.WaitForNotification(t.Context()); err != nil || n.Payload != `{"queue":"webhook"}` {
		t.Fatalf("to be roused for the queue of all brought %+v, %v", n, err)
	}

	notes <- &riverdriver.Notification{Topic: "river_insert", Payload: `{"queue":"webhook_of_node_b"}`}
	if n, err = l.WaitForNotification(t.Context()); err != nil || n.Payload != `{"queue":"webhook_of_node_b"}` || d.own.due.Load() {
		t.Errorf("a notification for another node brought %+v, %v, due %t", n, err, d.own.due.Load())
	}
	notes <- &riverdriver.Notification{Topic: "river_insert", Payload: `{"queue":"webhook_of_node_a"}`}
	if n, err = l.WaitForNotification(t.Context()); err != nil || n == nil || !d.own.due.Load() {
		t.Errorf("a notification for this node brought %+v, %v, due %t", n, err, d.own.due.Load())
	}

	if n := waits.Load(); n != 2 {
		t.Errorf("the connection was read %d times for two notifications: wishes interrupt it, and many would keep notifications away", n)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.WaitForNotification(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the context brought %v", err)
	}
}

// wishes is a Claimer that always wants the same.
type wishes struct {
	claim Claim
	done  []Claimed
}

// Wanted is never readable.
func (w *wishes) Wanted() <-chan struct{} { return nil }

// Claims returns the wish.
func (w *wishes) Claims(int) []Claim { return []Claim{w.claim} }

// Claimed keeps what came of it.
func (w *wishes) Claimed(done []Claimed) { w.done = append(w.done, done...) }

func TestFetch_WhatIsDueComesBeforeWhatIsClaimedAndByTurns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lanes(map[string]string{"endpoint_1": "node_a", "endpoint_2": "node_a"})
	waiting := b.waiting(3, "endpoint_1")
	own := NodeQueue(QueueWebhook, "node_a")
	insert := func() int64 { return b.insert(Insert{ProjectID: testProject, EndpointID: "endpoint_2", Queue: own}) }

	gate := store.NewGate(2)
	d := newDriver(WorkerOptions{Client: b.client, Pool: b.pool, Gate: gate, Claimer: &wishes{claim: Claim{EndpointID: "endpoint_1", Window: 1}}}, "node_a")
	e := d.GetExecutor()
	fetch := func() []int64 {
		got, err := e.JobGetAvailable(t.Context(), &riverdriver.JobGetAvailableParams{ClientID: "node_a", MaxAttemptedBy: 100, MaxToLock: 100, Queue: own})
		if err != nil {
			t.Fatal(err)
		}
		return idsOf(got.Jobs)
	}
	roused := func() bool {
		select {
		case <-d.own.again:
			return true
		default:
			return false
		}
	}
	finish := func(id int64) {
		if _, err := b.pool.Exec(t.Context(), `update river_job set state = 'completed', finalized_at = now() where id = $1`, id); err != nil {
			t.Fatal(err)
		}
	}

	first := insert()
	d.own.due.Store(true)
	if diff := cmp.Diff([]int64{first}, fetch()); diff != "" {
		t.Errorf("the first fetch (-want +got):\n%s", diff)
	}
	if !roused() {
		t.Error("nobody is roused to claim")
	}
	second := insert()
	d.own.due.Store(true)
	if diff := cmp.Diff(waiting[:1], fetch()); diff != "" {
		t.Errorf("the second fetch (-want +got):\n%s", diff)
	}
	if !roused() {
		t.Error("nobody is roused to bring what is due")
	}
	if diff := cmp.Diff([]int64{second}, fetch()); diff != "" {
		t.Errorf("the third fetch (-want +got):\n%s", diff)
	}

	finish(waiting[0])
	gate.Alone()
	if diff := cmp.Diff(waiting[1:2], fetch()); diff != "" {
		t.Errorf("the fourth fetch (-want +got):\n%s", diff)
	}
	if d.restUntil.IsZero() {
		t.Error("a claim does not rest though something came alone")
	}
	d.restUntil = time.Now().Add(time.Hour)
	finish(waiting[1])
	if got := fetch(); len(got) > 0 {
		t.Errorf("a fetch claimed %v during the rest", got)
	}
}
