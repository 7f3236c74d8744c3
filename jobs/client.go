package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"entrega/internal/store"
)

// riverHeadroom is what River may try beyond the policy's attempts: a crash must not eat the last attempt, and it is our policy
// that decides when to stop.
const riverHeadroom = 3

// ClientOptions are what a Client needs.
type ClientOptions struct {
	Pool     *pgxpool.Pool
	Policies *PolicySet
	Logger   *slog.Logger
	// BeforeRetry may refuse a person's retry, as when the task's endpoint is disabled. It runs in the retry's transaction.
	BeforeRetry func(ctx context.Context, tx pgx.Tx, task Task) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Client puts tasks into the queue, lists them and acts on them. It works none itself and is safe for concurrent use.
type Client struct {
	pool        *pgxpool.Pool
	river       *river.Client[pgx.Tx]
	policies    *PolicySet
	beforeRetry func(ctx context.Context, tx pgx.Tx, task Task) error
	now         func() time.Time
	counts      countCache
	starter     *starter
}

// NewClient makes a Client on the pool.
func NewClient(o ClientOptions) (*Client, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	// The cooldown is also the shortest time between two notifications of inserts: one that is left out costs a poll.
	rc, err := river.NewClient(riverpgxv5.New(o.Pool), &river.Config{Logger: o.Logger, FetchCooldown: river.FetchCooldownMin})
	if err != nil {
		return nil, fmt.Errorf("make River's insert client: %w", err)
	}
	return &Client{pool: o.Pool, river: rc, policies: o.Policies, beforeRetry: o.BeforeRetry, now: o.Now, starter: newStarter(o.Pool, o.Logger)}, nil
}

// Policies are the policies that this client's tasks live by.
func (c *Client) Policies() *PolicySet { return c.policies }

// Insert says where a new task belongs and when it may run.
type Insert struct {
	ProjectID  string
	EndpointID string
	EventID    string
	// IdempotencyKey, OrderID and RecipientRef are what the ledger's rows of the task are about, beside event and endpoint. They stand
	// in every row, also in that of an attempt whose node died.
	IdempotencyKey, OrderID string
	RecipientRef            []byte
	// Label holds small facts for lists, such as event_type and host. Never secrets or payloads.
	Label map[string]string
	// ScheduledAt is the earliest start; zero means now.
	ScheduledAt time.Time
	// Pending keeps the task waiting until it is promoted.
	Pending bool
	// Trigger is recorded on the first attempt; empty means schedule.
	Trigger Trigger
	// Queue takes the place of the kind's; empty leaves that.
	Queue string
	// Here, where many are inserted, starts the task on this node where a worker is free, instead of making it due.
	Here bool
	// Unique makes a second insert with the same arguments, while the first is unfinished, a no-op.
	Unique bool
}

// InsertTx puts one task into the queue as part of the caller's transaction and returns its id.
func InsertTx[T any](ctx context.Context, c *Client, tx pgx.Tx, k Kind[T], args T, in Insert) (int64, error) {
	a, opts, err := prepare(c, k, args, in)
	if err != nil {
		return 0, err
	}
	res, err := c.river.InsertTx(ctx, tx, a, opts)
	if err != nil {
		return 0, fmt.Errorf("insert %s: %w", k.Name, err)
	}
	return res.Job.ID, nil
}

func prepare[T any](c *Client, k Kind[T], args T, in Insert) (rawArgs, *river.InsertOpts, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return rawArgs{}, nil, fmt.Errorf("encode arguments of %s: %w", k.Name, err)
	}
	policy, ok := c.policies.For(k.policy())
	if !ok {
		return rawArgs{}, nil, fmt.Errorf("kind %s has no policy", k.Name)
	}
	meta, err := json.Marshal(metadata{ProjectID: in.ProjectID, EndpointID: in.EndpointID, EventID: in.EventID,
		IdempotencyKey: in.IdempotencyKey, OrderID: in.OrderID, RecipientRef: in.RecipientRef, Label: in.Label, Trigger: in.Trigger, Max: policy.Attempts})
	if err != nil {
		return rawArgs{}, nil, fmt.Errorf("encode metadata of %s: %w", k.Name, err)
	}
	opts := &river.InsertOpts{MaxAttempts: policy.Attempts + riverHeadroom, Metadata: meta, Queue: k.Queue,
		ScheduledAt: in.ScheduledAt, Pending: in.Pending}
	if in.Queue != "" {
		opts.Queue = in.Queue
	}
	if in.Unique {
		// River's own choice of states counts completed ones in, as long as their rows are kept: a periodic job would run once a day.
		opts.UniqueOpts = river.UniqueOpts{ByArgs: true, ByQueue: true, ByState: []rivertype.JobState{rivertype.JobStateAvailable,
			rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled}}
	}
	return rawArgs{kind: k.Name, json: raw}, opts, nil
}

// Nudge tells the workers of a queue to fetch now, as River's own inserts do, instead of at their next poll. In a transaction it
// takes effect with the commit.
func Nudge(ctx context.Context, db store.DB, queue string) error {
	if _, err := db.Exec(ctx, notifyQueues, []string{queue}); err != nil {
		return fmt.Errorf("tell the workers of %s: %w", queue, err)
	}
	return nil
}

// rawArgs carries any kind's arguments through River, which must never be the one to fail on them.
type rawArgs struct {
	kind string
	json json.RawMessage
}

// Kind is River's name for the task.
func (a rawArgs) Kind() string { return a.kind }

// MarshalJSON gives the arguments as they are.
func (a rawArgs) MarshalJSON() ([]byte, error) { return a.json, nil }

// UnmarshalJSON keeps the arguments for the handler to decode.
func (a *rawArgs) UnmarshalJSON(b []byte) error {
	a.json = append(a.json[:0], b...)
	return nil
}
