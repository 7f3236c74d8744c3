package webhooks

import (
	"context"
	"fmt"
	"time"

	"entrega/internal/store"
)

const (
	// freshFor is how long what was read of an endpoint may be sent by. Whoever changes an endpoint waits twice as long before
	// it says that the change holds, so that nobody sends by what was before.
	freshFor = 50 * time.Millisecond
	// refreshAfter is when a busy lane reads again, so that it need not wait for that.
	refreshAfter = 25 * time.Millisecond
)

// outlast waits, after a change of an endpoint was committed, until nobody sends by what was before. The end of ctx ends it early:
// whoever does not wait for the answer has no promise of it.
func outlast(ctx context.Context) {
	wait := time.NewTimer(2 * freshFor)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// laneKey names an endpoint.
type laneKey struct{ project, id string }

// briefing is everything about an endpoint that may have changed since its target was remembered.
type briefing struct {
	// Version is the endpoint's, to send by no older settings and secrets.
	Version int64
	// Gone says in a sentence why the endpoint takes nothing any more; empty while it does.
	Gone string
	// Paused is by a person.
	Paused bool
	// Profile is the endpoint's, else the project's.
	Profile string
	health
	// asked is when it was asked for: what was committed before that is in it.
	asked time.Time
}

// fresh reports whether it may be sent by.
func (b briefing) fresh() bool { return time.Since(b.asked) < freshFor }

func readBriefings(ctx context.Context, db store.DB, keys []laneKey) (map[laneKey]briefing, error) {
	projects, ids := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		projects[i], ids[i] = k.project, k.id
	}
	asked := time.Now()
	rows, err := db.Query(ctx, `
		select e.project_id, e.id, e.version, e.deleted_at is not null, e.disabled_at is not null, e.paused_at is not null, coalesce(e.profile, p.profile),
		       l.failing_since, l.failures_in_a_row, l.pause_until
		from unnest($1::text[], $2::text[]) as k (project, id)
		join endpoints e on e.project_id = k.project and e.id = k.id
		join projects p on p.id = e.project_id
		join endpoint_lanes l on l.endpoint_id = e.id`, projects, ids)
	if err != nil {
		return nil, fmt.Errorf("read endpoints to deliver to: %w", err)
	}
	defer rows.Close()
	found := make(map[laneKey]briefing, len(keys))
	for rows.Next() {
		var k laneKey
		b := briefing{asked: asked}
		var deleted, disabled bool
		var since, pause *time.Time
		if err := rows.Scan(&k.project, &k.id, &b.Version, &deleted, &disabled, &b.Paused, &b.Profile, &since, &b.failures, &pause); err != nil {
			return nil, fmt.Errorf("read endpoints to deliver to: %w", err)
		}
		switch {
		case deleted:
			b.Gone = "The endpoint was deleted before the delivery's turn came."
		case disabled:
			b.Gone = "The endpoint was disabled before the delivery's turn came."
		}
		b.failingSince, b.pauseUntil = orZero(since), orZero(pause)
		found[k] = b
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read endpoints to deliver to: %w", err)
	}
	return found, nil
}

// brief returns what holds for a lane's endpoint at this moment. Reads of many lanes share a statement, and those of one lane
// some milliseconds.
func (d *Deliverer) brief(ctx context.Context, ln *lane) (briefing, error) {
	if b := d.lanes.briefing(ln); b.fresh() {
		if time.Since(b.asked) > refreshAfter && d.lanes.refreshes(ln) {
			go func() {
				_, err := d.readBrief(context.WithoutCancel(ctx), ln)
				d.complain(ctx, "look at an endpoint again", err)
			}()
		}
		return b, nil
	}
	return d.readBrief(ctx, ln)
}

func (d *Deliverer) readBrief(ctx context.Context, ln *lane) (briefing, error) {
	asked := time.Now()
	b, found, err := d.briefings.Get(ctx, laneKey{ln.projectID, ln.endpointID})
	if err != nil {
		return briefing{}, err
	}
	if !found {
		b = briefing{Gone: "The endpoint does not exist any more.", asked: asked}
	}
	d.lanes.observe(ln, b)
	return b, nil
}
