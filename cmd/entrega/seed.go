package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"entrega/internal/egress"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/webhooks"
)

const (
	// seedPeriod is how far back the past of a filled installation goes: as long as finished tasks are kept.
	seedPeriod = 30 * 24 * time.Hour
	// seedBatch is how many tasks one transaction stores.
	seedBatch = 5000
	// seedWriters store batches at once.
	seedWriters = 2
)

// seedOptions say how much to fill in.
type seedOptions struct {
	tasks, projects int
	owner           string
	force           bool
}

func seedCommand(env environment) *cobra.Command {
	var o seedOptions
	cmd := &cobra.Command{
		Use:   "seed",
		Short: "Fill an empty installation, to measure how it does with much in it",
		Long: "Fills an installation with projects, endpoints, events and tasks of the last 30 days, their attempts and the sums over them, as\n" +
			"if it had been in use. The first project is the largest. Do not serve from it with workers: what waits would be sent.",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.tasks < 1 || o.projects < 1 {
				return errors.New("tasks and projects: give at least 1 of each")
			}
			return withDatabase(cmd.Context(), env, func(ctx context.Context, c Config, d *database) error { return seed(ctx, env, c, d, o) })
		},
	}
	cmd.Flags().IntVar(&o.tasks, "tasks", 100_000, "number of tasks")
	cmd.Flags().IntVar(&o.projects, "projects", 50, "number of projects")
	cmd.Flags().StringVar(&o.owner, "owner", "", "e-mail address of the projects' owner, who must exist")
	cmd.Flags().BoolVar(&o.force, "force", false, "also where there are projects already")
	return cmd
}

func seed(ctx context.Context, env environment, c Config, d *database, o seedOptions) error {
	started := time.Now()
	var used bool
	if err := d.pool.QueryRow(ctx, `select exists (select from projects)`).Scan(&used); err != nil {
		return fmt.Errorf("look for projects: %w", err)
	}
	if used && !o.force {
		return errors.New("this installation has projects already. Choose another ENTREGA_DATA or DATABASE_URL, or give --force")
	}
	f, err := newFilling(ctx, c, d.pool, quietLogger(env), o, started)
	if err != nil {
		return err
	}
	if err := f.makeProjects(ctx); err != nil {
		return err
	}
	if err := f.fill(ctx); err != nil {
		return err
	}
	if err := f.finish(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.out, "%d projects with %d endpoints, %d events and %d tasks in %s. The largest is %s.\n",
		o.projects, f.endpointCount(), f.eventCount, f.taskCount, time.Since(started).Round(time.Second), f.projects[0].id)
	return err
}

// filling is one run of the command. All but the writers is one goroutine's.
type filling struct {
	options   seedOptions
	pool      *pgxpool.Pool
	endpoints *webhooks.Endpoints
	seeder    *jobs.Seeder
	random    *rand.Rand // the same in each run, so that runs can be compared
	now       time.Time
	since     time.Time
	ownerID   string

	projects              []*seedProject
	eventCount, taskCount int
}

func newFilling(ctx context.Context, c Config, pool *pgxpool.Pool, log *slog.Logger, o seedOptions, now time.Time) (*filling, error) {
	f := &filling{options: o, pool: pool, random: rand.New(rand.NewPCG(1, 2)), now: now.UTC(), since: now.UTC().Add(-seedPeriod)}
	if o.owner != "" {
		u, err := tenant.UserByEmail(ctx, pool, o.owner)
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("owner: nobody has the address %s. Create them first: entrega user create --email %s", o.owner, o.owner)
		}
		if err != nil {
			return nil, err
		}
		f.ownerID = u.ID
	}
	if err := c.ensureKey(); err != nil {
		return nil, err
	}
	box, err := newBox(c)
	if err != nil {
		return nil, err
	}
	policies, err := jobs.LoadPolicies(c.Policies)
	if err != nil {
		return nil, err
	}
	if err := policies.StoreVersions(ctx, pool); err != nil {
		return nil, err
	}
	client, err := jobs.NewClient(jobs.ClientOptions{Pool: pool, Policies: policies, Logger: log})
	if err != nil {
		return nil, err
	}
	door, err := egress.New(egress.Options{})
	if err != nil {
		return nil, err
	}
	defer door.Close() // It only looks at addresses here.
	f.endpoints = webhooks.NewEndpoints(webhooks.EndpointsOptions{Pool: pool, Client: client, Door: door, Box: box, Logger: log})
	f.seeder, err = jobs.NewSeeder(ctx, jobs.SeederOptions{Client: client, Pool: pool, Since: f.since, Now: f.now})
	return f, err
}

// fill makes what happened, in the order in which it happened, and has it stored beside.
func (f *filling) fill(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	batches := make(chan *seedRows, seedWriters)
	var writers sync.WaitGroup
	for range seedWriters {
		writers.Go(func() {
			for b := range batches {
				if err := f.write(ctx, b); err != nil {
					stop(err)
				}
			}
		})
	}
	b := &seedRows{}
	for f.taskCount < f.options.tasks && ctx.Err() == nil {
		if err := f.happen(ctx, b); err != nil {
			stop(err)
		}
		if f.taskCount >= f.options.tasks {
			f.fillOutbox(b)
		}
		if len(b.tasks) >= seedBatch || f.taskCount >= f.options.tasks {
			batches <- b
			b = &seedRows{}
		}
	}
	close(batches)
	writers.Wait()
	if ctx.Err() != nil {
		// Not wrapped: for a command that was told to stop this would be a good end.
		return fmt.Errorf("stopped after %d of %d tasks; this installation is no use for measuring: %v", f.taskCount, f.options.tasks, context.Cause(ctx))
	}
	return nil
}

func (f *filling) write(ctx context.Context, b *seedRows) error {
	return store.InTx(ctx, f.pool, func(tx pgx.Tx) error {
		if err := b.writeTx(ctx, tx); err != nil {
			return err
		}
		return f.seeder.Write(ctx, tx, b.tasks)
	})
}

// finish sums up, and gives the planner fresh figures of all that was filled.
func (f *filling) finish(ctx context.Context) error {
	if err := f.seeder.Finish(ctx); err != nil {
		return err
	}
	for _, table := range []string{"events", "event_outbox", "event_outcomes", "missed_events", "audit_log", "endpoints", "endpoint_lanes", "projects", "members"} {
		if _, err := f.pool.Exec(ctx, `vacuum (analyze) `+table); err != nil {
			return fmt.Errorf("analyse %s: %w", table, err)
		}
	}
	return nil
}
