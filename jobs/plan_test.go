package jobs

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/store/storetest"
	"entrega/internal/tenant"
)

const (
	planTasks    = 100_000
	planProjects = 50
	// bigProject has a fifth of all tasks.
	bigProject = "project_1"
	// badEndpoint fails, and has a backlog; goodEndpoint works.
	badEndpoint, goodEndpoint = "endpoint_1_0", "endpoint_1_1"

	// mergedPages is what a list may sort: a page of each of River's states.
	mergedPages = 8 * (store.DefaultLimit + 1)
)

// plans is a large installation and a client whose statements are noted.
type plans struct {
	*bundle
	recorder *storetest.Recorder
	planner  *storetest.Planner
	now      time.Time
	checked  int
}

// planSetup fills the tables once for all subtests, which take turns.
func planSetup(t *testing.T) *plans {
	t.Helper()
	p := &plans{bundle: setup(t), recorder: &storetest.Recorder{}, now: time.Now()}
	p.fill()
	pool, err := store.Open(t.Context(), storetest.DSN(p.pool), store.Options{MaxConns: 2, Tracer: p.recorder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	p.planner = storetest.NewPlanner(t, storetest.DSN(p.pool))
	p.pool = pool
	if p.client, err = NewClient(ClientOptions{Pool: pool, Policies: p.client.policies, Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *plans) fill() {
	p.t.Helper()
	const month = 30 * 24 * time.Hour
	p.exec(`insert into projects (id, name) select 'project_' || n, 'Shop' from generate_series(1, $1::integer) n`, planProjects)
	p.exec(`insert into events (project_id, id, type, data, created_at)
		select 'project_' || (n % 50 + 1), 'event_' || n * 5, 'order.created', '{}', now() - (1 - n / $1::float8) * interval '30 days'
		from generate_series(1, $1::integer) n`, planTasks/5)
	p.exec(`delete from event_outbox`)
	seeder, err := NewSeeder(p.t.Context(), SeederOptions{Client: p.client, Pool: p.pool, Since: p.now.Add(-month), Now: p.now})
	if err != nil {
		p.t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var seeds []Seed
	for n := range planTasks {
		seeds = append(seeds, p.seed(seeder, r, n, p.now.Add(-month+time.Duration(n)*month/planTasks)))
		if len(seeds) < 10_000 && n < planTasks-1 {
			continue
		}
		err := store.InTx(p.t.Context(), p.pool, func(tx pgx.Tx) error { return seeder.Write(p.t.Context(), tx, seeds) })
		if err != nil {
			p.t.Fatal(err)
		}
		seeds = seeds[:0]
	}
	if err := seeder.Finish(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	p.exec(`vacuum (analyze) events`)
}

// seed is one task: a delivery, or now and then a fan-out.
func (p *plans) seed(s *Seeder, r *rand.Rand, n int, at time.Time) Seed {
	p.t.Helper()
	project := 1
	if r.IntN(5) > 0 {
		project = 1 + r.IntN(planProjects)
	}
	in := Insert{ProjectID: fmt.Sprintf("project_%d", project), Label: map[string]string{"event_type": "order.created"}}
	play := func(failures int) func(int, time.Time) (Evidence, error) {
		return func(number int, at time.Time) (Evidence, error) {
			ev := Evidence{Sent: true, StartedAt: at, FinishedAt: at.Add(30 * time.Millisecond), ResponseClass: "success", Status: 200}
			if number > failures {
				return ev, nil
			}
			ev.ResponseClass, ev.Status, ev.ErrorType = "server", 500, "HttpError"
			return ev, errors.New("answered 500")
		}
	}
	if n%10 == 0 {
		seed, err := NewSeed(p.t.Context(), s, fanoutKind, testArgs{N: n}, in, at)
		if err != nil {
			p.t.Fatal(err)
		}
		seed.Play = play(0)
		return seed
	}
	endpoint := r.IntN(10)
	in.EndpointID, in.EventID = fmt.Sprintf("endpoint_%d_%d", project, endpoint), fmt.Sprintf("event_%d", n/5*5)
	// The first endpoint of each project has failed for ten days: after the first days its deliveries wait.
	down := endpoint == 0 && p.now.Sub(at) < 10*24*time.Hour
	in.Pending = down && r.IntN(4) > 0
	seed, err := NewSeed(p.t.Context(), s, deliverKind, testArgs{N: n}, in, at)
	if err != nil {
		p.t.Fatal(err)
	}
	switch {
	case in.Pending:
	case down:
		seed.Play = play(100)
	case r.IntN(200) == 0:
		seed.Play = func(_ int, at time.Time) (Evidence, error) {
			return Evidence{Sent: true, StartedAt: at, FinishedAt: at.Add(time.Second), ResponseClass: "client", Status: 422, ErrorType: "HttpError"},
				Discard(errors.New("answered 422"), ReasonRejected)
		}
	case r.IntN(200) == 0:
		seed.Play, seed.CancelledAt = play(100), at.Add(time.Hour)
	default:
		seed.Play = play(max(0, r.IntN(30)-27))
	}
	return seed
}

// check runs fn and looks at the plan of each statement that it sent.
func (p *plans) check(t *testing.T, readMost float64, fn func() error) {
	t.Helper()
	p.recorder.Take()
	if err := fn(); err != nil {
		t.Fatal(err)
	}
	for _, s := range p.recorder.Take() {
		p.checked++
		p.planner.Check(t, s, mergedPages, readMost)
	}
}

func TestPlans_OfALargeInstallation(t *testing.T) {
	t.Parallel()
	p := planSetup(t)
	if v, err := VerifyLedger(t.Context(), p.pool, ""); err != nil || v.Tasks < planTasks/2 {
		t.Fatalf("the filled ledger does not hold: %+v %v", v, err)
	}
	for _, state := range append(TaskStates(), "") {
		t.Run("ListTasks/"+string(state), func(t *testing.T) {
			for name, f := range planFilters(p.now) {
				f.State = state
				p.checkPages(t, name, f)
			}
		})
	}
	t.Run("TaskByID", func(t *testing.T) {
		id := p.anyTask(t)
		p.check(t, 1, func() error {
			_, err := p.client.TaskByID(t.Context(), p.pool, bigProject, id)
			return err
		})
	})
	t.Run("CountTasks", func(t *testing.T) {
		for _, f := range planFilters(p.now) {
			p.check(t, countsMost, func() error {
				_, err := p.client.CountTasks(t.Context(), p.pool, bigProject, f)
				return err
			})
		}
	})
	t.Run("Bulk", p.checkBulk)
	t.Run("Attempts", p.checkAttempts)
	t.Run("Stats", p.checkStats)
	if p.checked < 500 {
		t.Errorf("only %d statements were looked at", p.checked)
	}
}

// countsMost is what a count of all states may look at.
const countsMost = 30_000

// planFilters are the filters of lists, by name.
func planFilters(now time.Time) map[string]TaskFilter {
	return map[string]TaskFilter{
		"all":            {},
		"kind":           {Kind: "webhook.deliver"},
		"rare kind":      {Kind: "webhook.fanout"},
		"absent kind":    {Kind: "corpus.index"},
		"endpoint":       {EndpointID: goodEndpoint},
		"bad endpoint":   {EndpointID: badEndpoint},
		"endpoint, kind": {EndpointID: badEndpoint, Kind: "webhook.deliver"},
		"event":          {EventID: "event_50"},
		"errorType":      {ErrorType: "HttpError"},
		"no errorType":   {ErrorType: "TlsError"},
		"reason":         {Reason: ReasonRejected},
		"no reason":      {Reason: ReasonGone},
		"since":          {Since: now.Add(-24 * time.Hour)},
		"until":          {Until: now.Add(-25 * 24 * time.Hour)},
		"period":         {Since: now.Add(-12 * 24 * time.Hour), Until: now.Add(-11 * 24 * time.Hour)},
		"kind, period":   {Kind: "webhook.deliver", Since: now.Add(-12 * 24 * time.Hour), Until: now.Add(-11 * 24 * time.Hour)},
	}
}

// checkPages looks at a list's first page, at one deep in it, and at the one before that.
func (p *plans) checkPages(t *testing.T, name string, f TaskFilter) {
	t.Helper()
	var middle int64
	err := p.pool.QueryRow(t.Context(), `select (min(id) + max(id)) / 2 from river_job`).Scan(&middle)
	if err != nil {
		t.Fatal(err)
	}
	tasks := func(id int64) []Task { return []Task{{ID: id}, {ID: id - 1}} }
	byID := func(t Task) int64 { return t.ID }
	forward := store.ListOf(store.Keyset[int64]{Limit: 1, Direction: store.Next}, tasks(middle), byID).Next
	backward := store.ListOf(store.Keyset[int64]{Limit: 1, Direction: store.Next, From: &middle}, tasks(middle), byID).Prev
	for _, cursor := range []string{"", forward, backward} {
		t.Run(name, func(t *testing.T) {
			p.check(t, pageMost(f), func() error {
				_, err := p.client.ListTasks(t.Context(), p.pool, bigProject, f, store.Page{Cursor: cursor})
				return err
			})
		})
	}
}

// pageMost is what one page may look at: a page of each state, and what a filter without an index passes over.
func pageMost(f TaskFilter) float64 {
	if f.ErrorType != "" || f.Reason != "" {
		return 5_000
	}
	return 1_000
}

func (p *plans) anyTask(t *testing.T) int64 {
	t.Helper()
	var id int64
	if err := p.pool.QueryRow(t.Context(), `select max(id) from river_job where project_id = $1 and state = 'completed'`, bigProject).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

func (p *plans) checkBulk(t *testing.T) {
	owner := tenant.Actor{Kind: tenant.ActorUser, ID: "user_test", Name: "owner", ProjectID: bigProject, Role: tenant.RoleOwner}
	for name, f := range planFilters(p.now) {
		for _, action := range []BulkAction{BulkRetry, BulkCancel} {
			t.Run(name+"/"+string(action), func(t *testing.T) {
				p.check(t, countsMost, func() error {
					_, err := p.client.CountBulk(t.Context(), p.pool, bigProject, action, f)
					return err
				})
				p.check(t, 3_000, func() error {
					return store.InTx(t.Context(), p.pool, func(tx pgx.Tx) error {
						_, err := p.client.bulkIDs(t.Context(), tx, Bulk{ProjectID: bigProject, Action: action}, bulkFilter{TaskFilter: f, Through: 1 << 40})
						return err
					})
				})
			})
		}
	}
	p.check(t, countsMost, func() error {
		_, err := p.client.StartBulk(t.Context(), owner, bigProject, BulkRetry, TaskFilter{State: StateDiscarded})
		return err
	})
}

// checkAttempts looks at the queries for one task's attempts, which must not look into every day of the ledger.
func (p *plans) checkAttempts(t *testing.T) {
	var id int64
	err := p.pool.QueryRow(t.Context(), `select max(id) from river_job where project_id = $1 and state = 'completed' and created_at < now() - interval '20 days'`,
		bigProject).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	createdAt := p.now.Add(-20 * 24 * time.Hour)
	for name, query := range map[string]func() error{
		"AttemptsOfTask": func() error {
			_, err := AttemptsOfTask(t.Context(), p.pool, bigProject, id)
			return err
		},
		"ExcerptsOfTask": func() error {
			_, err := ExcerptsOfTask(t.Context(), p.pool, bigProject, id)
			return err
		},
		"ListAttempts": func() error {
			_, err := ListAttempts(t.Context(), p.pool, bigProject, id, store.Page{})
			return err
		},
		"loadChain": func() error {
			s := spanSince(createdAt)
			s.until = createdAt.Add(clocksWithin)
			_, err := loadChain(t.Context(), p.pool, id, s)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p.recorder.Take()
			if err := query(); err != nil {
				t.Fatal(err)
			}
			for _, s := range p.recorder.Take() {
				p.planner.Check(t, s, mergedPages, 50)
				if touched := p.planner.Touched(t, s); len(touched) > 2*7+2 {
					t.Errorf("%d tables are looked into by %s", len(touched), s.SQL)
				}
			}
		})
	}
}

func (p *plans) checkStats(t *testing.T) {
	since := p.now.Add(-24 * time.Hour)
	p.check(t, countsMost, func() error {
		_, err := SumAttempts(t.Context(), p.pool, bigProject, since, 30*time.Minute)
		return err
	})
	p.check(t, countsMost, func() error {
		_, err := PublishToDelivered(t.Context(), p.pool, bigProject, since)
		return err
	})
	p.check(t, countsMost, func() error {
		_, err := WorstEndpoints(t.Context(), p.pool, bigProject, since, 10)
		return err
	})
	p.check(t, countsMost, func() error {
		_, err := RetriesDue(t.Context(), p.pool, bigProject, p.now.Add(24*time.Hour))
		return err
	})
	p.check(t, countsMost, func() error {
		_, _, err := LastRun(t.Context(), p.pool, Periodic{Name: "stats.rollup"})
		return err
	})
}
