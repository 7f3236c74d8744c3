package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
	"entrega/webhooks"
)

// patience is how long a test waits for what should happen at once.
const patience = 30 * time.Second

// node is the product's own worker, with a relay, and a signal for each change of a task.
type node struct {
	p     *panel
	relay *events.Relay

	mu      sync.Mutex
	changed chan struct{}
}

// start works the queues until the test ends.
func (p *panel) start() *node {
	p.t.Helper()
	n := &node{p: p, relay: events.NewRelay(events.RelayOptions{Pool: p.pool, Client: p.client, Logger: quiet}), changed: make(chan struct{})}
	n.watch()
	deliverer := webhooks.NewDeliverer(webhooks.DelivererOptions{Pool: p.pool, Client: p.client, Door: p.door, Box: p.box, Logger: quiet, NodeID: "node_a", Version: "test"})
	sender := mailer.NewSender(mailer.SenderOptions{Mailer: p.mailer})
	ledger := jobs.NewLedger(jobs.LedgerOptions{Pool: p.pool, Logger: quiet})
	queue := jobs.QueueConfig{Workers: 20, Cooldown: 5 * time.Millisecond, Poll: 20 * time.Millisecond}
	worker, err := jobs.NewWorker(jobs.WorkerOptions{Client: p.client, Pool: p.pool, Ledger: ledger, Logger: quiet, NodeID: "node_a", Version: "test", Testing: true,
		Queues: map[string]jobs.QueueConfig{jobs.QueueWebhook: queue, jobs.QueueIndex: queue, jobs.QueueNotify: queue}},
		append(append(deliverer.Registrations(), sender.Registrations()...), jobs.On(jobs.BulkTasks, p.client.WorkBulk))...)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := worker.Start(p.ctx); err != nil {
		p.t.Fatal(err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(p.ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		deliverer.Run(running)
	}()
	p.t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(p.ctx), patience)
		defer stop()
		if err := worker.Stop(ctx); err != nil {
			p.t.Errorf("stop the worker: %v", err)
		}
		cancel()
		<-done
		ledger.Close()
	})
	return n
}

// watch turns changes of tasks into a signal, by a trigger that only tests have.
func (n *node) watch() {
	n.p.t.Helper()
	n.p.exec(`create function test_task_changed() returns trigger language plpgsql as $$
		begin perform pg_notify('test_task', ''); return null; end $$`)
	n.p.exec(`create trigger test_task_changed after insert or update of state, scheduled_at on river_job for each statement execute function test_task_changed()`)
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.p.ctx))
	listening, done := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(listening) })
	go func() {
		defer close(done)
		err := store.Listen(ctx, n.p.pool, "test_task", func(string) {
			first()
			n.mu.Lock()
			defer n.mu.Unlock()
			close(n.changed)
			n.changed = make(chan struct{})
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			n.p.t.Errorf("listen for tasks: %v", err)
		}
		first()
	}()
	<-listening
	n.p.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// await looks again whenever a task has changed, until ok holds.
func (n *node) await(what string, ok func() bool) {
	n.p.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			n.p.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// deliver publishes an event and waits until its delivery to the endpoint is in a state. It returns the task.
func (n *node) deliver(project tenant.Project, e webhooks.Endpoint, event events.New, state jobs.TaskState) jobs.Task {
	n.p.t.Helper()
	id := n.p.publish(project, event)
	if _, err := n.relay.Sweep(n.p.ctx); err != nil {
		n.p.t.Fatal(err)
	}
	var task jobs.Task
	n.await("a delivery that is "+string(state), func() bool {
		list, err := n.p.client.ListTasks(n.p.ctx, n.p.pool, project.ID, jobs.TaskFilter{EventID: id, EndpointID: e.ID}, store.Page{})
		if err != nil {
			n.p.t.Fatal(err)
		}
		if len(list.Rows) == 0 {
			return false
		}
		task = list.Rows[0]
		return task.State == state
	})
	return task
}

func (n *node) reach(project tenant.Project, id int64, state jobs.TaskState) jobs.Task {
	n.p.t.Helper()
	var task jobs.Task
	n.await("a task to be "+string(state), func() bool {
		var err error
		if task, err = n.p.client.TaskByID(n.p.ctx, n.p.pool, project.ID, id); err != nil {
			n.p.t.Fatal(err)
		}
		return task.State == state
	})
	return task
}

// receiver answers by a rule that may change.
type receiver struct {
	url string

	mu     sync.Mutex
	answer http.HandlerFunc
}

func (p *panel) receiver(answer http.HandlerFunc) *receiver {
	p.t.Helper()
	r := &receiver{answer: answer}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		answer := r.answer
		r.mu.Unlock()
		answer(w, req)
	}))
	p.t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) answers(answer http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// with answers a status and a body.
func with(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // The caller may be gone.
	}
}
