package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"entrega/internal/egress"
	"entrega/internal/store"
	"entrega/jobs"
)

// DeliverArgs name one delivery: one event to one endpoint.
type DeliverArgs struct {
	ProjectID  string `json:"projectId"`
	EventID    string `json:"eventId"`
	EndpointID string `json:"endpointId"`
}

// Deliver is the kind of a delivery. Its timeout leaves room for waiting in the lane, for the longest attempt an endpoint may
// ask for, and for the bookkeeping after it.
var Deliver = jobs.Kind[DeliverArgs]{Name: "webhook.deliver", Queue: jobs.QueueWebhook, Timeout: 75 * time.Second}

// The recorded words for deliveries that end without a request, or after just one.
const (
	reasonEventPruned = "event_pruned"
	// ReasonTestFailed is a test that failed. A test is tried once.
	ReasonTestFailed = "test_failed"
)

const (
	// pausedByPersonDelay is how often a delivery asks whether a person's pause has ended.
	pausedByPersonDelay = time.Minute
	// notReadyDelay is how long a delivery stays away when our own side cannot serve it.
	notReadyDelay = 5 * time.Second
)

// deliver makes one attempt of one delivery. All that can be read before its turn is.
func (d *Deliverer) deliver(ctx context.Context, job *jobs.Job[DeliverArgs]) error {
	args := job.Args
	event := contentKey{args.ProjectID, args.EventID}
	t, err := d.targets.some(ctx, args.ProjectID, args.EndpointID)
	if errors.Is(err, store.ErrNotFound) {
		return disabledOutcome(job.Policy(), "The endpoint does not exist any more.")
	}
	if err != nil {
		return d.notReady(ctx, job, err)
	}
	c, found, err := d.contents.get(ctx, event, job.Number == 1)
	if err != nil {
		return d.notReady(ctx, job, err)
	}
	ln, err := d.place(ctx, job, t)
	if err != nil {
		return err
	}
	r := resultNone
	job.OnSettled(func() { d.lanes.settled(ln) })
	defer func() { d.lanes.leave(ln, job.TaskID, r) }()

	b, err := d.brief(ctx, ln)
	if err != nil {
		return d.notReady(ctx, job, err)
	}
	if err := d.beforeSending(job, b, c, found); err != nil {
		return err
	}
	if t, err = d.targets.at(ctx, args.ProjectID, args.EndpointID, b.Version); err != nil {
		return d.notReady(ctx, job, err)
	}
	d.lanes.resize(ln, t)
	if err := d.lanes.pace(ctx, ln); err != nil {
		return err
	}
	if c, err = c.whole(ctx, d.pool, event); err != nil {
		return d.notReady(ctx, job, err)
	}
	err = d.send(ctx, job, ln, t, c)
	r = resultOf(err)
	if r == resultFailure && job.Trigger == jobs.TriggerTest && !errors.Is(err, context.Canceled) {
		return jobs.Discard(err, ReasonTestFailed)
	}
	return err
}

func resultOf(err error) result {
	class, _, _ := jobs.ClassOf(err)
	switch {
	case err == nil:
		return resultSuccess
	case class == jobs.ClassRetry:
		return resultFailure
	default:
		return resultRejection
	}
}

// place gets the delivery a place in its lane, on the one node that works it.
func (d *Deliverer) place(ctx context.Context, job *jobs.Job[DeliverArgs], t *target) (*lane, error) {
	ln := d.lanes.hold(t)
	for {
		needed, asked := d.lanes.needsLease(ln)
		if !needed {
			break
		}
		if asked == nil {
			err := d.lease(ctx, job, ln)
			d.lanes.leaseAsked(ln)
			if err != nil {
				d.lanes.drop(ln)
				return nil, err
			}
			break
		}
		select {
		case <-asked:
		case <-ctx.Done():
			d.lanes.drop(ln)
			return nil, stopped(ctx)
		}
	}
	if err := d.lanes.enter(ctx, ln, job.TaskID); err != nil {
		return nil, err
	}
	if !d.lanes.holds(ln) {
		if err := d.lease(ctx, job, ln); err != nil {
			d.lanes.leave(ln, job.TaskID, resultNone)
			return nil, err
		}
	}
	return ln, nil
}

// lease takes the lane's lease. Where another node has it the delivery goes to that node, unless it has come to its end anyway.
func (d *Deliverer) lease(ctx context.Context, job *jobs.Job[DeliverArgs], ln *lane) error {
	s, err := takeLease(ctx, d.pool, d.nodeID, ln.projectID, ln.endpointID)
	if err != nil {
		return d.notReady(ctx, job, err)
	}
	if s.taken {
		d.lanes.leased(ln, s)
		return nil
	}
	b, err := d.readBrief(ctx, ln)
	if err != nil {
		return d.notReady(ctx, job, err)
	}
	c, found, err := d.contents.get(ctx, contentKey{job.Args.ProjectID, job.Args.EventID}, job.Number == 1)
	if err != nil {
		return d.notReady(ctx, job, err)
	}
	if err := d.beforeSending(job, b, c, found); err != nil {
		return err
	}
	if s.holder != "" {
		if err := job.MoveTo(ctx, d.pool, jobs.NodeQueue(jobs.QueueWebhook, s.holder)); err != nil {
			return d.notReady(ctx, job, err)
		}
	}
	return jobs.Snooze(elsewhereDelay, reasonElsewhere)
}

// beforeSending chooses the policy and says why nothing is to be sent, if so.
func (d *Deliverer) beforeSending(job *jobs.Job[DeliverArgs], b briefing, c content, found bool) error {
	if b.Profile != "" {
		// A profile that a changed policy file no longer has leaves the delivery to the standard one.
		_ = job.UseProfile(b.Profile)
	}
	job.SetDeadline(c.expiresAt)
	now := d.now()
	switch {
	case b.Gone != "":
		return disabledOutcome(job.Policy(), b.Gone)
	case !found:
		return jobs.Discard(&deliveryError{sentence: "The event was removed by retention before it could be sent."}, reasonEventPruned)
	case !c.expiresAt.IsZero() && !now.Before(c.expiresAt) && job.Trigger == jobs.TriggerSchedule:
		return jobs.Discard(&deliveryError{sentence: "The event expired before its turn came."}, jobs.ReasonHorizon)
	case b.Paused && job.Trigger != jobs.TriggerTest:
		return jobs.Snooze(pausedByPersonDelay, reasonPausedByPerson)
	case now.Before(b.pauseUntil):
		return jobs.Snooze(b.pauseUntil.Sub(now), reasonPaused)
	default:
		return nil
	}
}

// send signs, sends once, and takes in the answer.
func (d *Deliverer) send(ctx context.Context, job *jobs.Job[DeliverArgs], ln *lane, t *target, c content) error {
	now, policy := d.now(), job.Policy()
	keys := liveKeys(t.secrets, now)
	if len(keys) == 0 {
		return d.notReady(ctx, job, fmt.Errorf("endpoint %s has no secret to sign with", t.id))
	}
	m := message{id: job.Args.EventID, typ: c.typ, at: c.at, data: c.data}
	body := m.body()
	req := &egress.Request{URL: t.url, Body: body, Header: m.header(t.headers, keys, now, body, d.userAgent),
		Timeouts: egress.Timeouts{Total: policy.Timeout.Total, Connect: policy.Timeout.Connect}}
	if t.timeout > 0 {
		req.Timeouts.Total = t.timeout
	}

	job.Evidence.Sent = true
	resp := d.door.Send(ctx, req)
	r := read(resp)
	note(&job.Evidence, m.id, t.requestLine, req, resp, r)
	if r.interrupted != nil {
		job.Evidence.Sent = resp.WroteRequest
		return r.outcome(policy)
	}
	d.takeIn(ctx, ln, policy, resp.StartedAt, r)
	return r.outcome(policy)
}

// disabledOutcome ends a delivery that has nowhere to go, as the policy's class says.
func disabledOutcome(p jobs.Policy, why string) error {
	err := &deliveryError{sentence: why}
	if p.Action(classEndpointDisabled) == jobs.ActionCancel {
		return jobs.Cancel(err, jobs.ReasonEndpointDisabled)
	}
	return jobs.Discard(err, jobs.ReasonEndpointDisabled)
}

// notReady puts a delivery off because of trouble on our own side, before anything was sent. It spends no attempt.
func (d *Deliverer) notReady(ctx context.Context, job *jobs.Job[DeliverArgs], err error) error {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	d.log.ErrorContext(ctx, "a delivery could not be made ready", "project_id", job.ProjectID, "job_id", job.TaskID, "error", err)
	return jobs.Snooze(notReadyDelay, reasonNotReady)
}
