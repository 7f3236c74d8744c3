package webhooks_test

import (
	"context"
	"sync"
	"time"

	"entrega/jobs"
	"entrega/webhooks"
)

// node is one process that works the queues.
type node struct {
	worker    *jobs.Worker
	deliverer *webhooks.Deliverer
	stop      func()
}

// start runs a node until the test ends or its stop is called.
func (b *bundle) start() *node { return b.startNode("node_a", 20) }

func (b *bundle) startNode(id string, workers int) *node {
	b.t.Helper()
	return b.startNodeWith(id, workers, 3*webhooks.LaneWindow)
}

// startNodeWith runs a node in which only so many deliveries hold a worker while they wait for their turn.
func (b *bundle) startNodeWith(id string, workers, maxParked int) *node {
	b.t.Helper()
	client := b.client
	if b.nodes++; b.nodes > 1 { // Each node has its own.
		client = b.newClient()
	}
	n := &node{deliverer: webhooks.NewDeliverer(webhooks.DelivererOptions{Pool: b.pool, Client: client, Door: b.door, Box: b.box, Gate: b.gate,
		Logger: quiet, NodeID: id, Version: "test", MaxParked: maxParked})}
	ledger := jobs.NewLedger(jobs.LedgerOptions{Pool: b.pool, Gate: b.gate, Logger: quiet})
	var err error
	n.worker, err = jobs.NewWorker(jobs.WorkerOptions{Client: client, Pool: b.pool, Ledger: ledger, Logger: quiet, NodeID: id, Version: "test", Testing: true,
		Claimer: n.deliverer, Gate: b.gate, Queues: map[string]jobs.QueueConfig{jobs.QueueWebhook: {Workers: workers, Node: 4 * webhooks.LaneWindow, Cooldown: 5 * time.Millisecond, Poll: 20 * time.Millisecond}}},
		n.deliverer.Registrations()...)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := n.worker.Start(b.ctx); err != nil {
		b.t.Fatal(err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(b.ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.deliverer.Run(running)
	}()
	n.stop = sync.OnceFunc(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(b.ctx), patience)
		defer stop()
		if err := n.worker.Stop(ctx); err != nil {
			b.t.Errorf("stop the worker: %v", err)
		}
		cancel()
		<-done
		ledger.Close()
	})
	b.t.Cleanup(n.stop)
	return n
}
