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
	// channel is what the trigger on events notifies.
	channel = "entrega_event"
	// defaultBatch is how many events one transaction hands over.
	defaultBatch = 100
	// defaultSweepEvery finds what no notification told of: they are lost while nobody listens.
	defaultSweepEvery = time.Minute
	// defaultSweepSoon is the pace while events that failed wait for their turn, and while the relay is deaf.
	defaultSweepSoon = 5 * time.Second
	// restEach and restMost are how long the relay rests after a pass for each event that it brought, and at most: what comes meanwhile
	// shares the next pass and the tasks that it makes. A lone event makes the next one wait for a millisecond.
	restEach = time.Millisecond
	restMost = 25 * time.Millisecond
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
// before; and nothing is sent before the commit by which a worker claims the delivery, which comes later and does wait.
type Relay struct {
	pool   *pgxpool.Pool
	client *jobs.Client
	logger *slog.Logger
	batch  int
	behind string // the project that had its turn last; Run and Sweep are not called at once

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
		sweepEvery: defaultSweepEvery, sweepSoon: defaultSweepSoon}
}

// Run relays until ctx ends: at once when an event is published, and by sweeps. It uses a connection of its own to listen
// and one of the pool at a time.
func (r *Relay) Run(ctx context.Context) {
	if _, err := r.pool.Exec(ctx, `select entrega_widen_outbox()`); err != nil && ctx.Err() == nil {
		r.logger.WarnContext(ctx, "the outbox could not be widened; plans for it may be poor until it is vacuumed", "error", err)
	}
	wake := make(chan struct{}, 1)
	deaf := r.listen(ctx, wake)
	sweep := time.NewTimer(0)
	defer sweep.Stop()

	soon := false // The sweep is set to sweepSoon.
	for {
		swept := false
		select {
		case <-ctx.Done():
			if deaf != nil {
				<-deaf
			}
			return
		case <-deaf:
			deaf = nil
		case <-wake:
		case <-sweep.C:
			swept = true
			if deaf == nil {
				deaf = r.listen(ctx, wake)
			}
		}
		calm, brought, more := r.pass(ctx, swept)
		if more {
			rouse(wake)
		} else {
			rest(ctx, min(time.Duration(brought)*restEach, restMost))
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

// listen wakes the relay at each publish until the connection is lost, which closes the channel it returns. The first
// wake comes as soon as it listens, for what was published before.
func (r *Relay) listen(ctx context.Context, wake chan<- struct{}) <-chan struct{} {
	deaf := make(chan struct{})
	go func() {
		defer close(deaf)
		err := store.Listen(ctx, r.pool, channel, func(string) { rouse(wake) })
		if ctx.Err() == nil {
			r.logger.WarnContext(ctx, "the relay lost its notifications and sweeps until it has them again", "error", err)
		}
	}()
	return deaf
}

func rouse(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default: // A wake that waits already covers this one.
	}
}

func rest(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// pass gives one turn to what is new and, with a sweep, to what failed before, so that neither can keep the other away. It
// reports whether nothing is left that failed, how many new events it brought, and whether more may be there.
func (r *Relay) pass(ctx context.Context, sweep bool) (calm bool, brought int, more bool) {
	failing := false
	var err error
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
	return err == nil && !failing, brought, more && err == nil
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

// relayFresh hands over events that never failed: one turn of them. It reports how many there were, whether there may be more, and
// whether some failed now and wait.
func (r *Relay) relayFresh(ctx context.Context) (n int, more, failing bool, err error) {
	claimed, more, err := r.relayTurn(ctx)
	if err != nil && len(claimed) > 0 && blamesEvent(ctx, err) {
		failing, err = r.relayEach(ctx, claimed)
	}
	return len(claimed), more, failing || err != nil, err
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
	err = store.InAsyncTx(ctx, r.pool, func(tx pgx.Tx) error {
		var last string
		claimed, last, more, err = claimTurnTx(ctx, tx, r.behind, r.batch)
		if err != nil {
			return err
		}
		r.behind = last
		return r.handOverTx(ctx, tx, claimed)
	})
	return claimed, more && len(claimed) > 0, err
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
	return store.InTx(ctx, r.pool, func(tx pgx.Tx) error {
		err := claimOneTx(ctx, tx, row)
		if errors.Is(err, store.ErrNotFound) {
			return nil // Another relay has it, or had it.
		}
		if err != nil {
			return err
		}
		return r.handOverTx(ctx, tx, []outboxRow{row})
	})
}

// handOverTx puts one fan-out task per project into the queue, for rows that the transaction has marked.
func (r *Relay) handOverTx(ctx context.Context, tx pgx.Tx, rows []outboxRow) error {
	_, err := jobs.InsertManyTx(ctx, r.client, tx, Fanout, fanouts(rows))
	return err
}

// fanouts makes one task per project, each with its events in the order of rows.
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
				Insert: jobs.Insert{ProjectID: row.ProjectID},
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
