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
	// Content is for deliveries that start at once; it has no payload where more than a few events are considered, or a large one.
	Content content `db:"-"`
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
	// Here says that this node works the lane, or none.
	Here bool `db:"here"`
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
	// fanoutSoon is how long a task may be behind those of its project for others to do its work.
	fanoutSoon = time.Minute
	// fewEvents is how many events may be considered at once to count as having come alone. Their deliveries start with the commit, which waits
	// for the disk: commits that notify wait for each other, so those of many events, which nearly always notify, must not.
	fewEvents = 3
)

// fanout makes the deliveries of some events, and of others of the project that were handed over by now: those that were published
// before and are with other tasks must come first, so that deliveries are made in the order of publishing, whichever task runs first;
// and those behind it, as many as still fit, save their own tasks the work. It ends with its own: while more and more comes, those who
// wait for the turn would each hold a worker. An event that was considered before is passed over: the task may run twice, and another
// may have done its work.
func (d *Deliverer) fanout(ctx context.Context, job *jobs.Job[events.FanoutArgs]) error {
	done, waited, err := d.fanouts.take(ctx, job.Args.ProjectID)
	if err != nil {
		return stoppedFor(ctx, reasonNotReady)
	}
	defer done()
	if waited { // Those before may have done all of it.
		left, err := anyToConsider(ctx, d.pool, job.Args)
		if err != nil || !left {
			return err
		}
	}
	if len(job.Args.EventIDs) <= fewEvents && !waited && job.Number == 1 {
		d.gate.Alone()
	}
	for rows := len(job.Args.EventIDs); ; rows = fanoutMost { // A round that filled up may be followed by others as large.
		endpoints, finished, err := d.fanoutRound(ctx, job, rows)
		if err != nil {
			return fmt.Errorf("fan out %d events: %w", len(job.Args.EventIDs), err)
		}
		d.askFor(endpoints)
		if finished {
			return nil
		}
	}
}

// fanoutRound is one transaction, on about as many events. It considers the next ones, and completes the task with its own last.
func (d *Deliverer) fanoutRound(ctx context.Context, job *jobs.Job[events.FanoutArgs], rows int) (endpoints []fanoutEndpoint, finished bool, err error) {
	defer d.gate.Enter(ctx, rows)()
	project := job.Args.ProjectID
	var found []fanoutEvent
	var started *jobs.Started
	// A commit that a crash of the database undoes leaves the task undone with it. Deliveries are claimed by a later commit, or start with
	// this one, which waits for the disk then.
	err = store.InTwoSteps(ctx, d.pool, func(read *pgx.Batch) {
		lockWindows(read, project)
		readEndpoints(read, project, d.nodeID, nil, &endpoints)
		lockEvents(read, job.Args, job.Number > 1, &found, &finished)
	}, func(write *pgx.Batch) (err error) {
		plan := planFanout(project, found, endpoints, d.now())
		if started, err = jobs.InsertManyLater(d.client, write, Deliver, plan.deliveries); err != nil {
			return err
		}
		if err := plan.write(write, project); err != nil {
			return err
		}
		d.tell(write, endpoints)
		events.WakeRelays(write, project)
		for _, ev := range found {
			d.contents.keep(contentKey{project, ev.ID}, ev.Content)
		}
		if finished {
			return job.CompleteLater(ctx, write)
		}
		return nil
	})
	started.Settle(err)
	return endpoints, finished, err
}

// lockWindows makes those who add to the windows of a project's endpoints come one after the other: two at once would each fill the
// same room, and mix up their orders. What reads the windows comes behind it, as statements of their own that see what was done before.
func lockWindows(batch *pgx.Batch, project string) {
	batch.Queue(`select from projects where id = $1 for no key update`, project)
}

// waits reports whether deliveries wait behind the endpoint's window for a promotion.
func (e fanoutEndpoint) waits() bool { return e.Backlog && !e.Held }

// tell tells the other nodes of deliveries that wait now for lanes of theirs.
func (d *Deliverer) tell(batch *pgx.Batch, endpoints []fanoutEndpoint) {
	var ids []string
	for _, e := range endpoints {
		if e.waits() && e.Holder != "" && e.Holder != d.nodeID {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) > 0 {
		batch.Queue(`select pg_notify($1, id) from unnest($2::text[]) as e (id)`, channel, ids)
	}
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

// anyToConsider reports whether events up to the last of a task's own still wait for their fan-out. It asks for the first of the project,
// since the ids of all that were handed over are in no index.
func anyToConsider(ctx context.Context, db store.DB, task events.FanoutArgs) (left bool, err error) {
	if task.Through == 0 {
		return true, nil
	}
	err = db.QueryRow(ctx, `
		select coalesce((select seq <= $2 from event_outbox where project_id = $1 and fanned_out_at is not null order by seq limit 1), false)`,
		task.ProjectID, task.Through).Scan(&left)
	if err != nil {
		return false, fmt.Errorf("see which events are left: %w", err)
	}
	return left, nil
}

// lockEvents takes the next events of a project that are handed over and not considered, first published first, up to the last of
// the task's own where only those that must come first are wanted, and says whether the task is done with them. One that was handed over
// long ago and still is not considered has failed its own task, and must not fail others.
func lockEvents(batch *pgx.Batch, task events.FanoutArgs, noMore bool, found *[]fanoutEvent, last *bool) {
	batch.Queue(`
		with room as materialized (
			select greatest(1, least($3, $6 / greatest(1, count(*)))) as most from endpoints where project_id = $1 and deleted_at is null
		), alone as materialized (
			select count(*) <= $8 as few from (select from event_outbox where project_id = $1 and fanned_out_at is not null limit $8 + 1) w
		)
		select e.seq, e.id, e.type, coalesce(e.subscriber, '') as subscriber, e.expires_at, (select most from room) as most,
		       coalesce(e.occurred_at, e.created_at) as at, case when (select few from alone) and octet_length(e.data) <= $9 then e.data end as data
		from event_outbox w join events e on e.seq = w.seq
		where w.project_id = $1 and w.fanned_out_at is not null
		  and (not $4 or w.seq <= $7)
		  and (w.fanned_out_at > now() - $5::interval or w.event_id = any($2))
		order by w.seq limit (select most from room) for update of w`,
		task.ProjectID, task.EventIDs, fanoutMost, noMore && task.Through > 0, fanoutSoon, fanoutDeliveries, task.Through,
		fewEvents, keptPayload).Query(func(rows pgx.Rows) error {
		most := 1
		for rows.Next() {
			var ev fanoutEvent
			c := &ev.Content
			if err := rows.Scan(&ev.Seq, &ev.ID, &ev.Type, &ev.Subscriber, &ev.ExpiresAt, &most, &c.at, &c.data); err != nil {
				return err
			}
			c.typ, c.expiresAt = ev.Type, orZero(ev.ExpiresAt)
			*found = append(*found, ev)
		}
		err := rows.Err()
		*last = len(*found) < most || task.Through > 0 && (*found)[len(*found)-1].Seq >= task.Through
		return err
	})
}

// lockedEndpointsTx locks the windows of a project's endpoints and lists the endpoints, or some of them.
func lockedEndpointsTx(ctx context.Context, tx pgx.Tx, project string, ids ...string) ([]fanoutEndpoint, error) {
	var endpoints []fanoutEndpoint
	batch := &pgx.Batch{}
	lockWindows(batch, project)
	readEndpoints(batch, project, "", ids, &endpoints)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("list endpoints to deliver to: %w", err)
	}
	return endpoints, nil
}

// readEndpoints lists a project's endpoints, or some of them, oldest first, with the state of their windows. Whether more waits is asked in an
// order that only an index of what waits has, and of a range of endpoints, since of a single one any index has it: by the statistics nearly all
// tasks may wait, for this endpoint or another, and the table would be read as a whole to meet the first.
func readEndpoints(batch *pgx.Batch, project, node string, ids []string, endpoints *[]fanoutEndpoint) {
	batch.Queue(`
		select e.id, e.url, coalesce(e.subscriber, '') as subscriber, e.event_types, e.disabled_at is not null as disabled,
		       e.paused_at is not null as held, l.failing_since is not null as failing,
		       (select count(*) from (select from river_job j where j.endpoint_id = e.id
		                              and j.state in ('available', 'running', 'scheduled', 'retryable') limit $2) w) as queued,
		       coalesce((select true from river_job j where j.endpoint_id between e.id and e.id and j.state = 'pending' order by j.endpoint_id, j.id limit 1), false) as backlog,
		       coalesce(n.id, '') as holder, coalesce(n.id = $5, true) as here
		from endpoints e join endpoint_lanes l on l.endpoint_id = e.id
		left join nodes n on n.id = l.holder and l.busy_until > now() and n.seen_at > now() - make_interval(secs => $3)
		where e.project_id = $1 and e.deleted_at is null and (coalesce(cardinality($4::text[]), 0) = 0 or e.id = any($4))
		order by e.created_at, e.id`, project, laneWindow, nodeDeadAfter.Seconds(), ids, node).Query(func(rows pgx.Rows) (err error) {
		*endpoints, err = pgx.CollectRows(rows, pgx.RowToStructByName[fanoutEndpoint])
		return err
	})
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
