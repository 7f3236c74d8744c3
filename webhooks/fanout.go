package webhooks

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/jobs"
)

// SkipReason is the recorded word for why an event's fan-out made no delivery to an endpoint.
type SkipReason string

// The reasons for which an endpoint gets no delivery of an event.
const (
	SkipType       SkipReason = "type_not_subscribed"
	SkipSubscriber SkipReason = "other_subscriber"
	// SkipDisabled is an endpoint that would have got it. The event is noted as missed, for a redelivery to bring.
	SkipDisabled SkipReason = "endpoint_disabled"
	SkipExpired  SkipReason = "event_expired"
)

// maxSkippedListed bounds the endpoints that are named beside an event; the counts hold all.
const maxSkippedListed = 200

// fanoutEvent is what the fan-out needs of an event.
type fanoutEvent struct {
	Seq        int64      `db:"seq"`
	ID         string     `db:"id"`
	Type       string     `db:"type"`
	Subscriber string     `db:"subscriber"`
	ExpiresAt  *time.Time `db:"expires_at"`
}

// fanoutEndpoint is what the fan-out needs of an endpoint.
type fanoutEndpoint struct {
	ID         string   `db:"id"`
	URL        string   `db:"url"`
	Subscriber string   `db:"subscriber"`
	EventTypes []string `db:"event_types"`
	Disabled   bool     `db:"disabled"`
	// Held is one that a person has paused: its deliveries wait in the table.
	Held    bool `db:"held"`
	Failing bool `db:"failing"`
	// Queued is how many deliveries River has in its hands, as far as the window goes; Backlog tells that more wait already.
	Queued  int  `db:"queued"`
	Backlog bool `db:"backlog"`
	// Holder is the live node that works the lane; what it gets need not pass another.
	Holder string `db:"holder"`
}

// skip says why an endpoint does not get an event; "" is that it does. An event for a subscriber goes to that subscriber's
// endpoints and to those without one; an event without a subscriber goes to the latter only, for it may not be a customer's
// business.
func (e fanoutEndpoint) skip(ev fanoutEvent, now time.Time) SkipReason {
	switch {
	case len(e.EventTypes) > 0 && !slices.Contains(e.EventTypes, ev.Type):
		return SkipType
	case e.Subscriber != "" && e.Subscriber != ev.Subscriber:
		return SkipSubscriber
	case ev.ExpiresAt != nil && !now.Before(*ev.ExpiresAt):
		return SkipExpired
	case e.Disabled:
		return SkipDisabled
	default:
		return ""
	}
}

const (
	// fanoutMost bounds the events of one transaction, fanoutDeliveries about how many deliveries it makes of them.
	fanoutMost       = 200
	fanoutDeliveries = 5000
)

// fanout makes the deliveries of some events, and of all others of the project that were handed over by now: those that were
// published before and are with other tasks must come first, so that deliveries are made in the order of publishing, whichever task
// runs first; and those behind it save their own tasks the work. An event that was considered before is passed over: the task may
// run twice, and another may have done its work.
func (d *Deliverer) fanout(ctx context.Context, job *jobs.Job[events.FanoutArgs]) error {
	done, err := d.fanouts.take(ctx, job.Args.ProjectID)
	if err != nil {
		return stoppedFor(ctx, reasonNotReady)
	}
	defer done()
	left, err := anyToConsider(ctx, d.pool, job.Args.ProjectID, job.Args.EventIDs)
	if err != nil || !left {
		return err
	}
	for {
		var endpoints []fanoutEndpoint
		finished := false
		// A commit that a crash of the database undoes leaves the task undone with it. Deliveries are claimed by a later commit.
		err := store.InAsyncTx(ctx, d.pool, func(tx pgx.Tx) (err error) {
			endpoints, finished, err = d.fanoutTx(ctx, tx, job)
			return err
		})
		if err != nil {
			return fmt.Errorf("fan out %d events: %w", len(job.Args.EventIDs), err)
		}
		d.askFor(endpoints)
		if finished {
			return nil
		}
	}
}

// fanoutTx considers the next events, and completes the task with its own last ones.
func (d *Deliverer) fanoutTx(ctx context.Context, tx pgx.Tx, job *jobs.Job[events.FanoutArgs]) (endpoints []fanoutEndpoint, finished bool, err error) {
	project := job.Args.ProjectID
	if err := lockWindowsTx(ctx, tx, project); err != nil {
		return nil, false, err
	}
	if endpoints, err = fanoutEndpoints(ctx, tx, project); err != nil {
		return nil, false, err
	}
	most := min(max(fanoutDeliveries/max(len(endpoints), 1), 1), fanoutMost)
	found, err := lockEventsTx(ctx, tx, project, job.Args.EventIDs, job.Number > 1, most)
	if err != nil {
		return nil, false, err
	}
	plan := planFanout(project, found, endpoints, d.now())
	if _, err := jobs.InsertManyTx(ctx, d.client, tx, Deliver, plan.deliveries); err != nil {
		return nil, false, err
	}
	if err := plan.writeTx(ctx, tx, project); err != nil {
		return nil, false, err
	}
	if err := d.tellTx(ctx, tx, endpoints); err != nil {
		return nil, false, err
	}
	if err := events.WakeRelays(ctx, tx, project); err != nil {
		return nil, false, err
	}
	if finished = len(found) < most; finished {
		err = job.CompleteTx(ctx, tx)
	}
	return endpoints, finished, err
}

// lockWindowsTx makes those who add to the windows of a project's endpoints come one after the other: two at once would each fill
// the same room, and mix up their orders.
func lockWindowsTx(ctx context.Context, tx pgx.Tx, project string) error {
	if _, err := tx.Exec(ctx, `select from projects where id = $1 for no key update`, project); err != nil {
		return fmt.Errorf("wait for the project's windows: %w", err)
	}
	return nil
}

// waits reports whether deliveries wait behind the endpoint's window for a promotion.
func (e fanoutEndpoint) waits() bool { return e.Backlog && !e.Held }

// tellTx tells the other nodes of deliveries that wait now for lanes of theirs.
func (d *Deliverer) tellTx(ctx context.Context, tx pgx.Tx, endpoints []fanoutEndpoint) error {
	var ids []string
	for _, e := range endpoints {
		if e.waits() && e.Holder != "" && e.Holder != d.nodeID {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `select pg_notify($1, id) from unnest($2::text[]) as e (id)`, channel, ids); err != nil {
		return fmt.Errorf("tell of deliveries that wait: %w", err)
	}
	return nil
}

// askFor has the windows of endpoints looked at again behind which deliveries wait now: what filled one may be finished
// already, and then no other delivery would come by to ask.
func (d *Deliverer) askFor(endpoints []fanoutEndpoint) {
	for _, e := range endpoints {
		if e.waits() && (e.Holder == "" || e.Holder == d.nodeID) {
			d.drained(e.ID)
		}
	}
}

// anyToConsider reports whether one of some events still waits for its fan-out.
func anyToConsider(ctx context.Context, db store.DB, project string, ids []string) (left bool, err error) {
	err = db.QueryRow(ctx, `select exists (
		select from events where project_id = $1 and id = any($2) and considered_at is null and fanned_out_at is not null)`, project, ids).Scan(&left)
	if err != nil {
		return false, fmt.Errorf("see which events are left: %w", err)
	}
	return left, nil
}

// lockEventsTx takes the next events of a project that are handed over and not considered, first published first, up to the last of
// ids where only those that must come first are wanted. One that was handed over long ago and still is not considered has failed its
// own task, and must not fail others.
func lockEventsTx(ctx context.Context, tx pgx.Tx, project string, ids []string, noMore bool, most int) ([]fanoutEvent, error) {
	rows, err := tx.Query(ctx, `
		select seq, id, type, coalesce(subscriber, '') as subscriber, expires_at from events
		where project_id = $1 and considered_at is null and fanned_out_at is not null
		  and (not $4 or seq <= (select max(own.seq) from events own where own.project_id = $1 and own.id = any($2)))
		  and (fanned_out_at > now() - interval '1 minute' or id = any($2))
		order by seq limit $3 for update`, project, ids, most, noMore)
	if err != nil {
		return nil, fmt.Errorf("lock events: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[fanoutEvent])
	if err != nil {
		return nil, fmt.Errorf("lock events: %w", err)
	}
	return found, nil
}

// fanoutEndpoints lists a project's endpoints, oldest first, with the state of their windows.
func fanoutEndpoints(ctx context.Context, db store.DB, project string, ids ...string) ([]fanoutEndpoint, error) {
	rows, err := db.Query(ctx, `
		select e.id, e.url, coalesce(e.subscriber, '') as subscriber, e.event_types, e.disabled_at is not null as disabled,
		       e.paused_at is not null as held, l.failing_since is not null as failing,
		       (select count(*) from (select from river_job j where j.endpoint_id = e.id
		                              and j.state in ('available', 'running', 'scheduled', 'retryable') limit @window) w) as queued,
		       exists (select from river_job j where j.endpoint_id = e.id and j.state = 'pending') as backlog,
		       coalesce(n.id, '') as holder
		from endpoints e join endpoint_lanes l on l.endpoint_id = e.id
		left join nodes n on n.id = l.holder and l.busy_until > now() and n.seen_at > now() - make_interval(secs => @dead)
		where e.project_id = @project and e.deleted_at is null and (@all or e.id = any(@ids))
		order by e.created_at, e.id`,
		pgx.StrictNamedArgs{"project": project, "window": laneWindow, "all": len(ids) == 0, "ids": ids, "dead": nodeDeadAfter.Seconds()})
	if err != nil {
		return nil, fmt.Errorf("list endpoints to fan out to: %w", err)
	}
	endpoints, err := pgx.CollectRows(rows, pgx.RowToStructByName[fanoutEndpoint])
	if err != nil {
		return nil, fmt.Errorf("list endpoints to fan out to: %w", err)
	}
	return endpoints, nil
}

// place says how a new delivery waits: in River's hands while the window has room, later when the endpoint is failing, else in
// the table behind those that wait there already.
func (e *fanoutEndpoint) place(in *jobs.Insert, now time.Time) {
	if e.Backlog || e.Held || e.Queued >= laneWindow {
		in.Pending, e.Backlog = true, true
		return
	}
	e.Queued++
	if e.Holder != "" {
		in.Queue = jobs.NodeQueue(jobs.QueueWebhook, e.Holder)
	}
	if e.Failing {
		in.ScheduledAt = now.Add(cooldown)
	}
}

// delivery makes the task of one delivery.
func (e *fanoutEndpoint) delivery(project string, ev fanoutEvent, trigger jobs.Trigger, now time.Time) jobs.Item[DeliverArgs] {
	item := jobs.Item[DeliverArgs]{
		Args: DeliverArgs{ProjectID: project, EventID: ev.ID, EndpointID: e.ID},
		Insert: jobs.Insert{ProjectID: project, EndpointID: e.ID, EventID: ev.ID, Trigger: trigger,
			Label: map[string]string{"event_type": ev.Type, "host": hostOf(e.URL)}},
	}
	e.place(&item.Insert, now)
	return item
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
