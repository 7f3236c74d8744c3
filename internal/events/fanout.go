package events

import "entrega/jobs"

// FanoutArgs names the events whose deliveries are to be made: one project's share of one batch, in the order of their
// sequence.
type FanoutArgs struct {
	ProjectID string   `json:"projectId"`
	EventIDs  []string `json:"eventIds"`
	// Through is the sequence number of the last of them; 0 in tasks that were made before there was one.
	Through int64 `json:"through,omitempty"`
}

// Fanout is the task that the relay leaves for each project and batch. Package webhooks works it.
var Fanout = jobs.Kind[FanoutArgs]{Name: "webhook.fanout", Queue: jobs.QueueWebhook}
