// Package events owns what happened: the rules of an event and its type, publishing over Go and SQL, the outbox, and the
// relay that hands waiting events to the fan-out.
//
// A trigger puts each event into the outbox, so that an event is stored and queued for delivery in one transaction or not at
// all. The package knows nothing of endpoints, deliveries or HTTP: it ends where a fan-out task is in the queue.
package events
