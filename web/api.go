package web

import (
	"log/slog"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
	"entrega/webhooks"
)

// api is the JSON API below /v1 (5-api.md). Each resource has its files, api_<resource>*.go, and a mount function that lists its
// calls; huma turns them into routes and into the OpenAPI document. What huma would do to bodies is done here instead
// (api_decode.go): it parses a body twice and would not keep an event's data as it came.
type api struct {
	pool      *pgxpool.Pool
	client    *jobs.Client
	endpoints *webhooks.Endpoints
	mailer    *mailer.Mailer
	log       *slog.Logger
	now       func() time.Time
	keys      *tenant.KeyChecker
	publisher *events.Publisher
	gate      *store.Gate

	huma huma.API
}

// mountAPI registers every call of the API, its OpenAPI document and the page that shows it.
func (s *Server) mountAPI() {
	a := &api{pool: s.pool, client: s.client, endpoints: s.endpoints, mailer: s.mailer, log: s.log, now: s.now,
		keys: tenant.NewKeyChecker(s.pool), publisher: events.NewPublisher(events.PublisherOptions{Pool: s.pool, Relay: s.relay, Logger: s.log}), gate: s.gate}
	a.huma = humaecho.New(s.echo, a.config())
	a.mount()
	s.echo.POST(feedbackPath, a.takeFeedback)
	s.mountDocs(a.huma.OpenAPI())
}

func (a *api) mount() {
	a.mountEvents()
	a.mountEndpoints()
	a.mountDeliveries()
	a.mountBulks()
	a.mountPolicies()
	a.mountAlerts()
	a.mountNotifications()
	a.finishDocument()
}

// config leaves out what huma serves by itself: its documentation page loads scripts from elsewhere, and its document is made
// anew by whoever asks first.
func (a *api) config() huma.Config {
	format := huma.Format{Marshal: encode, Unmarshal: unmarshalNothing}
	config := huma.Config{
		OpenAPI:                      newDocument(),
		Formats:                      map[string]huma.Format{mediaJSON: format, "json": format}, // json stands for application/problem+json.
		DefaultFormat:                mediaJSON,
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{a.finishProblem},
	}
	// Answers may get new members without breaking a client that was made from the document; bodies are strict, and say so.
	config.AllowAdditionalPropertiesByDefault = true
	return config
}
