package webhooks

import "context"

// Sweep promotes wherever something waits, as each node does every few seconds.
func (d *Deliverer) Sweep(ctx context.Context) { d.sweep(ctx) }

// KeepLeases does one round of the lease keeper.
func (d *Deliverer) KeepLeases(ctx context.Context) { d.keepLeases(ctx) }

// LaneWindow is how many deliveries of an endpoint River has in its hands.
const LaneWindow = laneWindow

// ReadContentsByID is what a delivery asks its event by.
const ReadContentsByID = readContentsByID
