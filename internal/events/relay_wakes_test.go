package events

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
)

// heard starts to listen to what relays are notified of, and returns what reads all that came up to now.
func (b bundle) heard(t *testing.T) func() []string {
	t.Helper()
	const mark = "as far as this"
	notes, ready := make(chan string, 1000), make(chan struct{})
	ctx, stop := context.WithCancel(b.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		begun := false
		_ = store.Listen(ctx, b.pool, channel, func(project string) {
			if !begun {
				begun = true
				close(ready)
				return
			}
			notes <- project
		})
	}()
	<-ready
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return func() (all []string) {
		b.exec(t, `select pg_notify($1, $2)`, channel, mark)
		for {
			select {
			case note := <-notes:
				if note == mark {
					return all
				}
				all = append(all, note)
			case <-time.After(10 * time.Second):
				t.Fatal("a notification does not come")
			}
		}
	}
}

func TestPublisher_TellsTheRelayOfItsProcessAndNoOther(t *testing.T) {
	t.Parallel()
	b := setup(t)
	heard := b.heard(t)
	r := b.newRelay(t, 0)
	p := NewPublisher(PublisherOptions{Pool: b.pool, Relay: r})
	publish := func(id string) {
		t.Helper()
		if _, err := p.Publish(b.ctx, b.project, "", newOrder(id)); err != nil {
			t.Fatal(err)
		}
	}

	publish("before")
	if diff := cmp.Diff([]string{markOf(b.project)}, heard()); diff != "" {
		t.Errorf("before the relay runs all are notified (-want +got):\n%s", diff)
	}

	ctx, stop := context.WithCancel(b.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	waiting := `select not exists (select from event_outbox where fanned_out_at is null)`
	b.waitFor(t, "the relay to take what came before", waiting)
	publish("told")
	b.waitFor(t, "what the relay is told of", waiting) // The next sweep is a minute away.
	if _, err := p.PublishBatch(b.ctx, b.project, []New{newOrder("batch-1"), newOrder("batch-2")}); err != nil {
		t.Fatal(err)
	}
	b.waitFor(t, "the batch that the relay is told of", waiting)
	if got := heard(); len(got) != 0 {
		t.Errorf("while the relay runs here all were notified of %q", got)
	}
	if _, err := Publish(b.ctx, b.pool, b.project, newOrder("by-itself")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{markOf(b.project)}, heard()); diff != "" {
		t.Errorf("who publishes without a relay notifies all (-want +got):\n%s", diff)
	}

	stop()
	<-ended
	if diff := cmp.Diff([]string{""}, heard()); diff != "" {
		t.Errorf("a relay that ends tells the others once (-want +got):\n%s", diff)
	}
	r.tell(b.ctx, b.project) // Its event was committed while the relay ended.
	publish("after")
	if diff := cmp.Diff([]string{"", markOf(b.project)}, heard()); diff != "" {
		t.Errorf("once the relay has ended all are notified (-want +got):\n%s", diff)
	}
}

// TestPublisher_TellsTheRelayAlsoWhereTheAnswerIsAnError: all may be stored, and only the answer lost.
func TestPublisher_TellsTheRelayAlsoWhereTheAnswerIsAnError(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no room'; end $$`)
	b.exec(t, `create trigger refuse before insert on events for each row execute function refuse()`)
	r := b.newRelay(t, 0)
	r.told.begin()
	p := NewPublisher(PublisherOptions{Pool: b.pool, Relay: r})
	told := func() bool {
		select {
		case <-r.wake:
			return true
		default:
			return false
		}
	}
	if _, err := p.Publish(b.ctx, b.project, "", newOrder("single")); err == nil || !told() {
		t.Errorf("an event: %v, and the relay is not told", err)
	}
	if _, err := p.PublishBatch(b.ctx, b.project, []New{newOrder("batch")}); err == nil || !told() {
		t.Errorf("a batch: %v, and the relay is not told", err)
	}
}

func TestRelay_ARestAfterManyEventsOfOneEndsForAnother(t *testing.T) {
	t.Parallel()
	crowd := make([]outboxRow, crowdFrom)
	for i := range crowd {
		crowd[i].ProjectID = "crowd"
	}
	few := []outboxRow{{ProjectID: "calm"}, {ProjectID: "quiet"}}
	for name, test := range map[string]struct {
		brought           []outboxRow
		during, publishes string // in the pass, and from its end on
		want              time.Duration
	}{
		"a few rest for a moment":             {few, "", "other", 2 * restEach},
		"more of the crowd share the rest":    {crowd, "crowd", "crowd", crowdFrom * restEach},
		"another project ends it":             {crowd, "crowd", "calm", 0},
		"so does one during the pass":         {crowd, "calm", "crowd", 0},
		"but not what the few add to it":      {append(few, crowd...), "", "calm", 2 * restEach},
		"nobody waits longer than for a wink": {slices.Repeat(crowd, 100), "", "crowd", restMost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, start := NewRelay(RelayOptions{}), time.Now()
				r.told.passBegins(start)
				if test.during != "" {
					r.published(markOf(test.during))
				}
				rested := make(chan time.Duration, 1)
				go func() {
					r.rest(t.Context(), test.brought)
					rested <- time.Since(start)
				}()
				synctest.Wait()
				r.published(markOf(test.publishes))
				time.Sleep(restEach / 2)
				for len(rested) == 0 { // It goes on publishing.
					r.published(markOf(test.publishes))
					time.Sleep(restEach)
				}
				if got := <-rested; got != test.want {
					t.Errorf("rested for %s, want %s", got, test.want)
				}
				if r.told.crowding != nil || len(r.hurry) > 0 {
					t.Error("something is left of the rest")
				}
			})
		})
	}
}

func TestRelay_IsToldAloneOnlyWhileItWorks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := NewRelay(RelayOptions{})
		want := func(works bool, when string) {
			t.Helper()
			if r.works() != works {
				t.Errorf("%s it works: %t, want %t", when, r.works(), works)
			}
		}
		want(false, "before it runs")
		r.told.begin()
		want(true, "as it begins")
		r.told.passBegins(time.Now())
		want(true, "in a pass")
		time.Sleep(passSoon)
		want(false, "in a pass that does not end")
		r.told.passEnds(true)
		want(true, "after it")
		r.told.passBegins(time.Now())
		r.told.passEnds(false)
		want(false, "after a pass that failed")
		r.told.passBegins(time.Now())
		r.told.passEnds(true)
		want(true, "after one that went well")
		r.told.end()
		want(false, "when it has ended")
		r = nil
		want(false, "without one")
	})
}

// TestRelay_ComesBackToAProjectThatAnotherWasAt: the other does not see what was published since it began, and nobody else is told.
func TestRelay_ComesBackToAProjectThatAnotherWasAt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.newRelay(t, 0)
	other, err := b.pool.Begin(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(b.ctx) }() // It did nothing.
	if _, err := other.Exec(b.ctx, `select pg_advisory_xact_lock(hashtextextended('entrega/relay/' || $1, 0))`, b.project); err != nil {
		t.Fatal(err)
	}
	b.publish(t, "meanwhile")
	if claimed, _, err := r.relayTurn(b.ctx); err != nil || len(claimed) > 0 {
		t.Fatalf("claimed %v, %v while another is at the project", claimed, err)
	}
	select {
	case <-r.wake:
	case <-time.After(10 * time.Second): // The sweep that would find it is a minute away.
		t.Fatal("the relay does not come back")
	}
	if err := other.Commit(b.ctx); err != nil {
		t.Fatal(err)
	}
	if claimed, _, err := r.relayTurn(b.ctx); err != nil || len(claimed) != 1 {
		t.Errorf("claimed %v, %v once the other is done", claimed, err)
	}
}

func TestRelay_TidiesTheOutboxAfterManyEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := b.newRelay(t, 0)
	b.flood(t, b.project, 50)
	b.exec(t, `delete from event_outbox`)
	r.tidy(b.ctx, tidyAfter-1)
	r.tidy(b.ctx, 1)
	b.waitFor(t, "the outbox to be vacuumed", `select vacuum_count > 0 from pg_stat_user_tables where relname = 'event_outbox'`)
	if r.passed != 0 {
		t.Errorf("it counts on from %d", r.passed)
	}
}
