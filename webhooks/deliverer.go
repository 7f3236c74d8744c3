package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/egress"
	"entrega/internal/events"
	"entrega/internal/seal"
	"entrega/jobs"
)

const (
	// keepEvery is the pace of the lease keeper.
	keepEvery = time.Second
	// sweepEvery is how often a node looks for backlogs that nobody works.
	sweepEvery = 5 * time.Second
	// keepTimeout bounds one statement of the keeper.
	keepTimeout = 5 * time.Second
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
	// NodeID is the name of this process among the nodes: the one that its jobs.Worker has.
	NodeID string
	// Version is this program's, for the user agent.
	Version string
	// MaxParked bounds the deliveries that hold a worker while they wait in their lanes; 100 when zero. It must be well
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
	nodeID    string
	userAgent string
	now       func() time.Time
	targets   *targets
	lanes     *lanes

	mu    sync.Mutex
	asked map[string]bool // endpoints in the queue to be promoted
	queue chan string
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
	d := &Deliverer{pool: o.Pool, client: o.Client, door: o.Door, log: o.Logger, nodeID: o.NodeID, userAgent: "Entrega/" + o.Version,
		now: o.Now, targets: newTargets(o.Pool, o.Box), asked: map[string]bool{}, queue: make(chan string, drainedQueue)}
	d.lanes = newLanes(o.Now, o.MaxParked, d.drained)
	return d
}

// Registrations pairs the kinds of this package with their handlers, and events.Fanout.
func (d *Deliverer) Registrations() []jobs.Registration {
	return []jobs.Registration{jobs.On(events.Fanout, d.fanout), jobs.On(Deliver, d.deliver), jobs.On(Redelivery, d.redeliver)}
}

// Run keeps the leases of busy lanes, gives up those of idle ones, and promotes what waits in the table, until ctx ends. It
// then gives up every lease, so it must end after the worker has stopped.
func (d *Deliverer) Run(ctx context.Context) {
	keep, sweep := time.NewTicker(keepEvery), time.NewTicker(sweepEvery)
	defer keep.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			d.leaveLanes(ctx)
			return
		case id := <-d.queue:
			d.promoteAsked(ctx, id)
		case <-keep.C:
			d.keepLeases(ctx)
		case <-sweep.C:
			d.sweep(ctx)
		}
	}
}

// drained asks for an endpoint's next deliveries. It never blocks.
func (d *Deliverer) drained(endpointID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asked[endpointID] {
		return
	}
	select {
	case d.queue <- endpointID:
		d.asked[endpointID] = true
	default: // The sweep finds it.
	}
}

func (d *Deliverer) promoteAsked(ctx context.Context, endpointID string) {
	d.mu.Lock()
	delete(d.asked, endpointID)
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	d.complain(ctx, "promote deliveries", promote(ctx, d.pool, d.now(), []string{endpointID}, d.lanes.worked(endpointID)))
}

// sweep promotes wherever something waits: the lanes of nobody, and of nodes that are no more.
func (d *Deliverer) sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keepTimeout)
	defer cancel()
	ids, err := backlogged(ctx, d.pool)
	if err == nil && len(ids) > 0 {
		err = promote(ctx, d.pool, d.now(), ids, nil)
	}
	d.complain(ctx, "sweep for waiting deliveries", err)
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
