package webhooks

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
)

// healthTimeout bounds the writing of an endpoint's health, which goes on when the attempt's time is over.
const healthTimeout = 5 * time.Second

// takeIn writes what the attempt means for the endpoint's health. The receiver has answered, so trouble here changes nothing
// about the delivery: it is logged, and the next attempt writes it.
func (d *Deliverer) takeIn(ctx context.Context, ln *lane, p jobs.Policy, startedAt time.Time, r reading) {
	if r.success && d.lanes.succeeded(ln, startedAt) {
		return // It was healthy before, so there is nothing to write.
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
	defer cancel()
	var err error
	if r.success {
		err = d.takeInSuccess(ctx, ln, startedAt)
	} else {
		err = d.takeInFailure(ctx, ln, p, startedAt, r)
	}
	if err != nil {
		d.log.ErrorContext(ctx, "the health of an endpoint could not be written", "project_id", ln.projectID, "endpoint_id", ln.endpointID, "error", err)
	}
}

func (d *Deliverer) takeInSuccess(ctx context.Context, ln *lane, startedAt time.Time) error {
	var h health
	err := store.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		var err error
		if h, err = noteSuccess(ctx, tx, ln.projectID, ln.endpointID, startedAt); err != nil || !h.failingSince.IsZero() {
			return err
		}
		return wakeTx(ctx, tx, ln.endpointID)
	})
	if err != nil {
		return err
	}
	d.lanes.health(ln, h)
	if h.failingSince.IsZero() {
		d.drained(ln.endpointID)
	}
	return nil
}

func (d *Deliverer) takeInFailure(ctx context.Context, ln *lane, p jobs.Policy, startedAt time.Time, r reading) error {
	now := d.now()
	f := failure{project: ln.projectID, endpointID: ln.endpointID, startedAt: startedAt, lastSuccess: d.lanes.lastSuccess(ln)}
	if pause := r.pause(p); pause > 0 {
		f.pauseUntil = now.Add(pause)
	}
	var h health
	err := store.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		var err error
		if h, err = noteFailureTx(ctx, tx, f); err != nil {
			return err
		}
		if r.action(p) == jobs.ActionGone {
			_, err := DisableTx(ctx, tx, healthActor.In(f.project), f.endpointID, DisabledGone, r.sentence+" It wants no more events.")
			return err
		}
		_, err = disableRuleTx(ctx, tx, p, f, h, now, r.sentence)
		return err
	})
	if err != nil {
		return err
	}
	d.lanes.health(ln, h)
	return nil
}
