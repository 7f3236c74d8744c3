package web

import (
	"context"
	"encoding/csv"
	"encoding/hex"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
)

// The formats of evidence beside JSON.
const (
	mediaCSV       = "text/csv"
	mediaJSONLines = "application/jsonl"
)

func (a *api) mountEvidence() {
	register(a, operation{
		id: "get-evidence", method: http.MethodGet, path: "/v1/orders/{orderId}/evidence", tag: tagMail, needs: tenant.PermSeePayloads,
		summary: "Read the evidence of an order",
		description: "Every mail about the order: which notification, under which version of which policy it was tried, what the transport answered, why it was tried again or stopped, when the next attempt became eligible, and what was told later. " +
			"`format=csv` and `format=jsonl` give the rows of the ledger as they were hashed, so that anyone can recompute the chain; what was told later stands behind them, in columns or lines of its own.",
		answers: map[int]string{http.StatusOK: "The chain, in the order of its tasks and attempts."},
	}, a.getEvidence)
	schema := a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[evidenceShown](), true, "evidence")
	a.document("/v1/orders/{orderId}/evidence", http.MethodGet).Responses["200"].Content = map[string]*huma.MediaType{
		mediaJSON:      {Schema: schema},
		mediaCSV:       {Schema: &huma.Schema{Type: huma.TypeString}, Example: "project_id,task_id,seq\nproject_01jqz4x1f8e3v9m2c7d5b6a0kt,1042,1\n"},
		mediaJSONLines: {Schema: &huma.Schema{Type: huma.TypeString}, Example: `{"attempt":1,"base_wait_ms":null}` + "\n"},
	}
}

type evidenceInput struct {
	OrderID string `path:"orderId" doc:"The order." example:"SO-10482"`
	Format  string `query:"format" enum:"json,csv,jsonl" default:"json" doc:"How to answer."`
}

// evidenceShown is what is known of the mails about one order.
type evidenceShown struct {
	OrderID       string                 `json:"orderId" example:"SO-10482"`
	Notifications []notificationEvidence `json:"notifications" nullable:"false" doc:"In the order they were asked for."`
}

// notificationEvidence is one mail with its attempts and what was told later.
type notificationEvidence struct {
	ID                string            `json:"id" example:"notification_01jqz4x1f8e3v9m2c7d5b6a0kt"`
	TaskID            int64             `json:"taskId" example:"1042"`
	Kind              string            `json:"kind" example:"order.notification"`
	RecipientRef      string            `json:"recipientRef" doc:"HMAC-SHA-256 of the address under a key of the project, in hex: the same for the same address." example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	MessageID         string            `json:"messageId" example:"<notification_01jqz4x1f8e3v9m2c7d5b6a0kt@shop.example>"`
	CreatedAt         time.Time         `json:"createdAt" example:"2026-03-01T12:00:00Z"`
	AcceptedAt        *time.Time        `json:"acceptedAt" doc:"When the transport said that it has the mail; null before that." example:"2026-03-01T12:00:01Z"`
	Captured          bool              `json:"captured" doc:"The mail was kept here and not sent." example:"false"`
	ProviderID        *string           `json:"providerId" doc:"The transport's name for the mail."`
	PossibleDuplicate bool              `json:"possibleDuplicate" doc:"An answer was lost when the transport had the mail already." example:"false"`
	EndedReason       *string           `json:"endedReason" doc:"Why it will not be sent, such as suppressed or dropped_burst_cap."`
	Attempts          []evidenceAttempt `json:"attempts" nullable:"false" doc:"The chain of the ledger, in its order."`
	Feedback          []feedbackShown   `json:"feedback" nullable:"false" doc:"What was told later, in the order it happened."`
}

// evidenceAttempt is one row of the ledger.
type evidenceAttempt struct {
	Seq           int            `json:"seq" doc:"Its place in the chain." example:"1"`
	Attempt       int            `json:"attempt" example:"1"`
	Charged       bool           `json:"charged" doc:"It used up one of the policy's attempts." example:"true"`
	Trigger       jobs.Trigger   `json:"trigger" enum:"schedule,manual,redeliver,test" example:"schedule"`
	StartedAt     time.Time      `json:"startedAt" example:"2026-03-01T12:00:00.018Z"`
	DurationMS    int64          `json:"durationMs" example:"184"`
	Class         string         `json:"class" example:"success"`
	StatusCode    *int           `json:"statusCode" doc:"The SMTP code or HTTP status that was answered; null without an answer." example:"250"`
	ErrorType     *string        `json:"errorType"`
	Phase         *string        `json:"phase"`
	Error         *string        `json:"error" doc:"What was answered, in a sentence; addresses are taken out."`
	Decision      jobs.Verdict   `json:"decision" enum:"accepted,retry_scheduled,snoozed,permanent_failure,cancelled,unknown" example:"accepted"`
	Reason        string         `json:"reason" doc:"Why it was decided so." example:"accepted"`
	WaitMS        *int64         `json:"waitMs"`
	NextAttemptAt *time.Time     `json:"nextAttemptAt" doc:"When the next attempt became eligible; null when none was to come."`
	Policy        evidencePolicy `json:"policy"`
	RequestSHA256 *string        `json:"requestSha256" doc:"Over the bytes that were sent, in hex: the same for a second copy." example:"5c1d9f0e3b7a4f2c8d6e1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d"`
	PrevHash      string         `json:"prevHash" example:"5c1d9f0e3b7a4f2c8d6e1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d"`
	Hash          string         `json:"hash" doc:"SHA-256 over prevHash and the row's canonical form." example:"0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d5c1d9f0e3b7a4f2c8d6e1a"`
}

// evidencePolicy is the version of the policy that decided.
type evidencePolicy struct {
	Kind    string `json:"kind" example:"order.notification"`
	Profile string `json:"profile" doc:"Mail over SMTP has the profile smtp, where the kind has one." example:"standard"`
	Version int    `json:"version" doc:"Counted per kind and profile." example:"1"`
	Hash    string `json:"hash" doc:"SHA-256 of the policy's canonical form, in hex." example:"5c1d9f0e3b7a4f2c8d6e1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d"`
}

// feedbackShown is one fact that was told later.
type feedbackShown struct {
	Provider   string          `json:"provider" example:"postmark"`
	Kind       mailer.Feedback `json:"kind" enum:"delayed,delivered,bounced,complained" example:"delivered"`
	Status     *string         `json:"status" doc:"The enhanced status, such as 5.1.1."`
	Detail     string          `json:"detail" example:""`
	OccurredAt time.Time       `json:"occurredAt" example:"2026-03-01T12:00:04Z"`
	ReceivedAt time.Time       `json:"receivedAt" example:"2026-03-01T12:00:06Z"`
}

// orderEvidence is the evidence of one mail as it is read.
type orderEvidence struct {
	mail    *mailer.Notification
	records []jobs.Record
	facts   []mailer.RecordedFact
}

func (a *api) getEvidence(ctx context.Context, c call, in *evidenceInput) (*huma.StreamResponse, error) {
	all, err := readEvidence(ctx, a, c.project(), in.OrderID)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		media, write := mediaJSON, writeEvidence
		switch in.Format {
		case "csv":
			media, write = mediaCSV+"; charset=utf-8", writeEvidenceCSV
		case "jsonl":
			media, write = mediaJSONLines, writeEvidenceLines
		}
		hc.SetHeader("Content-Type", media)
		write(hc, in.OrderID, all)
	}}, nil
}

// readEvidence reads it all before the answer begins, so that an error is answered as one. An order that nothing was sent about is
// store.ErrNotFound.
func readEvidence(ctx context.Context, a *api, project, orderID string) ([]orderEvidence, error) {
	mails, err := a.mailer.NotificationsOfOrder(ctx, a.pool, project, orderID)
	if err != nil {
		return nil, err
	}
	if len(mails) == 0 {
		return nil, store.ErrNotFound
	}
	all := make([]orderEvidence, 0, len(mails))
	for _, n := range mails {
		e := orderEvidence{mail: n}
		if e.records, err = jobs.AttemptsOfTask(ctx, a.pool, project, n.TaskID); err != nil {
			return nil, err
		}
		if e.facts, err = mailer.FactsOf(ctx, a.pool, n.ID); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func writeEvidence(hc huma.Context, orderID string, all []orderEvidence) {
	shown := evidenceShown{OrderID: orderID, Notifications: []notificationEvidence{}}
	for _, e := range all {
		shown.Notifications = append(shown.Notifications, showEvidence(e))
	}
	_ = encode(hc.BodyWriter(), shown) // Whoever asked may be gone.
}

func writeEvidenceCSV(hc huma.Context, _ string, all []orderEvidence) {
	out := csv.NewWriter(hc.BodyWriter())
	columns := jobs.RecordColumns()
	_ = out.Write(append(slices.Clone(columns), feedbackColumns...))
	for _, e := range all {
		for _, r := range e.records {
			_ = out.Write(append(r.CSV(), make([]string, len(feedbackColumns))...))
		}
		for _, f := range e.facts {
			_ = out.Write(append(factRow(columns, e.mail), f.Provider, string(f.Kind), f.Status, plainCell(f.Detail), f.OccurredAt.UTC().Format(time.RFC3339Nano)))
		}
	}
	out.Flush()
}

// feedbackColumns stand behind those of the ledger. Rows that have them are what was told later; they are no part of the chain.
var feedbackColumns = []string{"feedback_provider", "feedback", "feedback_status", "feedback_detail", "feedback_at"}

// factRow is a row of the ledger's columns for what was told about a mail: it names the mail and has nothing else.
func factRow(columns []string, n *mailer.Notification) []string {
	row := make([]string, len(columns))
	for name, value := range map[string]string{"project_id": n.ProjectID, "task_id": strconv.FormatInt(n.TaskID, 10), "kind": n.Kind, "order_id": n.OrderID,
		"idempotency_key": n.ID} {
		if i := slices.Index(columns, name); i >= 0 {
			row[i] = plainCell(value)
		}
	}
	return row
}

func writeEvidenceLines(hc huma.Context, _ string, all []orderEvidence) {
	for _, e := range all {
		for _, r := range e.records {
			_ = encode(hc.BodyWriter(), r)
		}
		for _, f := range e.facts {
			_ = encode(hc.BodyWriter(), struct {
				NotificationID string        `json:"notification_id"`
				Feedback       feedbackShown `json:"feedback"`
			}{e.mail.ID, showFact(f)})
		}
	}
}

func showEvidence(e orderEvidence) notificationEvidence {
	n := e.mail
	shown := notificationEvidence{ID: n.ID, TaskID: n.TaskID, Kind: n.Kind, RecipientRef: hex.EncodeToString(n.Ref()), MessageID: n.MessageID,
		CreatedAt: n.CreatedAt, Captured: n.Captured, ProviderID: orNull(n.ProviderID), PossibleDuplicate: n.PossibleDuplicate, EndedReason: orNull(n.EndedReason),
		Attempts: []evidenceAttempt{}, Feedback: []feedbackShown{}}
	if n.AcceptedAt != nil {
		shown.AcceptedAt = instantOrNull(*n.AcceptedAt)
	}
	for _, r := range e.records {
		shown.Attempts = append(shown.Attempts, evidenceAttempt{Seq: r.Seq, Attempt: r.Attempt, Charged: r.Charged, Trigger: r.Trigger, StartedAt: r.StartedAt,
			DurationMS: r.Duration().Milliseconds(), Class: r.Class, StatusCode: r.Status, ErrorType: r.ErrorType, Phase: r.Phase, Error: r.Error,
			Decision: r.Decision, Reason: r.Reason, WaitMS: r.WaitMS, NextAttemptAt: r.NextAttemptAt, RequestSHA256: orNull(hex.EncodeToString(r.RequestSHA256)),
			Policy:   evidencePolicy{Kind: r.Kind, Profile: r.PolicyProfile, Version: r.PolicyVersion, Hash: hex.EncodeToString(r.PolicyHash)},
			PrevHash: hex.EncodeToString(r.PrevHash), Hash: hex.EncodeToString(r.Hash)})
	}
	for _, f := range e.facts {
		shown.Feedback = append(shown.Feedback, showFact(f))
	}
	return shown
}

func showFact(f mailer.RecordedFact) feedbackShown {
	return feedbackShown{Provider: f.Provider, Kind: f.Kind, Status: orNull(f.Status), Detail: f.Detail, OccurredAt: f.OccurredAt.UTC(), ReceivedAt: f.ReceivedAt.UTC()}
}
