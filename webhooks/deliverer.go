package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/egress"
	"entrega/internal/events"
	"entrega/internal/seal"
	"entrega/internal/store"
	"entrega/jobs"
)

const (
	// keepEvery is the pace of the lease keeper.
	keepEvery = time.Second
	// sweepEvery is how often a node looks for backlogs that nobody works.
	sweepEvery = 5 * time.Second
	// keepTimeout bounds one statement of the keeper.
	keepTimeout = 5 * time.Second
	// lookEvery is how often the lanes are looked over for those that make no progress.
	lookEvery = 250 * time.Millisecond
	// promoters is how many endpoints are promoted at once.
	promoters = 4
	// channel tells of endpoints that changed, by their project, and of lanes that got a backlog, by their endpoint.
	channel        = "entrega_endpoint"
	endpointPrefix = "endpoint_" // of endpoint ids, which tells the two apart
	// listenAgain is how long a node is deaf at least when it lost its notifications. Nothing rests on them but speed.
	listenAgain = time.Second
	// drainedQueue bounds the endpoints that wait to be promoted; what does not fit is found by the sweep.
	drainedQueue = 1024
)

// DelivererOptions are what a Deliverer needs.
type DelivererOptions struct {
	Pool   *pgxpool.Pool
	Client *jobs.Client
	Door   *egress.Door
	Box    *seal.Box
	Logger *slog.Logger
	// Gate is the one of the whole process; nil lets everything in.
	Gate *store.Gate
	// NodeID is the name of this process among the nodes: the one that its jobs.Worker has.
	NodeID string
	// Version is this program's, for the user agent.
	Version string
	// MaxParked bounds the deliveries that hold a worker while they wait in their lanes; 700 when zero. It must be well
	// below the number of workers.
	MaxParked int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Deliverer is the working side of the package: it fans out, delivers and redelivers the tasks that its node's jobs.Worker
// hands it, and keeps the lanes. It is safe for concurrent use.
type Deliverer struct {
	pool      *pgxpool.Pool
	client    *jobs.Client
	door      *egress.Door
	log       *slog.Logger
	gate      *store.Gate
	nodeID    string
	userAgent string
	now       func() time.Time
	targets   *targets
	contents  *contents
	briefings *store.Loader[laneKey, briefing]
	lanes     *lanes
	fanouts   turns // by project

	mu      sync.Mutex
	wanting map[string]bool // endpoints whose lanes here want more
	wanted  chan struct{}   // readable when there are some
	asked   map[string]bool // endpoints in the queue to be promoted or in hand; true when asked for once more
	queue   chan string
}

// NewDeliverer makes a Deliverer. Its handlers go to a jobs.Worker; Run must run beside that.
func NewDeliverer(o DelivererOptions) *Deliverer {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxParked == 0 {
		o.MaxParked = defaultMaxParked
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	d := &Deliverer{pool: o.Pool, client: o.Client, door: o.Door, log: o.Logger, gate: o.Gate, nodeID: o.NodeID, userAgent: "Entrega/" + o.Version,
		now: o.Now, targets: newTargets(o.Pool, o.Box), wanting: map[string]bool{}, wanted: make(chan struct{}, 1),
		asked: map[string]bool{}, queue: make(chan string, drainedQueue)}
	d.contents = newContents(o.Pool)
	d.briefings = store.NewLoader(func(ctx context.Context, keys []laneKey) (map[laneKey]briefing, error) {
		return readBriefings(ctx, d.pool, keys)
	})
	d.lanes = newLanes(o.Now, o.MaxParked, d.drained, d.ask, d.unsure)
	return d
}

// Registrations pairs the kinds of this package with their handlers, and events.Fanout.
func (d *Deliverer) Registrations() []jobs.Registration {
	return []jobs.Registration{jobs.On(events.Fanout, d.fanout), jobs.On(Deliver, d.deliver), jobs.On(Redelivery, d.redeliver)}
}

// Run keeps the leases of busy lanes, gives up those of idle ones, and promotes what waits in the table, until ctx ends. It
// then gives up every lease, so it must end after the worker has stopped.
func (d *Deliverer) Run(ctx context.Context) {
	var running sync.WaitGroup
	for range promoters {
		running.Go(func() { d.promoteAsked(ctx) })
	}
	running.Go(func() { d.listen(ctx) })
	keep, sweep, look := time.NewTicker(keepEvery), time.NewTicker(sweepEvery), time.NewTicker(lookEvery)
	defer keep.Stop()
	defer sweep.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			running.Wait()
			d.leaveLanes(ctx)
			return
		case <-look.C:
			d.lanes.look()
		case <-keep.C:
			d.keepLeases(ctx)
		case <-sweep.C:
			d.sweep(ctx)
		}
	}
}

// listen forgets what changed, and asks for the backlogs of lanes that others have added to.
func (d *Deliverer) listen(ctx context.Context) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
		err := store.Listen(ctx, d.pool, channel, func(subject string) {
			if strings.HasPrefix(subject, endpointPrefix) {
				if d.lanes.added(subject) {
					d.drained(subject)
				}
				return
			}
			d.lanes.forget(subject)
		})
		d.complain(ctx, "listen for changed endpoints", err)
		again.Reset(listenAgain)
	}
}

// ask has an endpoint's next deliveries promoted. It never blocks. While somebody promotes for the endpoint, once more is enough.
func (d *Deliverer) ask(endpointID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, asked := d.asked[endpointID]; asked {
		d.asked[endpointID] = true
		return
	}
	select {
	case d.queue <- endpointID:
		d.asked[endpointID] = false
	default: // The sweep finds it.
	}
}

// promoteAsked promotes for one endpoint after the other until ctx ends.
func (d *Deliverer) promoteAsked(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-d.queue:
			d.begin(id)
			for more := true; more && ctx.Err() == nil; more = d.askedAgain(id) {
				d.promote(ctx, id)
			}
		}
	}
}

// begin notes that what is asked for an endpoint from now on is not answered by who begins to promote.
func (d *Deliverer) begin(endpointID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked[endpointID] = false
}

// askedAgain reports whether somebody asked meanwhile; if not, the endpoint is done.
func (d *Deliverer) askedAgain(endpointID string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	again := d.asked[endpointID]
	if again {
		d.asked[endpointID] = false
	} else {
		delete(d.asked, endpointID)
	}
	return again
}

func (d *Deliverer) promote(ctx context.Context, endpointID string) {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	want, limit, _ := d.lanes.wants(endpointID)
	done, err := promote(ctx, d.pool, promoter{now: d.now(), node: d.nodeID, want: want, limit: limit}, endpointID)
	if p, ok := done[endpointID]; ok && err == nil {
		d.lanes.promoted(endpointID, p.ids, p.room)
	}
	d.complain(ctx, "promote deliveries", err)
}

// unsure asks the table what comes first in a lane one wide.
func (d *Deliverer) unsure(ln *lane) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), keepTimeout)
		defer cancel()
		after, first := d.lanes.question(ln)
		due, through, err := dueAfter(ctx, d.pool, ln.endpointID, after, first)
		d.lanes.learn(ln, due, through, err == nil)
		d.complain(ctx, "see what comes first", err)
	}()
}

// sweep promotes wherever something waits and no other node works the lane, and takes over what is due in the queues of nodes that are
// no more.
func (d *Deliverer) sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	ids, err := backlogged(ctx, d.pool)
	for _, id := range ids {
		if _, _, own := d.lanes.wants(id); own {
			d.drained(id) // The notification of its backlog may have been lost.
		}
	}
	if err == nil && len(ids) > 0 {
		_, err = promote(ctx, d.pool, promoter{now: d.now(), want: laneWindow}, ids...)
	}
	d.complain(ctx, "sweep for waiting deliveries", err)
	d.complain(ctx, "take what is due of the lanes here", jobs.TakeOwn(ctx, d.pool, d.nodeID))
	_, err = jobs.AdoptOrphans(ctx, d.pool)
	d.complain(ctx, "take over from nodes that are no more", err)
}

func (d *Deliverer) keepLeases(ctx context.Context) {
	renew, release := d.lanes.duties()
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	if len(renew) > 0 {
		asked := time.Now()
		got, err := renewLeases(ctx, d.pool, d.nodeID, renew)
		if err == nil {
			d.lanes.renewed(asked, renew, got)
		}
		d.complain(ctx, "renew leases", err)
	}
	if len(release) > 0 {
		d.complain(ctx, "release leases", releaseLeases(ctx, d.pool, d.nodeID, release))
	}
}

func (d *Deliverer) leaveLanes(ctx context.Context) {
	rows := d.lanes.everything()
	if len(rows) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
	defer cancel()
	d.complain(ctx, "release leases", releaseLeases(ctx, d.pool, d.nodeID, rows))
}

// complain logs trouble of the keeper, which its next round meets again or not.
func (d *Deliverer) complain(ctx context.Context, what string, err error) {
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		d.log.WarnContext(ctx, "the keeper of the lanes stumbled", "doing", what, "error", err)
	}
}
