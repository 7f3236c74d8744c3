package jobs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"entrega/internal/store"
)

// chainState is where a task's ledger stands before an attempt.
type chainState struct {
	seq           int    // records so far
	head          []byte // hash of the last one, or the genesis
	tries         int    // records that River counted as attempts: all but snoozes
	charged       int    // of those, the ones the policy counts
	snoozesInARow int
	last          Verdict // of the last record; empty without one
	lastReason    string
}

func newChainState(taskID int64) chainState { return chainState{head: genesis(taskID)} }

func loadChain(ctx context.Context, db store.DB, taskID int64, in span) (chainState, error) {
	s := newChainState(taskID)
	var head []byte
	err := db.QueryRow(ctx, `
		select coalesce(max(seq), 0),
		       (array_agg(hash order by seq desc))[1],
		       count(*) filter (where decision <> 'snoozed'),
		       count(*) filter (where charged),
		       coalesce(max(seq), 0) - coalesce(max(seq) filter (where decision <> 'snoozed'), 0),
		       coalesce((array_agg(decision order by seq desc))[1], ''),
		       coalesce((array_agg(reason order by seq desc))[1], '')
		from attempts where task_id = $1 and started_at >= $2 and started_at < $3`, taskID, in.from, in.until).
		Scan(&s.seq, &head, &s.tries, &s.charged, &s.snoozesInARow, &s.last, &s.lastReason)
	if err != nil {
		return s, fmt.Errorf("load the task's chain: %w", err)
	}
	if head != nil {
		s.head = head
	}
	return s, nil
}

// ended tells that the ledger already knows the task's end, which River was never told because its node died between the two.
// A person's retry starts it again, so it does not count then.
func (s chainState) ended(trigger Trigger) bool {
	switch s.last {
	case VerdictAccepted:
		return true
	case VerdictPermanentFailure, VerdictCancelled:
		return trigger == TriggerSchedule
	default:
		return false
	}
}

// extend moves the state behind a record that was written.
func (s *chainState) extend(r Record) {
	s.seq, s.head, s.last, s.lastReason = r.Seq, r.Hash, r.Decision, r.Reason
	if r.Decision == VerdictSnoozed {
		s.snoozesInARow++
		return
	}
	s.snoozesInARow = 0
	s.tries++
	if r.Charged {
		s.charged++
	}
}

// record turns the attempt and its decision into the next row of the chain.
func (r *run) record(d Decision, err error, now time.Time) Record {
	a, ev, p := r.attempt, &r.attempt.Evidence, r.attempt.policy
	if ev.FinishedAt.IsZero() {
		ev.FinishedAt = now
	}
	if ev.Timings.Total == 0 {
		ev.Timings.Total = ev.FinishedAt.Sub(ev.StartedAt)
	}
	rec := r.blank(p)
	rec.Attempt, rec.Trigger = a.Number, a.Trigger
	rec.Charged = d.Charged
	rec.IdempotencyKey = textField(ev.IdempotencyKey, 256)
	rec.OrderID, rec.RecipientRef = textField(ev.OrderID, 256), ev.RecipientRef
	rec.StartedAt, rec.FinishedAt = micros(ev.StartedAt), micros(ev.FinishedAt)
	rec.DNSUS, rec.ConnectUS, rec.TLSUS = ev.Timings.DNS.Microseconds(), ev.Timings.Connect.Microseconds(), ev.Timings.TLS.Microseconds()
	rec.FirstByteUS, rec.TotalUS = ev.Timings.FirstByte.Microseconds(), ev.Timings.Total.Microseconds()
	rec.Peer, rec.Class = textField(ev.Peer, 128), responseClass(ev, err)
	if ev.Status != 0 {
		rec.Status = &ev.Status
	}
	rec.ErrorType, rec.Phase, rec.Error = textField(ev.ErrorType, 64), textField(ev.Phase, 32), textField(ev.Error, 1024)
	if rec.Error == nil && err != nil {
		rec.Error = textField(err.Error(), 1024)
	}
	rec.Decision, rec.Reason, rec.Cap = d.Verdict, cleanText(d.Reason), textField(d.Cap, 32)
	if !d.NextAttemptAt.IsZero() {
		base, wait, next := d.BaseWait.Milliseconds(), d.Wait.Milliseconds(), micros(d.NextAttemptAt)
		rec.BaseWaitMS, rec.WaitMS, rec.NextAttemptAt = &base, &wait, &next
	}
	if ra := ev.RetryAfter; ra != nil {
		raw, read := cleanText(ra.Raw), d.RetryAfterRead
		rec.RetryAfterRaw, rec.RetryAfterRead = &raw, &read
	}
	rec.RequestSHA256, rec.ResponseSHA256 = ev.Request.SHA256, ev.Response.SHA256
	return rec
}

// recordLost writes the row of an attempt that started and never reported: its node died. It counts, since a request may
// have left.
func (r *run) recordLost(ctx context.Context) error {
	rec := r.blank(r.attempt.policy)
	rec.Attempt, rec.Trigger, rec.Charged = r.chain.charged+1, TriggerSchedule, true
	at := r.lostAt()
	rec.StartedAt, rec.FinishedAt = at, at
	rec.Class, rec.Decision, rec.Reason = "unknown", VerdictUnknown, ReasonWorkerLost
	rec.Error = textField("The node that made this attempt ended before it could report; a request may have been sent.", 1024)
	rec.IdempotencyKey = textField(cmp.Or(r.meta.IdempotencyKey, r.meta.EventID), 256)
	rec.OrderID, rec.RecipientRef = textField(r.meta.OrderID, 256), r.meta.RecipientRef
	rec.seal(r.chain.head)
	if err := r.adapter.worker.ledger.append(ctx, rec, nil); err != nil {
		return fmt.Errorf("record a lost attempt: %w", err)
	}
	r.chain.extend(rec)
	return nil
}

// lostAt is when the lost attempt was given up: what the rescue wrote, or now.
func (r *run) lostAt() time.Time {
	for _, e := range r.row.Errors {
		if e.Attempt == r.chain.tries+1 {
			return micros(e.At)
		}
	}
	return micros(r.adapter.worker.now())
}

func (r *run) blank(p Policy) Record {
	return Record{ProjectID: r.meta.ProjectID, TaskID: r.row.ID, Seq: r.chain.seq + 1, Kind: r.row.Kind,
		EventID: textField(r.meta.EventID, 256), EndpointID: textField(r.meta.EndpointID, 256),
		PolicyProfile: p.Profile, PolicyVersion: p.Version, PolicyHash: p.Hash[:], NodeID: r.adapter.worker.node.ID}
}

func responseClass(ev *Evidence, err error) string {
	switch {
	case ev.ResponseClass != "":
		return ev.ResponseClass
	case err == nil:
		return "success"
	default:
		return "unknown"
	}
}

// micros is an instant as Postgres keeps it.
func micros(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
