package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"github.com/riverqueue/rivercontrib/otelriver"

	"entrega/internal/store"
)

// Timings of the worker, from 2-architecture.md.
const (
	defaultTimeout  = 30 * time.Second
	longestTimeout  = 10 * time.Minute
	softStopTimeout = 20 * time.Second
	rescueAfter     = 2 * time.Minute
	unknownKindWait = time.Minute // between the tries of a kind that this program does not know
)

// How long finished tasks stay in the table. The ledger outlives them.
const (
	keepCompleted = 30 * 24 * time.Hour
	keepCancelled = 30 * 24 * time.Hour
	keepDiscarded = 90 * 24 * time.Hour
)

// QueueConfig sizes one queue.
type QueueConfig struct {
	Workers int
	// Node sizes the node's own part of QueueWebhook, see NodeQueue; zero makes it as large as the whole.
	Node int
	// Cooldown is the shortest time between two fetches, Poll the longest when no notification comes.
	Cooldown, Poll time.Duration
}

// DefaultQueues are the queues of 2-architecture.md.
func DefaultQueues() map[string]QueueConfig {
	return map[string]QueueConfig{
		QueueWebhook:     {Workers: 200, Node: 1000, Cooldown: 5 * time.Millisecond, Poll: 250 * time.Millisecond},
		QueueNotify:      {Workers: 8, Cooldown: 20 * time.Millisecond, Poll: 500 * time.Millisecond},
		QueueIndex:       {Workers: 4, Cooldown: 100 * time.Millisecond, Poll: time.Second},
		QueueInvoke:      {Workers: 16, Cooldown: 20 * time.Millisecond, Poll: 500 * time.Millisecond},
		QueueMaintenance: {Workers: 2, Cooldown: 100 * time.Millisecond, Poll: time.Second},
	}
}

// WorkerOptions are what a Worker needs.
type WorkerOptions struct {
	Client *Client
	Pool   *pgxpool.Pool
	Ledger *Ledger
	Logger *slog.Logger
	// NodeID names this process among the nodes; empty makes one.
	NodeID string
	// Version is this program's, for the list of nodes.
	Version string
	// Queues nil means DefaultQueues.
	Queues map[string]QueueConfig
	// Claimer says what the node's own queue takes from the table; nil leaves it to what is due there.
	Claimer Claimer
	// Gate is the one of the whole process; nil lets everything in.
	Gate *store.Gate
	// Periodic are the jobs that run by the clock, on whichever node leads.
	Periodic []Periodic
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Testing turns off River's staggered start of its maintenance services.
	Testing bool
}

// Worker works the queues of one node.
type Worker struct {
	client *Client
	pool   *pgxpool.Pool
	ledger *Ledger
	log    *slog.Logger
	node   Node
	now    func() time.Time
	kinds  map[string]Registration
	river  *river.Client[pgx.Tx]
	driver *driver
	stop   context.CancelFunc
	beat   chan struct{}
}

// NewWorker pairs kinds with handlers. Every node registers every kind: a node that fetched a task it does not know would fail it.
func NewWorker(o WorkerOptions, registrations ...Registration) (*Worker, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Queues == nil {
		o.Queues = DefaultQueues()
	}
	w := &Worker{client: o.Client, pool: o.Pool, ledger: o.Ledger, log: o.Logger, now: o.Now,
		node: newNode(o.NodeID, o.Version), kinds: make(map[string]Registration, len(registrations))}

	workers := river.NewWorkers()
	for _, p := range o.Periodic {
		registrations = append(registrations, p.registration())
	}
	for _, r := range registrations {
		if err := w.register(workers, r); err != nil {
			return nil, err
		}
	}
	w.driver = newDriver(o, w.node.ID)
	rc, err := river.NewClient(w.driver, w.riverConfig(o, workers))
	if err != nil {
		return nil, fmt.Errorf("make River's client: %w", err)
	}
	w.river = rc
	return w, nil
}

func (w *Worker) riverConfig(o WorkerOptions, workers *river.Workers) *river.Config {
	return &river.Config{
		ID:                          w.node.ID,
		Logger:                      o.Logger,
		Workers:                     workers,
		Queues:                      riverQueues(o.Queues, w.node.ID),
		RetryPolicy:                 retryPolicy{client: o.Client, now: o.Now},
		Middleware:                  []rivertype.Middleware{otelriver.NewMiddleware(nil), &adapter{worker: w}},
		JobTimeout:                  defaultTimeout,
		RescueStuckJobsAfter:        rescueAfter,
		SoftStopTimeout:             softStopTimeout,
		CompletedJobRetentionPeriod: keepCompleted,
		CancelledJobRetentionPeriod: keepCancelled,
		DiscardedJobRetentionPeriod: keepDiscarded,
		PeriodicJobs:                riverPeriodic(o.Client, o.Periodic),
		ReindexerIndexNames: []string{"river_job_pkey", "river_job_prioritized_fetching_index",
			"river_job_state_and_finalized_at_index", "river_job_unique_idx", "task_project_state_idx",
			"task_project_kind_state_idx", "task_running_idx", "task_endpoint_state_idx", "task_event_idx", "task_pending_idx",
			"task_reason_idx", "task_error_type_idx"},
		TestOnly: o.Testing,
	}
}

func (w *Worker) register(workers *river.Workers, r Registration) error {
	if _, twice := w.kinds[r.kind]; twice {
		return fmt.Errorf("kind %s has two handlers", r.kind)
	}
	if _, ok := w.client.policies.For(r.policyKind, r.profile); !ok {
		return fmt.Errorf("kind %s has no policy for profile %s", r.kind, r.profile)
	}
	if r.timeout == 0 {
		r.timeout = defaultTimeout
	}
	if r.timeout > longestTimeout {
		return fmt.Errorf("kind %s has a timeout of %s, longer than the %s after which River takes a task for lost", r.kind, r.timeout, longestTimeout)
	}
	w.kinds[r.kind] = r
	river.AddWorkerArgs(workers, rawArgs{kind: r.kind}, &riverWorker{timeout: r.timeout})
	return nil
}

// NodeID is this node's name, which also marks its leases.
func (w *Worker) NodeID() string { return w.node.ID }

// Start begins to work. The context is for starting only; Stop ends the work.
func (w *Worker) Start(ctx context.Context) error {
	if err := w.node.beat(ctx, w.pool); err != nil {
		return err
	}
	if err := pauseLikeOthers(ctx, w.pool, w.node.ID); err != nil {
		return err
	}
	w.client.starter.open(w.node.ID, w.driver.rouse)
	if err := w.river.Start(context.WithoutCancel(ctx)); err != nil {
		<-w.client.starter.close(w.node.ID)
		return fmt.Errorf("start River: %w", err)
	}
	beatCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop, w.beat = stop, make(chan struct{})
	go func() {
		defer close(w.beat)
		w.heartbeat(beatCtx)
	}()
	return nil
}

// Stop fetches nothing more, gives what runs 20 s to finish, then cancels it without spending an attempt, and leaves the list of nodes.
// The context bounds the waiting.
func (w *Worker) Stop(ctx context.Context) error {
	givenBack := w.client.starter.close(w.node.ID)
	err := w.river.Stop(ctx)
	<-givenBack
	w.stop()
	<-w.beat
	if leaveErr := w.node.leave(context.WithoutCancel(ctx), w.pool); leaveErr != nil {
		err = errors.Join(err, leaveErr)
	}
	if err != nil {
		return fmt.Errorf("stop the worker: %w", err)
	}
	return nil
}

// Hurry cancels what still runs during a Stop at once, without spending an attempt. It returns when the Stop has ended.
func (w *Worker) Hurry(ctx context.Context) error {
	if err := w.river.StopAndCancel(ctx); err != nil {
		return fmt.Errorf("cut short what runs: %w", err)
	}
	return nil
}

func riverQueues(queues map[string]QueueConfig, node string) map[string]river.QueueConfig {
	out := make(map[string]river.QueueConfig, len(queues))
	for name, q := range queues {
		out[name] = river.QueueConfig{MaxWorkers: q.Workers, FetchCooldown: q.Cooldown, FetchPollInterval: q.Poll}
		if name == QueueWebhook {
			out[NodeQueue(name, node)] = river.QueueConfig{MaxWorkers: cmp.Or(q.Node, q.Workers), FetchCooldown: q.Cooldown, FetchPollInterval: q.Poll}
		}
	}
	return out
}

// riverWorker is the whole of what River sees of a handler: the adapter put the attempt into the context.
type riverWorker struct {
	river.WorkerDefaults[rawArgs]
	timeout time.Duration
}

// Timeout bounds the handler's context.
func (w *riverWorker) Timeout(*river.Job[rawArgs]) time.Duration { return w.timeout }

// Work hands the attempt to its handler.
func (w *riverWorker) Work(ctx context.Context, job *river.Job[rawArgs]) error {
	run, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return errors.New("the worker adapter is not installed")
	}
	return run.handle(ctx, job.Args.json)
}

// retryPolicy tells River when to come back: what the adapter decided and wrote into the row it was given. Where the adapter
// had no say (a task of an unknown kind, one that was rescued), Decide is asked here.
type retryPolicy struct {
	client *Client
	now    func() time.Time
}

// NextRetry is never in the past, since River would then fall back to a policy of its own.
func (p retryPolicy) NextRetry(row *rivertype.JobRow) time.Time {
	now := p.now()
	if row.ScheduledAt.After(now) {
		return row.ScheduledAt
	}
	policy, ok := p.client.policies.For(row.Kind, DefaultProfile)
	if !ok {
		return now.Add(unknownKindWait)
	}
	h := History{TaskID: row.ID, CreatedAt: row.CreatedAt, Attempt: max(row.Attempt, 1)}
	d := Decide(policy, h, ClassRetry, "", 0, nil, now)
	if d.NextAttemptAt.After(now) {
		return d.NextAttemptAt
	}
	return now.Add(time.Second)
}
