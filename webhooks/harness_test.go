package webhooks_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/egress"
	"entrega/internal/events"
	"entrega/internal/seal"
	"entrega/internal/store"
	"entrega/internal/store/storetest"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/webhooks"
)

// patience is how long a test waits for what should happen at once, on a machine that is busy with other tests.
const patience = 30 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// bundle is one test's own installation: database, project and the product's worker.
type bundle struct {
	t         *testing.T
	ctx       context.Context
	pool      *pgxpool.Pool
	policies  *jobs.PolicySet
	client    *jobs.Client
	door      *egress.Door
	box       *seal.Box
	endpoints *webhooks.Endpoints
	relay     *events.Relay
	project   string
	owner     tenant.Actor
	gate      *store.Gate
	nodes     int // how many were started

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when a task changes
}

// options are what a test wants to be different.
type options struct {
	// policies is an override file's text.
	policies string
	resolver *net.Resolver
}

func (b *bundle) newClient() *jobs.Client {
	b.t.Helper()
	c, err := jobs.NewClient(jobs.ClientOptions{Pool: b.pool, Policies: b.policies, Logger: quiet, BeforeRetry: webhooks.BeforeRetry})
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func setup(t *testing.T) *bundle { return setupWith(t, options{}) }

func setupWith(t *testing.T, o options) *bundle {
	t.Helper()
	b := &bundle{t: t, ctx: t.Context(), pool: storetest.New(t, jobs.MigrateDSN), gate: store.NewGate(2), changed: make(chan struct{})}
	var err error
	if b.policies, err = jobs.LoadPolicies(policyFile(t, o.policies)); err != nil {
		t.Fatal(err)
	}
	if err := b.policies.StoreVersions(b.ctx, b.pool); err != nil {
		t.Fatal(err)
	}
	b.client = b.newClient()
	b.box = mustBox(t)
	b.door = newDoor(t, o.resolver)
	b.endpoints = webhooks.NewEndpoints(webhooks.EndpointsOptions{Pool: b.pool, Client: b.client, Door: b.door, Box: b.box, Logger: quiet})
	b.relay = events.NewRelay(events.RelayOptions{Pool: b.pool, Client: b.client, Logger: quiet})
	b.project, b.owner = b.newProject("Shop")
	b.watch()
	return b
}

func policyFile(t *testing.T, text string) string {
	t.Helper()
	if text == "" {
		return ""
	}
	name := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func mustBox(t *testing.T) *seal.Box {
	t.Helper()
	box, err := seal.New(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// newDoor may call loopback addresses, but not names that lead there.
func newDoor(t *testing.T, resolver *net.Resolver) *egress.Door {
	t.Helper()
	opts := egress.Options{AllowHTTP: true, Resolver: resolver}
	if resolver == nil {
		allow, err := egress.ParseAllow("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		opts.Allow = allow
	}
	door, err := egress.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(door.Close)
	return door
}

// newProject makes a project and an owner in it.
func (b *bundle) newProject(name string) (string, tenant.Actor) {
	b.t.Helper()
	p, err := tenant.CreateProject(b.ctx, b.pool, tenant.CLI("test"), tenant.NewProject{Name: name})
	if err != nil {
		b.t.Fatal(err)
	}
	return p.ID, tenant.Actor{Kind: tenant.ActorUser, ID: "user_owner", Name: "owner@example.com", ProjectID: p.ID, Role: tenant.RoleOwner}
}

// create makes an endpoint with the settings and returns it with its secret.
func (b *bundle) create(s webhooks.Settings) webhooks.Created {
	b.t.Helper()
	created, err := b.endpoints.CreateEndpoint(b.ctx, b.owner, webhooks.NewEndpoint{Settings: s})
	if err != nil {
		b.t.Fatal(err)
	}
	return created
}

func (b *bundle) endpoint(id string) webhooks.Endpoint {
	b.t.Helper()
	e, err := b.endpoints.EndpointByID(b.ctx, b.pool, b.project, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return e
}

// publish stores events and hands them to the fan-out together.
func (b *bundle) publish(ids ...string) {
	b.t.Helper()
	var all []events.New
	for _, id := range ids {
		all = append(all, events.New{ID: id, Type: "order.created", Data: []byte(`{"id":"` + id + `"}`)})
	}
	b.publishEvent(all...)
}

func (b *bundle) publishEvent(all ...events.New) {
	b.t.Helper()
	for _, n := range all {
		if _, err := events.Publish(b.ctx, b.pool, b.project, n); err != nil {
			b.t.Fatal(err)
		}
	}
	if _, err := b.relay.Sweep(b.ctx); err != nil {
		b.t.Fatal(err)
	}
}

// delivery waits until an event has a delivery to an endpoint, and gives the newest.
func (b *bundle) delivery(eventID, endpointID string) jobs.Task {
	b.t.Helper()
	var id int64
	b.await("a delivery of "+eventID, func() bool {
		err := b.pool.QueryRow(b.ctx, `select coalesce(max(id), 0) from river_job where kind = 'webhook.deliver' and event_id = $1 and endpoint_id = $2`,
			eventID, endpointID).Scan(&id)
		if err != nil {
			b.t.Fatal(err)
		}
		return id != 0
	})
	return b.task(id)
}

func (b *bundle) task(id int64) jobs.Task {
	b.t.Helper()
	task, err := b.client.TaskByID(b.ctx, b.pool, b.project, id)
	if err != nil {
		b.t.Fatal(err)
	}
	return task
}

// reach waits until a task is in a state after its attempt number n.
func (b *bundle) reach(id int64, state jobs.TaskState, attempt int) jobs.Task {
	b.t.Helper()
	var task jobs.Task
	b.await(fmt.Sprintf("task %d to be %s after attempt %d", id, state, attempt), func() bool {
		task = b.task(id)
		return task.State == state && task.Attempt == attempt
	})
	return task
}

// due moves time for a task that waits: its turn is now.
func (b *bundle) due(id int64) {
	b.t.Helper()
	tag, err := b.pool.Exec(b.ctx, `
		update river_job set state = 'available', scheduled_at = now() - interval '1 second'
		where id = $1 and state in ('available', 'retryable', 'scheduled')`, id)
	if err != nil {
		b.t.Fatal(err)
	}
	if tag.RowsAffected() != 1 {
		b.t.Fatalf("task %d does not wait: %+v", id, b.task(id))
	}
}

// allDue moves time for every delivery that waits for it.
func (b *bundle) allDue() {
	b.t.Helper()
	_, err := b.pool.Exec(b.ctx, `
		update river_job set state = 'available', scheduled_at = now() - interval '1 second'
		where kind = 'webhook.deliver' and (state in ('retryable', 'scheduled') or state = 'available' and scheduled_at > now())`)
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bundle) records(id int64) []jobs.Record {
	b.t.Helper()
	records, err := jobs.AttemptsOfTask(b.ctx, b.pool, b.project, id)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := jobs.VerifyChain(records); err != nil {
		b.t.Error(err)
	}
	return records
}

// value reads one value.
func value[T any](b *bundle, sql string, args ...any) T {
	b.t.Helper()
	var v T
	if err := b.pool.QueryRow(b.ctx, sql, args...).Scan(&v); err != nil {
		b.t.Fatal(err)
	}
	return v
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.pool.Exec(b.ctx, sql, args...); err != nil {
		b.t.Fatal(err)
	}
}

// wantConflict checks that an error is the conflict with a code.
func wantConflict(t *testing.T, err error, code string) {
	t.Helper()
	if !jobs.IsConflict(err, code) {
		t.Errorf("error %v, want the conflict %s", err, code)
	}
}
