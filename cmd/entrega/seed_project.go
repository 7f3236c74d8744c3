package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"entrega/internal/tenant"
	"entrega/webhooks"
)

// seedTypes are the event types of filled projects.
var seedTypes = []string{"order.created", "order.paid", "order.shipped", "order.cancelled", "invoice.created", "invoice.paid", "refund.issued", "stock.changed"}

// seedProject is a tenant. Its weight is its share of all that happens.
type seedProject struct {
	id        string
	weight    float64
	endpoints []*seedEndpoint
	// ofSubscriber are the endpoints that take a subscriber's events.
	ofSubscriber map[string][]*seedEndpoint
	subscribers  []string
}

// seedEndpoint is a receiver with its habits. Zero instants are never.
type seedEndpoint struct {
	id, host, subscriber, profile string
	types                         []string
	// failureShare is how many of a thousand deliveries fail at first, and throttleShare how many are put off.
	failureShare, throttleShare int
	failure                     int // which of seedFailures it prefers
	failingSince                time.Time
	disabledAt                  time.Time
	pausedAt                    time.Time
	gone                        bool
	index                       int // in its project, for what the list of skipped endpoints costs to make
}

func (e *seedEndpoint) takes(eventType string) bool {
	return len(e.types) == 0 || slices.Contains(e.types, eventType)
}

// makeProjects makes projects and endpoints as people do, and then gives them an age and a condition. The sizes of projects fall
// like one over their rank, as they do in installations with many tenants.
func (f *filling) makeProjects(ctx context.Context) error {
	total := 0.0
	for i := range f.options.projects {
		p := &seedProject{weight: 1 / float64(i+1), ofSubscriber: map[string][]*seedEndpoint{}}
		total += p.weight
		created, err := tenant.CreateProject(ctx, f.pool, cli(), tenant.NewProject{Name: fmt.Sprintf("Shop %02d", i+1), OwnerID: f.ownerID})
		if err != nil {
			return err
		}
		p.id = created.ID
		subscribers := 3 + 37/(i+1)
		f.addEndpoint(p, "", 0)
		for n := range subscribers {
			subscriber := fmt.Sprintf("customer-%03d", n+1)
			p.subscribers = append(p.subscribers, subscriber)
			for k := range 1 + n%2 {
				f.addEndpoint(p, subscriber, k)
			}
		}
		if err := f.storeEndpoints(ctx, p); err != nil {
			return err
		}
		f.projects = append(f.projects, p)
	}
	for _, p := range f.projects {
		p.weight /= total
	}
	_, err := f.pool.Exec(ctx, `update projects set created_at = $1 where id = any($2)`, f.since.Add(-24*time.Hour), f.projectIDs())
	if err != nil {
		return fmt.Errorf("age the projects: %w", err)
	}
	return nil
}

func (f *filling) projectIDs() []string {
	ids := make([]string, len(f.projects))
	for i, p := range f.projects {
		ids[i] = p.id
	}
	return ids
}

func (f *filling) endpointCount() int {
	n := 0
	for _, p := range f.projects {
		n += len(p.endpoints)
	}
	return n
}

// addEndpoint gives every twelfth endpoint of a project the same habits.
func (f *filling) addEndpoint(p *seedProject, subscriber string, k int) {
	e := &seedEndpoint{subscriber: subscriber, index: len(p.endpoints), failureShare: 15, throttleShare: 2, failure: len(p.endpoints)}
	e.host = fmt.Sprintf("hooks%d.%s.example", k+1, subscriber)
	if subscriber == "" {
		e.host = "warehouse.example"
	}
	ago := func(days float64) time.Time { return f.now.Add(-time.Duration(days * float64(24*time.Hour))) }
	age := float64(f.random.IntN(1000)) / 1000
	switch e.index % 12 {
	case 2:
		e.types = seedTypes[:2+f.random.IntN(3)]
	case 3:
		e.failureShare = 200
	case 4:
		e.profile = "compact"
	case 5:
		e.throttleShare = 50
	case 7:
		e.failingSince = ago(0.1 + 4*age)
	case 9:
		e.disabledAt = ago(2 + 15*age)
		e.failingSince = e.disabledAt.Add(-5 * 24 * time.Hour)
	case 10:
		e.gone, e.disabledAt = true, ago(1+20*age)
	case 11:
		e.pausedAt = ago(0.3 * age)
	}
	p.endpoints = append(p.endpoints, e)
	if subscriber != "" {
		p.ofSubscriber[subscriber] = append(p.ofSubscriber[subscriber], e)
	}
}

func (f *filling) storeEndpoints(ctx context.Context, p *seedProject) error {
	for _, e := range p.endpoints {
		created, err := f.endpoints.CreateEndpoint(ctx, cli().In(p.id), webhooks.NewEndpoint{Settings: webhooks.Settings{
			URL: "https://" + e.host + "/webhooks", Subscriber: e.subscriber, EventTypes: e.types, Profile: e.profile, MaxInFlight: 1 + e.index%4}})
		if err != nil {
			return err
		}
		e.id = created.Endpoint.ID
		if err := f.storeCondition(ctx, p, e); err != nil {
			return fmt.Errorf("set the condition of an endpoint: %w", err)
		}
	}
	return nil
}

func (f *filling) storeCondition(ctx context.Context, p *seedProject, e *seedEndpoint) error {
	reason, detail := webhooks.DisabledFailing, "Every attempt failed for 5 days."
	if e.gone {
		reason, detail = webhooks.DisabledGone, "The receiver answered 410 Gone. It wants no more events."
	}
	_, err := f.pool.Exec(ctx, `
		update endpoints set created_at = $3, updated_at = $3, paused_at = $4::timestamptz, disabled_at = $5::timestamptz,
			disabled_reason = case when $5::timestamptz is not null then $6 end, disabled_detail = case when $5::timestamptz is not null then $7 end
		where project_id = $1 and id = $2`,
		p.id, e.id, f.since.Add(time.Duration(e.index)*time.Second), orNull(e.pausedAt), orNull(e.disabledAt), string(reason), detail)
	if err != nil {
		return err
	}
	if e.failingSince.IsZero() {
		_, err = f.pool.Exec(ctx, `update endpoint_lanes set last_success_at = $2 where endpoint_id = $1`, e.id, f.now.Add(-time.Minute))
		return err
	}
	last := f.now.Add(-3 * time.Minute)
	if !e.disabledAt.IsZero() {
		last = e.disabledAt
	}
	_, err = f.pool.Exec(ctx, `update endpoint_lanes set failing_since = $2, failures_in_a_row = $3, last_failure_at = $4, last_success_at = $5 where endpoint_id = $1`,
		e.id, e.failingSince, int(last.Sub(e.failingSince)/(5*time.Minute)), last, e.failingSince.Add(-time.Minute))
	return err
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
