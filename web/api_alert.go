package web

import (
	"context"
	"net/http"
	"strings"
	"time"

	"entrega/internal/alerts"
	"entrega/internal/tenant"
)

const tagAlerts = "Alerts"

// mountAlerts lists the calls about alerts.
func (a *api) mountAlerts() {
	register(a, operation{
		id: "list-alerts", method: http.MethodGet, path: "/v1/alerts", tag: tagAlerts, needs: tenant.PermSee,
		summary:     "List alerts",
		description: "Open ones first, then acknowledged ones, then resolved ones; among them those that happened last come first.\n\n" + kindsInWords(),
		answers:     map[int]string{http.StatusOK: "One page of alerts."},
	}, a.listAlerts)
	register(a, operation{
		id: "acknowledge-alert", method: http.MethodPost, path: "/v1/alerts/{id}/acknowledge", tag: tagAlerts, needs: tenant.PermAcknowledge,
		summary:     "Acknowledge an alert",
		description: "Says that somebody has taken it on. It goes on counting and resolves itself when its cause is gone. One that is acknowledged already stays as it is.",
		answers:     map[int]string{http.StatusOK: "The alert, acknowledged."},
		conflicts:   []conflict{{alerts.CodeResolved, "the alert is resolved, so there is nothing left to acknowledge"}},
	}, a.acknowledgeAlert)
	register(a, operation{
		id: "resolve-alert", method: http.MethodPost, path: "/v1/alerts/{id}/resolve", tag: tagAlerts, needs: tenant.PermAcknowledge,
		summary: "Resolve an alert",
		description: "Says that somebody has done with it. A new alert is raised only for what happens from now on, or when the cause has gone and come back. " +
			"One that is resolved already stays as it is.",
		answers: map[int]string{http.StatusOK: "The alert, resolved."},
	}, a.resolveAlert)
}

// kindsInWords tells of each kind that a project can have what raises and what resolves it.
func kindsInWords() string {
	var b strings.Builder
	for _, r := range alerts.Rules() {
		if r.Kind == alerts.PeriodicFailed { // It concerns the installation alone.
			continue
		}
		b.WriteString("- `" + string(r.Kind) + "` is raised when " + r.Raised + ". It resolves itself when " + r.Resolved + ".\n")
	}
	return strings.TrimSpace(b.String())
}

// alertShown is something that a person should look at.
type alertShown struct {
	ID             string       `json:"id" example:"alert_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	Kind           alerts.Kind  `json:"kind" doc:"More kinds may come." example:"task_discarded"`
	Title          string       `json:"title" doc:"The kind for people." example:"Tasks discarded"`
	State          alerts.State `json:"state" enum:"open,acknowledged,resolved" example:"open"`
	Subject        string       `json:"subject" doc:"Tells alerts of one kind apart." example:"webhook.deliver/endpoint_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	Sentence       string       `json:"sentence" doc:"What happened and what to do." example:"hooks.shop.example did not get 12 deliveries: discarded, the newest because the attempts were used up. Look at them, and when the receiver works, retry or redeliver."`
	Count          int64        `json:"count" doc:"How often it happened." example:"12"`
	FirstAt        time.Time    `json:"firstAt" doc:"When it first happened." example:"2026-03-01T12:00:00.123456Z"`
	LastAt         time.Time    `json:"lastAt" doc:"When it last happened." example:"2026-03-01T12:31:07.654321Z"`
	EndpointID     *string      `json:"endpointId" doc:"The endpoint that it is about; null when it is about none." example:"endpoint_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	EventID        *string      `json:"eventId" doc:"The event that it is about, the newest of several; null when it is about none."`
	AcknowledgedAt *time.Time   `json:"acknowledgedAt"`
	AcknowledgedBy *string      `json:"acknowledgedBy" doc:"Who has taken it on."`
	ResolvedAt     *time.Time   `json:"resolvedAt"`
	ResolvedBy     *string      `json:"resolvedBy" doc:"Who resolved it; null when it resolved itself."`
	ResolvedWhy    *string      `json:"resolvedWhy" doc:"Why it resolved itself."`
}

func showAlert(a alerts.Alert) alertShown {
	return alertShown{ID: a.ID, Kind: a.Kind, Title: alerts.RuleOf(a.Kind).Title, State: a.State, Subject: a.Subject, Sentence: a.Sentence(),
		Count: a.Count, FirstAt: a.FirstAt.UTC(), LastAt: a.LastAt.UTC(), EndpointID: orNull(a.EndpointID), EventID: orNull(a.EventID),
		AcknowledgedAt: utc(a.AcknowledgedAt), AcknowledgedBy: orNull(a.AcknowledgedBy),
		ResolvedAt: utc(a.ResolvedAt), ResolvedBy: orNull(a.ResolvedBy), ResolvedWhy: orNull(a.ResolvedWhy)}
}

type listAlertsInput struct {
	PageParams
	State      alerts.State `query:"state" enum:"open,acknowledged,resolved" doc:"Only alerts in this state." example:"open"`
	Kind       string       `query:"kind" doc:"Only alerts of this kind." example:"task_discarded"`
	EndpointID string       `query:"endpointId" doc:"Only alerts about this endpoint." example:"endpoint_01jqz4x1f8e3v9m2c7d5b6a0kt"`
}

func (a *api) listAlerts(ctx context.Context, c call, in *listAlertsInput) (*listOutput[alertShown], error) {
	filter := alerts.Filter{State: in.State, Kind: alerts.Kind(in.Kind), EndpointID: in.EndpointID}
	list, err := alerts.List(ctx, a.pool, alerts.ViewOf(c.actor, c.project()), filter, in.page())
	if err != nil {
		return nil, err
	}
	return listOf(list, showAlert), nil
}

type alertInput struct {
	ID string `path:"id" doc:"The alert's id." example:"alert_01jqz4x1f8e3v9m2c7d5b6a0kt"`
}

type alertOutput struct{ Body alertShown }

func (a *api) acknowledgeAlert(ctx context.Context, c call, in *alertInput) (*alertOutput, error) {
	alert, err := alerts.Acknowledge(ctx, a.pool, c.actor, c.project(), in.ID)
	if err != nil {
		return nil, err
	}
	return &alertOutput{showAlert(alert)}, nil
}

func (a *api) resolveAlert(ctx context.Context, c call, in *alertInput) (*alertOutput, error) {
	alert, err := alerts.Resolve(ctx, a.pool, c.actor, c.project(), in.ID)
	if err != nil {
		return nil, err
	}
	return &alertOutput{showAlert(alert)}, nil
}
