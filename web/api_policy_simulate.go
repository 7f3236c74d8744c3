package web

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"entrega/internal/store"
	"entrega/jobs"
)

// simulationShown is what a policy decides about a made-up history.
type simulationShown struct {
	Policy policyShown `json:"policy"`
	Steps  []stepShown `json:"steps" nullable:"false" doc:"Fewer than the answers where the task ends before."`
}

// stepShown is one attempt of a simulation and what follows it.
type stepShown struct {
	Attempt       int              `json:"attempt" example:"1"`
	Class         string           `json:"class" example:"http.503"`
	StartedAt     time.Time        `json:"startedAt" example:"2026-03-01T12:00:00Z"`
	FinishedAt    time.Time        `json:"finishedAt" example:"2026-03-01T12:00:00.184Z"`
	Decision      jobs.Verdict     `json:"decision" enum:"accepted,retry_scheduled,snoozed,permanent_failure,cancelled" example:"snoozed"`
	Reason        string           `json:"reason" example:"retry_after"`
	BaseWaitMS    *int64           `json:"baseWaitMs" doc:"The policy's wait before jitter, or what the receiver asked for; null when no attempt follows." example:"120000"`
	WaitMS        *int64           `json:"waitMs" doc:"The wait that was chosen; null when no attempt follows." example:"120000"`
	Cap           *string          `json:"cap" doc:"What bounded the wait: retry_after, floor or horizon."`
	Charged       bool             `json:"charged" doc:"Whether the attempt used up one of the policy's." example:"false"`
	RetryAfter    *retryAfterShown `json:"retryAfter"`
	NextAttemptAt *time.Time       `json:"nextAttemptAt" example:"2026-03-01T12:02:00.184Z"`
}

// TransformSchema says in the document that the Retry-After may be null.
func (stepShown) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["retryAfter"] = orNullSchema(s.Properties["retryAfter"], "The Retry-After of the answer; null when it had none.")
	return s
}

type simulateOutput struct{ Body simulationShown }

func (a *api) simulatePolicy(_ context.Context, c call, _ *struct{}) (*simulateOutput, error) {
	body := simulateBody{TaskID: 1}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, err
	}
	policy, ok := a.client.Policies().ForProject(body.Kind, body.Profile, c.project())
	if !ok {
		return nil, store.Invalid("kind", "There is no policy for this kind and profile. GET /v1/policies lists them.")
	}
	start := body.StartAt
	if start.IsZero() {
		start = a.now()
	}
	answers := make([]jobs.Answer, len(body.Answers))
	for i, answer := range body.Answers {
		answers[i] = jobs.Answer{Class: answer.Class, RetryAfter: answer.RetryAfter, Took: time.Duration(answer.TookMS) * time.Millisecond,
			Cancelled: answer.Cancelled, Manual: answer.Manual}
	}
	shown := simulationShown{Policy: showPolicy(policy), Steps: []stepShown{}}
	for _, step := range jobs.Simulate(policy, body.TaskID, answers, start.UTC()) {
		shown.Steps = append(shown.Steps, showStep(step))
	}
	return &simulateOutput{shown}, nil
}

var classPattern = regexp.MustCompile(`^[a-z0-9_.]{1,64}$`)

func (b simulateBody) check() error {
	var bad store.InvalidError
	if y := b.StartAt.Year(); !b.StartAt.IsZero() && (y < 1970 || y > 2200) {
		bad.Add("startAt", "The time must lie in the years 1970 to 2200.")
	}
	if n := len(b.Answers); n < 1 || n > maxSimulated {
		return bad.Add("answers", fmt.Sprintf("Give 1 to %d answers.", maxSimulated))
	}
	for i, answer := range b.Answers {
		if !classPattern.MatchString(answer.Class) && len(bad.Fields) < maxFieldErrors {
			bad.Add(fmt.Sprintf("answers[%d].class", i), "Give a class such as success, http.503 or timeout.")
		}
	}
	return bad.OrNil()
}

func showStep(s jobs.Step) stepShown {
	d := s.Decision
	shown := stepShown{Attempt: s.Attempt, Class: s.Class, StartedAt: s.StartedAt.UTC(), FinishedAt: s.FinishedAt.UTC(), Decision: d.Verdict,
		Reason: d.Reason, Cap: orNull(d.Cap), Charged: d.Charged, NextAttemptAt: instantOrNull(d.NextAttemptAt)}
	if !d.NextAttemptAt.IsZero() {
		base, wait := d.BaseWait.Milliseconds(), d.Wait.Milliseconds()
		shown.BaseWaitMS, shown.WaitMS = &base, &wait
	}
	if s.RetryAfter != "" {
		shown.RetryAfter = &retryAfterShown{Raw: s.RetryAfter, Read: d.RetryAfterRead}
	}
	return shown
}
