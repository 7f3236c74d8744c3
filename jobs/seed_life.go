package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/riverqueue/river/rivertype"
)

// life is what became of a seed: its row as River would have left it, and its attempts.
type life struct {
	seed    Seed
	run     *run
	row     *rivertype.JobRow
	entries []*entry
	clock   time.Time
	snoozes int
}

// live plays a seed's attempts, one after the other as they come due, until the task has ended or the next one lies ahead.
func (s *Seeder) live(ctx context.Context, seed Seed) *life {
	l := &life{seed: seed, clock: seed.createdAt}
	l.row = &rivertype.JobRow{ID: seed.id, Kind: seed.kind, CreatedAt: seed.createdAt, ScheduledAt: seed.createdAt,
		MaxAttempts: seed.opts.MaxAttempts, Queue: seed.opts.Queue, State: rivertype.JobStateAvailable}
	if !seed.opts.ScheduledAt.IsZero() {
		l.row.ScheduledAt = micros(seed.opts.ScheduledAt)
	}
	w := &Worker{client: s.client, node: s.node, now: func() time.Time { return l.clock }}
	l.run = &run{adapter: &adapter{worker: w}, row: l.row, meta: parseMetadata(seed.opts.Metadata), chain: newChainState(seed.id)}
	l.waits(s.now, seed.opts.Pending)
	for seed.Play != nil && !l.row.ScheduledAt.After(s.now) && l.row.FinalizedAt == nil {
		if at := seed.CancelledAt; !at.IsZero() && l.row.ScheduledAt.After(at) {
			break
		}
		l.attempt(ctx, s.now)
	}
	if at := seed.CancelledAt; !at.IsZero() && l.row.FinalizedAt == nil {
		l.run.meta.CancelAt = micros(at).Format(time.RFC3339Nano)
		l.ends(rivertype.JobStateCancelled, at)
	}
	if seed.Running && l.row.FinalizedAt == nil {
		l.starts(s.now)
		l.row.State = rivertype.JobStateRunning
	}
	return l
}

// waits sets the state of a task that waits for its first attempt.
func (l *life) waits(now time.Time, pending bool) {
	switch {
	case pending:
		l.row.State = rivertype.JobStatePending
	case l.row.ScheduledAt.After(now):
		l.row.State = rivertype.JobStateScheduled
	}
}

func (l *life) starts(at time.Time) {
	at = micros(at)
	l.row.Attempt++
	l.row.AttemptedAt = &at
	l.row.AttemptedBy = append(l.row.AttemptedBy, l.run.adapter.worker.node.ID)
}

func (l *life) ends(state rivertype.JobState, at time.Time) {
	at = micros(at)
	l.row.State, l.row.FinalizedAt = state, &at
}

// attempt plays one attempt and does to the row what River does on the adapter's answer.
func (l *life) attempt(ctx context.Context, now time.Time) {
	r, p := l.run, l.policy()
	trigger := r.meta.Trigger
	if trigger == "" {
		trigger = TriggerSchedule
	}
	r.attempt = &Attempt{TaskID: l.row.ID, ProjectID: r.meta.ProjectID, Number: r.chain.charged + 1, CreatedAt: l.row.CreatedAt, Trigger: trigger, policy: p}
	l.starts(l.row.ScheduledAt)
	evidence, err := l.seed.Play(r.attempt.Number, l.row.ScheduledAt)
	r.attempt.Evidence = evidence
	l.clock = evidence.FinishedAt
	d, rec := r.decide(ctx, err)
	if d.Verdict != VerdictSnoozed || evidence.Sent {
		l.entries = append(l.entries, &entry{record: rec, evidence: &r.attempt.Evidence})
		r.chain.extend(rec)
	}
	// Marks are metadata, so the one decodes as the other.
	marks := r.marks(d)
	if marks.Last != nil {
		r.meta.Last = nil // It is replaced whole, as River does.
	}
	raw, _ := json.Marshal(marks)
	_ = json.Unmarshal(raw, &r.meta)

	if err != nil && d.Verdict != VerdictSnoozed {
		l.row.Errors = append(l.row.Errors, rivertype.AttemptError{At: l.clock, Attempt: l.row.Attempt, Error: cleanText(err.Error())})
	}
	switch d.Verdict {
	case VerdictAccepted:
		l.ends(rivertype.JobStateCompleted, l.clock)
	case VerdictCancelled:
		l.ends(rivertype.JobStateCancelled, l.clock)
	case VerdictRetryScheduled:
		l.row.State, l.row.ScheduledAt = rivertype.JobStateRetryable, micros(d.NextAttemptAt)
	case VerdictSnoozed:
		l.row.State, l.row.ScheduledAt = rivertype.JobStateScheduled, micros(d.NextAttemptAt)
		l.row.Attempt-- // River gives a snoozed attempt back.
		l.snoozes++
	default:
		l.ends(rivertype.JobStateDiscarded, l.clock)
	}
	if l.row.FinalizedAt == nil && d.Wait <= riverPromotesWithin {
		l.row.State = rivertype.JobStateAvailable
	}
}

// riverPromotesWithin is the wait up to which River writes a task straight to `available`.
const riverPromotesWithin = 5 * time.Second

func (l *life) policy() Policy {
	profile := l.seed.Profile
	if profile == "" {
		profile = l.seed.profile
	}
	p, _ := l.run.adapter.worker.client.policies.ForProject(l.seed.policyKind, profile, l.run.meta.ProjectID)
	return p
}

var seedColumns = []string{"id", "state", "attempt", "max_attempts", "attempted_at", "created_at", "finalized_at", "scheduled_at",
	"args", "attempted_by", "errors", "kind", "metadata", "queue"}

func (l *life) values() ([]any, error) {
	meta, err := json.Marshal(struct {
		metadata
		Snoozes int `json:"snoozes,omitempty"` // River's own count
	}{l.run.meta, l.snoozes})
	if err != nil {
		return nil, fmt.Errorf("encode the metadata of a seed: %w", err)
	}
	var failures []json.RawMessage
	for _, e := range l.row.Errors {
		raw, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encode an error of a seed: %w", err)
		}
		failures = append(failures, raw)
	}
	r := l.row
	return []any{r.ID, string(r.State), r.Attempt, r.MaxAttempts, r.AttemptedAt, r.CreatedAt, r.FinalizedAt, r.ScheduledAt,
		l.seed.args, r.AttemptedBy, failures, r.Kind, json.RawMessage(meta), r.Queue}, nil
}
