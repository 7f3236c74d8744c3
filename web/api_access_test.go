package web_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/webhooks"
)

// operation is a call as the served document describes it.
type operation struct {
	id, method, path string
	// scopes are those of which a key needs one.
	scopes []string
	body   any
}

// operations reads every call out of the served document, so that none can be forgotten.
func (p *panel) operations() []operation {
	p.t.Helper()
	var document struct {
		Paths map[string]map[string]struct {
			OperationID string                `json:"operationId"`
			Security    []map[string][]string `json:"security"`
			RequestBody struct {
				Content map[string]struct {
					Example any `json:"example"`
				} `json:"content"`
			} `json:"requestBody"`
		} `json:"paths"`
	}
	nobody := &apiClient{p: p}
	if err := json.Unmarshal(nobody.do("GET", "/openapi.json", nil).is(200).raw, &document); err != nil {
		p.t.Fatal(err)
	}
	var all []operation
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for method, op := range document.Paths[path] {
			o := operation{id: op.OperationID, method: strings.ToUpper(method), path: path, body: op.RequestBody.Content["application/json"].Example}
			for _, alternative := range op.Security {
				o.scopes = append(o.scopes, alternative["apiKey"]...)
			}
			all = append(all, o)
		}
	}
	if len(all) < 20 {
		p.t.Fatalf("the document has %d calls", len(all))
	}
	return all
}

// subjects are ids of one project, one for each kind of path.
type subjects struct{ endpoint, event, delivery, bulk, alert, order string }

// newSubjects makes one of everything in a project.
func (p *panel) newSubjects(project tenant.Project) subjects {
	p.t.Helper()
	c := p.api(project)
	s := subjects{endpoint: p.newEndpoint(project, webhooks.Settings{URL: "https://shop.example.com/hooks"}).ID}
	s.alert = p.newAlert(project)
	s.event = c.do("POST", "/v1/events", anEvent).is(202).text("id")
	s.order = store.NewID("order")
	c.do("POST", "/v1/notifications", map[string]string{"orderId": s.order, "to": "sales@acme.example", "subject": "New order", "text": "A new order."}).is(202)
	err := store.InTx(p.ctx, p.pool, func(tx pgx.Tx) error {
		id, err := jobs.InsertTx(p.ctx, p.client, tx, webhooks.Deliver, webhooks.DeliverArgs{ProjectID: project.ID, EventID: s.event, EndpointID: s.endpoint},
			jobs.Insert{ProjectID: project.ID, EventID: s.event, EndpointID: s.endpoint})
		s.delivery = fmt.Sprint(id)
		if err != nil {
			return err
		}
		bulk, err := jobs.InsertBulk(p.ctx, tx, p.ownerOf(project), project.ID, jobs.BulkRetry, struct{}{}, 1)
		s.bulk = bulk.ID
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// in puts the id that a path asks for into it.
func (s subjects) in(path string) string {
	for prefix, id := range map[string]string{"/v1/endpoints/": s.endpoint, "/v1/events/": s.event, "/v1/deliveries/": s.delivery, "/v1/bulks/": s.bulk, "/v1/alerts/": s.alert} {
		if strings.HasPrefix(path, prefix) {
			path = strings.ReplaceAll(path, "{id}", id)
		}
	}
	return strings.ReplaceAll(path, "{orderId}", s.order)
}

func TestAPI_EveryCallTakesTheScopesOfItsDocumentAndNoOther(t *testing.T) {
	t.Parallel()
	p := setup(t)
	own := p.newSubjects(p.ours)
	for _, scope := range tenant.Scopes() {
		c := p.api(p.ours, scope)
		for _, op := range p.operations() {
			if op.method == http.MethodDelete {
				continue // The last of all: see below.
			}
			p.callWith(c, op, own, slices.Contains(op.scopes, string(scope)))
		}
	}
	for _, scope := range tenant.Scopes() {
		c := p.api(p.ours, scope)
		for _, op := range p.operations() {
			if op.method == http.MethodDelete {
				p.callWith(c, op, own, slices.Contains(op.scopes, string(scope)))
			}
		}
	}
}

// callWith checks that a call is let through, whatever it then answers, or refused with the scope that it lacks.
func (p *panel) callWith(c *apiClient, op operation, own subjects, allowed bool) {
	p.t.Helper()
	name := op.method + " " + op.path
	if op.id == "redeliver-event" {
		op.body = nil // Its example names an endpoint that is not there.
	}
	a := c.do(op.method, own.in(op.path), op.body)
	if allowed {
		if a.status == 401 || a.status == 403 || a.status == 404 || a.status >= 500 {
			p.t.Errorf("%s: %d %s", name, a.status, a.raw)
		}
		return
	}
	a.problem(403, "missing_scope")
	if detail := a.text("detail"); !strings.Contains(detail, strings.Join(op.scopes, " or ")) {
		p.t.Errorf("%s does not name the scopes %v: %s", name, op.scopes, detail)
	}
	if challenge := a.header.Get("WWW-Authenticate"); !strings.Contains(challenge, `error="insufficient_scope", scope="`+op.scopes[0]+`"`) {
		p.t.Errorf("%s challenges with %q", name, challenge)
	}
}

func TestAPI_EveryCallWantsAKey(t *testing.T) {
	t.Parallel()
	p := setup(t)
	own := p.newSubjects(p.ours)
	key, secret, err := tenant.CreateAPIKey(p.ctx, p.pool, p.ownerOf(p.ours), p.ours.ID, tenant.NewAPIKey{Name: "revoked", Scopes: tenant.Scopes()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tenant.RevokeAPIKey(p.ctx, p.pool, p.ownerOf(p.ours), p.ours.ID, key.ID); err != nil {
		t.Fatal(err)
	}
	nobody := &apiClient{p: p}
	for name, test := range map[string]struct {
		client    *apiClient
		challenge string
	}{
		"no key":         {nobody, `Bearer realm="Entrega"`},
		"another scheme": {nobody.with("Authorization", "Basic "+secret), `Bearer realm="Entrega"`},
		"a wrong key":    {&apiClient{p: p, key: secret[:len(secret)-1] + "_"}, `Bearer realm="Entrega", error="invalid_token"`},
		"an empty key":   {nobody.with("Authorization", "Bearer "), `Bearer realm="Entrega"`},
		"a revoked key":  {&apiClient{p: p, key: secret}, `Bearer realm="Entrega", error="invalid_token"`},
	} {
		for _, op := range p.operations() {
			a := test.client.do(op.method, own.in(op.path), op.body)
			a.problem(401, "unauthorized")
			if got := a.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, test.challenge) {
				t.Errorf("%s with %s challenges with %q", op.id, name, got)
			}
		}
	}
	// The scheme's name has no case (RFC 9110, section 11.1).
	lower := p.api(p.ours)
	nobody.with("Authorization", "bearer "+lower.key).do("GET", "/v1/events", nil).is(200)
}

func TestAPI_ForeignAndMissingIDsAnswer404OnEveryPath(t *testing.T) {
	t.Parallel()
	p := setup(t)
	theirs := p.newSubjects(p.theirs)
	missing := subjects{endpoint: "endpoint_01jqz4x1f8e3v9m2c7d5b6a0kt", event: "nothing", delivery: "999999999", bulk: "bulk_01jqz4x1f8e3v9m2c7d5b6a0kt", alert: "alert_01jqz4x1f8e3v9m2c7d5b6a0kt", order: "SO-nothing"}
	odd := subjects{endpoint: "%00", event: "a%2Fb", delivery: "one", bulk: "%F0%9F%98%80", alert: "%00", order: "%00"}
	c := p.api(p.ours)
	tried := 0
	for _, op := range p.operations() {
		if !strings.Contains(op.path, "{") {
			continue
		}
		tried++
		for _, ids := range []subjects{theirs, missing, odd} {
			body := op.body
			if op.id == "redeliver-event" {
				body = nil
			}
			for _, client := range []*apiClient{c, c.with("Idempotency-Key", "k")} {
				client.do(op.method, ids.in(op.path), body).problem(404, "not_found")
			}
		}
	}
	if tried < 14 {
		t.Errorf("only %d calls name something by id", tried)
	}
	// What belongs to another project cannot be named in a body or filter either.
	own := p.newSubjects(p.ours)
	c.do("POST", "/v1/events/"+own.event+"/redeliver", map[string]any{"endpointIds": []string{theirs.endpoint}}).problem(404, "not_found")
	for _, query := range []string{"endpointId=" + theirs.endpoint, "eventId=" + theirs.event} {
		if got := c.do("GET", "/v1/deliveries?"+query, nil).is(200).list("data"); len(got) != 0 {
			t.Errorf("%s finds %v", query, got)
		}
	}
	var kept int
	p.scan(&kept, `select count(*) from endpoints where id = $1 and deleted_at is null and disabled_at is null`, theirs.endpoint)
	if kept != 1 {
		t.Error("the other project's endpoint was changed")
	}
}

func TestAPI_ListsShowOneProject(t *testing.T) {
	t.Parallel()
	p := setup(t)
	theirs := p.newSubjects(p.theirs)
	c := p.api(p.ours)
	for _, op := range p.operations() {
		if op.method != http.MethodGet || strings.Contains(op.path, "{") {
			continue
		}
		raw := string(c.do("GET", op.path, nil).is(200).raw)
		for _, id := range []string{theirs.endpoint, theirs.event, theirs.bulk, p.theirs.ID} {
			if strings.Contains(raw, id) {
				t.Errorf("%s shows %s", op.path, id)
			}
		}
	}
}
