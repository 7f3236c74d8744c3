package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/riverqueue/river"

	"entrega/internal/store"
)

// Periodic is a job that runs by the clock, once in the whole installation, on the node that leads. It is not retried: the next
// period is its retry.
type Periodic struct {
	// Name is its kind, such as "ledger.partitions".
	Name string
	// About is one sentence for the panel.
	About string
	// Every is the period.
	Every time.Duration
	// RunOnStart also runs it when a node becomes the leader.
	RunOnStart bool
	Do         func(ctx context.Context) error
}

// NextAt is when the next period begins after now, given since when a node leads: it begins the periods anew. It is zero while none
// leads.
func (p Periodic) NextAt(leadsSince, now time.Time) time.Time {
	if leadsSince.IsZero() || p.Every <= 0 {
		return time.Time{}
	}
	begun := max(now.Sub(leadsSince), 0) / p.Every
	return leadsSince.Add((begun + 1) * p.Every)
}

type noArgs struct{}

func (p Periodic) kind() Kind[noArgs] {
	return Kind[noArgs]{Name: p.Name, Queue: QueueMaintenance, Policy: "periodic", Timeout: longestTimeout}
}

func (p Periodic) registration() Registration {
	return On(p.kind(), func(ctx context.Context, _ *Job[noArgs]) error { return p.Do(ctx) })
}

func riverPeriodic(c *Client, all []Periodic) []*river.PeriodicJob {
	out := make([]*river.PeriodicJob, 0, len(all))
	for _, p := range all {
		out = append(out, river.NewPeriodicJob(river.PeriodicInterval(p.Every), func() (river.JobArgs, *river.InsertOpts) {
			args, opts, err := prepare(c, p.kind(), noArgs{}, Insert{Unique: true})
			if err != nil {
				return nil, nil // River enqueues nothing; NewWorker has proved that the policy exists.
			}
			return args, opts
		}, &river.PeriodicJobOpts{ID: p.Name, RunOnStart: p.RunOnStart}))
	}
	return out
}

// LedgerPartitions makes the day partitions of the ledger ahead of time.
func LedgerPartitions(db store.DB) Periodic {
	return Periodic{Name: "ledger.partitions", About: "Makes the ledger's partitions for the coming days.", Every: 6 * time.Hour, RunOnStart: true,
		Do: func(ctx context.Context) error {
			if _, err := db.Exec(ctx, `select entrega_ensure_partitions(7)`); err != nil {
				return fmt.Errorf("make ledger partitions: %w", err)
			}
			return nil
		}}
}
