package web

import (
	"context"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
)

const tagPolicies = "Policies"

// mountPolicies lists the calls about policies.
func (a *api) mountPolicies() {
	register(a, operation{
		id: "list-policies", method: http.MethodGet, path: "/v1/policies", tag: tagPolicies, needs: tenant.PermSee,
		summary:     "List the policies",
		description: "Those that decide for this project, by kind and profile, all on one page. Each attempt names the version and hash of the policy that decided about it.",
		answers:     map[int]string{http.StatusOK: "The policies."},
	}, a.listPolicies)
	register(a, operation{
		id: "simulate-policy", method: http.MethodPost, path: "/v1/policies/simulate", tag: tagPolicies, needs: tenant.PermSee,
		summary: "Simulate a policy",
		description: "Plays made-up answers through a policy and gives the decision after each. Nothing is stored or sent, and the same request always gets the same answer: " +
			"the waits are those that a real task with that number would have.",
		body: simulateBody{}, bodyBytes: 128 << 10, answers: map[int]string{http.StatusOK: "One step for each attempt until the task or the answers ended."},
	}, a.simulatePolicy)
}

// policyShown is a policy. Durations are whole milliseconds.
type policyShown struct {
	Kind            string                 `json:"kind" example:"webhook.deliver"`
	Profile         string                 `json:"profile" example:"standard"`
	Version         int                    `json:"version" doc:"Counted per kind and profile." example:"1"`
	Hash            string                 `json:"hash" doc:"SHA-256 of its canonical form, in hex." example:"5c1d9f0e3b7a4f2c8d6e1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d"`
	Attempts        int                    `json:"attempts" doc:"How many tries a task has." example:"18"`
	WaitsMS         []int64                `json:"waitsMs" nullable:"false" doc:"The wait after each failed attempt, before jitter; one for each attempt but the last." example:"[5000,300000,1800000]"`
	Jitter          string                 `json:"jitter" doc:"How far a wait may stray to either side, or full: anywhere between nothing and the wait." example:"10%"`
	TimeoutMS       int64                  `json:"timeoutMs" doc:"Bounds one attempt." example:"10000"`
	HorizonMS       *int64                 `json:"horizonMs" doc:"How long after its creation a task is tried at all; null is no bound." example:"604800000"`
	RetryAfterCapMS int64                  `json:"retryAfterCapMs" doc:"The longest wait that a receiver may ask for." example:"36000000"`
	DisableEndpoint disableShown           `json:"disableEndpoint"`
	Classes         map[string]jobs.Action `json:"classes" doc:"What an answer leads to; all others are retried." example:"{\"http.4xx\":\"discard\",\"http.410\":\"gone\"}"`
}

// disableShown says when an endpoint that only fails is disabled.
type disableShown struct {
	FailingForMS   *int64 `json:"failingForMs" doc:"After every attempt failed for this long; null is no such rule." example:"432000000"`
	FailuresInARow *int   `json:"failuresInARow" doc:"After this many failures in a row; null is no such rule." example:"20"`
}

func showPolicy(p jobs.Policy) policyShown {
	shown := policyShown{Kind: p.Kind, Profile: p.Profile, Version: p.Version, Hash: hex.EncodeToString(p.Hash[:]), Attempts: p.Attempts,
		WaitsMS: make([]int64, 0, p.Attempts), Jitter: p.Jitter.String(), TimeoutMS: p.Timeout.Total.Milliseconds(),
		HorizonMS: orNull(p.Horizon.Milliseconds()), RetryAfterCapMS: p.RetryAfterCap.Milliseconds(), Classes: p.Classes,
		DisableEndpoint: disableShown{orNull(p.Disable.FailingFor.Milliseconds()), orNull(p.Disable.FailuresInARow)}}
	for attempt := 1; attempt < p.Attempts; attempt++ {
		shown.WaitsMS = append(shown.WaitsMS, p.BaseWait(attempt).Milliseconds())
	}
	return shown
}

func (a *api) listPolicies(_ context.Context, c call, _ *struct{}) (*listOutput[policyShown], error) {
	policies := slices.DeleteFunc(a.client.Policies().All(), func(p jobs.Policy) bool { return !a.decidesFor(p, c.project()) })
	return listOf(store.List[jobs.Policy]{Rows: policies}, showPolicy), nil
}

// decidesFor leaves out what is for other projects, and what the project has a policy of its own for.
func (a *api) decidesFor(p jobs.Policy, project string) bool {
	effective, ok := a.client.Policies().ForProject(p.Kind, p.Profile, project)
	return ok && effective.Hash == p.Hash
}

// maxSimulated bounds the answers of one simulation: more than any policy has attempts, with room for snoozes.
const maxSimulated = 500

// simulateBody is a made-up history.
type simulateBody struct {
	_       struct{}          `additionalProperties:"false"`
	Kind    string            `json:"kind" doc:"The kind whose policy decides." example:"webhook.deliver"`
	Profile string            `json:"profile,omitempty" default:"standard" example:"standard"`
	TaskID  int64             `json:"taskId,omitempty" minimum:"1" default:"1" doc:"The task's number, which the jitter is drawn from." example:"1042"`
	StartAt time.Time         `json:"startAt,omitzero" doc:"When the task is created and first tried; left out, now." example:"2026-03-01T12:00:00Z"`
	Answers []simulatedAnswer `json:"answers" minItems:"1" maxItems:"500" nullable:"false" doc:"How each attempt ends, in order."`
}

// simulatedAnswer is how one attempt ends.
type simulatedAnswer struct {
	_          struct{} `additionalProperties:"false"`
	Class      string   `json:"class" maxLength:"64" doc:"success, http.503 and the like, blocked, configuration or endpoint_disabled; any other word, such as timeout, is a plain failure." example:"http.503"`
	RetryAfter string   `json:"retryAfter,omitempty" maxLength:"256" doc:"The Retry-After header of the answer." example:"120"`
	TookMS     int64    `json:"tookMs,omitempty" minimum:"0" maximum:"3600000" doc:"How long the attempt lasts." example:"184"`
	Cancelled  bool     `json:"cancelled,omitempty" doc:"A person cancels the task meanwhile." example:"false"`
	Manual     bool     `json:"manual,omitempty" doc:"A person asks for this attempt: it starts as soon as the one before has ended." example:"false"`
}
