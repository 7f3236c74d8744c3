package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/store"
	"entrega/jobs"
)

const (
	// channel is what the trigger on events notifies, with the mark of the project that published (markOf).
	channel = "entrega_event"
	// defaultBatch is how many events one transaction hands over.
	defaultBatch = 100
	// defaultSweepEvery finds what no notification told of: they are lost while nobody listens, and when a node dies that was to tell its own
	// relay.
	defaultSweepEvery = time.Minute
	// defaultSweepSoon is the pace while events that failed wait for their turn, and while the relay is deaf.
	defaultSweepSoon = 5 * time.Second
	// tidyAfter is after how many events the relay has the outbox vacuumed. Whoever looks for the first that waits passes over all that were
	// handed over since, and Postgres itself looks after a table once a minute at most.
	tidyAfter = 10_000
	// tidyTimeout bounds that.
	tidyTimeout = 30 * time.Second
	// handOverTimeout bounds one transaction, so that a lock or a dead connection cannot hold a relay for good.
	handOverTimeout = 30 * time.Second
)

// RelayOptions are what a Relay needs.
type RelayOptions struct {
	Pool   *pgxpool.Pool
	Client *jobs.Client
	Logger *slog.Logger
	// Batch is how many events one transaction hands over; 100 when zero.
	Batch int
}

// Relay hands events that wait in the outbox to the fan-out. Any number of relays may work on one database: each claims
// rows that no other has locked, and a relay that dies gives its rows back with its transaction.
//
// All waiting is data, judged by the database's clock: an event that failed has the instant of its next turn in its row.
//
// What it hands over need not be durable at once. Should the database forget it in a crash, the events wait in the outbox as
// before; and nothing is sent before the commit by which a delivery is claimed or starts, which comes later and does wait.
type Relay struct {
	pool   *pgxpool.Pool
	client *jobs.Client
	logger *slog.Logger
	batch  int
	behind string // the project that had its turn last; Run and Sweep are not called at once
	passed int    // events since the outbox was vacuumed

	// wake is readable when there may be something to relay, hurry when a rest should end.
	wake, hurry chan struct{}
	tidying     chan struct{} // holds a token while the outbox is vacuumed
	told        told

	sweepEvery, sweepSoon time.Duration
}

// NewRelay makes a Relay; Run starts it.
func NewRelay(o RelayOptions) *Relay {
	if o.Batch == 0 {
		o.Batch = defaultBatch
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Relay{pool: o.Pool, client: o.Client, logger: o.Logger, batch: o.Batch,
		wake: make(chan struct{}, 1), tidying: make(chan struct{}, 1), hurry: make(chan struct{}, 1), sweepEvery: defaultSweepEvery, sweepSoon: defaultSweepSoon}
}

// Run relays until ctx ends: at once when an event is published, and by sweeps. It uses a connection of its own to listen and one of the
// pool at a time, now and then another for a moment.
func (r *Relay) Run(ctx context.Context) {
	if _, err := r.pool.Exec(ctx, `select entrega_widen_outbox()`); err != nil && ctx.Err() == nil {
		r.logger.WarnContext(ctx, "the outbox could not be widened; plans for it may be poor until it is vacuumed", "error", err)
	}
	deaf := r.listen(ctx)
	r.told.begin()
	defer func() {
		r.tidying <- struct{}{} // waits for the vacuum, which ends with ctx
		<-r.tidying
	}()
	sweep := time.NewTimer(0)
	defer sweep.Stop()

	soon := false // The sweep is set to sweepSoon.
	for {
		swept := false
		select {
		case <-ctx.Done():
			r.leave(ctx)
			if deaf != nil {
				<-deaf
			}
			return
		case <-deaf:
			deaf = nil
		case <-r.wake:
		case <-sweep.C:
			swept = true
			if deaf == nil {
				deaf = r.listen(ctx)
			}
		}
		r.told.passBegins(time.Now())
		calm, brought, more, err := r.pass(ctx, swept)
		r.told.passEnds(err == nil)
		r.tidy(ctx, len(brought))
		if more {
			rouse(r.wake)
		} else {
			r.rest(ctx, brought)
		}
		hurry := !calm || deaf == nil
		switch {
		case hurry && (swept || !soon): // A sweep that is near already must not be pushed away by each wake.
			sweep.Reset(r.sweepSoon)
		case swept:
			sweep.Reset(r.sweepEvery)
		}
		soon = hurry || soon && !swept
	}
}

// tidy has the outbox vacuumed once in a while. Where another relay is at it, or the role does not own the table, Postgres passes over it.
func (r *Relay) tidy(ctx context.Context, brought int) {
	if r.passed += brought; r.passed < tidyAfter {
		return
	}
	select {
	case r.tidying <- struct{}{}:
		r.passed = 0
	default: // It is at it still.
		return
	}
	go func() {
		defer func() { <-r.tidying }()
		ctx, cancel := context.WithTimeout(ctx, tidyTimeout)
		defer cancel()
		if _, err := r.pool.Exec(ctx, `vacuum (skip_locked, parallel 0) event_outbox`); err != nil && ctx.Err() == nil {
			r.logger.WarnContext(ctx, "the outbox could not be vacuumed; it is looked after less often", "error", err)
		}
	}()
}

// pass gives one turn to what is new and, with a sweep, to what failed before, so that neither can keep the other away. It
// reports whether nothing is left that failed, which new events it brought, and whether more may be there. An error is in the log.
func (r *Relay) pass(ctx context.Context, sweep bool) (calm bool, brought []outboxRow, more bool, err error) {
	failing := false
	if sweep {
		failing, err = r.relayFailed(ctx)
	}
	if err == nil {
		var failed bool
		brought, more, failed, err = r.relayFresh(ctx)
		failing = failing || failed
	}
	if err != nil && ctx.Err() == nil {
		r.logger.ErrorContext(ctx, "the relay stopped short and goes on with the next sweep", "error", err)
	}
	return err == nil && !failing, brought, more && err == nil, err
}

// Sweep hands over everything that is due now and reports whether events that failed wait for a later turn. An error is
// trouble of the database that no event is to blame for; what was handed over before it stays so.
func (r *Relay) Sweep(ctx context.Context) (failing bool, err error) {
	for more := true; more; {
		if _, more, _, err = r.relayFresh(ctx); err != nil {
			return true, err
		}
	}
	return r.relayFailed(ctx)
}

// relayFresh hands over events that never failed: one turn of them. It returns those, and whether there may be more, and whether some
// failed now and wait.
func (r *Relay) relayFresh(ctx context.Context) (claimed []outboxRow, more, failing bool, err error) {
	claimed, more, err = r.relayTurn(ctx)
	if err != nil && len(claimed) > 0 && blamesEvent(ctx, err) {
		failing, err = r.relayEach(ctx, claimed)
	}
	return claimed, more, failing || err != nil, err
}

// relayFailed gives those that failed before and are due another turn, and reports whether any are left.
func (r *Relay) relayFailed(ctx context.Context) (failing bool, err error) {
	due, later, err := failedRows(ctx, r.pool, r.batch)
	if err != nil {
		return true, err
	}
	failed, err := r.relayEach(ctx, due)
	return failed || later, err
}

// relayTurn claims what has its turn and hands it over in one transaction. It returns what it claimed even when that failed.
func (r *Relay) relayTurn(ctx context.Context) (claimed []outboxRow, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	var t turn
	var started *jobs.Started
	err = store.InTwoSteps(ctx, r.pool, func(batch *pgx.Batch) {
		claimTurn(batch, r.behind, r.batch, &t)
	}, func(batch *pgx.Batch) (err error) {
		if t.busy {
			time.AfterFunc(restMost, func() { rouse(r.wake) })
		}
		r.behind = t.last
		started, err = jobs.InsertManyLater(r.client, batch, Fanout, fanouts(t.claimed))
		return err
	})
	started.Settle(err)
	if err != nil {
		err = fmt.Errorf("hand over %d events: %w", len(t.claimed), err)
	}
	return t.claimed, t.more && len(t.claimed) > 0, err
}

// relayEach hands rows over one by one, each in its own transaction, so that one which cannot be handed over does not
// hold back the others. It reports whether one failed and waits for its next turn.
func (r *Relay) relayEach(ctx context.Context, rows []outboxRow) (failing bool, err error) {
	for _, row := range rows {
		err := r.relayOne(ctx, row)
		switch {
		case err == nil:
		case !blamesEvent(ctx, err):
			return true, err
		default:
			waits, err := r.charge(ctx, row, err)
			if err != nil {
				return true, err
			}
			failing = failing || waits
		}
	}
	return failing, nil
}

func (r *Relay) relayOne(ctx context.Context, row outboxRow) error {
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	var started *jobs.Started
	err := store.InTx(ctx, r.pool, func(tx pgx.Tx) error {
		err := claimOneTx(ctx, tx, row)
		if errors.Is(err, store.ErrNotFound) {
			return nil // Another relay has it, or had it.
		}
		if err != nil {
			return err
		}
		started, err = jobs.InsertManyTx(ctx, r.client, tx, Fanout, fanouts([]outboxRow{row}))
		return err
	})
	started.Settle(err)
	return err
}

// fanouts makes one task per project for rows that the transaction has marked, each with its events in the order of rows.
func fanouts(rows []outboxRow) []jobs.Item[FanoutArgs] {
	place := map[string]int{}
	var items []jobs.Item[FanoutArgs]
	for _, row := range rows {
		i, ok := place[row.ProjectID]
		if !ok {
			i = len(items)
			place[row.ProjectID] = i
			items = append(items, jobs.Item[FanoutArgs]{
				Args:   FanoutArgs{ProjectID: row.ProjectID},
				Insert: jobs.Insert{ProjectID: row.ProjectID, Here: true},
			})
		}
		items[i].Args.EventIDs = append(items[i].Args.EventIDs, row.ID)
		items[i].Args.Through = max(items[i].Args.Through, row.Seq)
	}
	for i := range items {
		items[i].Label = map[string]string{"subject": subject(items[i].Args.EventIDs)}
	}
	return items
}

func subject(ids []string) string {
	if len(ids) == 1 {
		return ids[0]
	}
	return fmt.Sprintf("%d events", len(ids))
}
