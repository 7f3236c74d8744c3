package webhooks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/webhooks"
)

func asInvalid(err error, bad **store.InvalidError) bool { return errors.As(err, bad) }

// anywhere is a URL that the tests' installation takes and that nothing listens on.
const anywhere = "http://127.0.0.1:8000/hook"

func TestEndpoint_KeepsWhatWasGiven(t *testing.T) {
	t.Parallel()
	b := setup(t)
	in := webhooks.Settings{URL: "https://hooks.example.com/in?shop=7", Description: "Orders", Subscriber: "acme",
		EventTypes: []string{"order.created", "order.paid"}, Profile: "compact", Headers: map[string]string{"X-Shop": "7"},
		MaxInFlight: 4, RatePerSecond: 2.5, TimeoutSeconds: 20}
	e := b.create(in).Endpoint
	got := b.endpoint(e.ID)
	out := webhooks.Settings{URL: got.URL, Description: got.Description, Subscriber: got.Subscriber, EventTypes: got.EventTypes, Profile: got.Profile,
		Headers: got.Headers, MaxInFlight: got.MaxInFlight, RatePerSecond: got.RatePerSecond, TimeoutSeconds: got.TimeoutSeconds}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Errorf("(-given +kept):\n%s", diff)
	}
	if got.Version != 1 || got.State() != webhooks.StateHealthy {
		t.Errorf("version %d, state %s", got.Version, got.State())
	}
	plain := b.endpoint(b.create(webhooks.Settings{URL: anywhere}).Endpoint.ID)
	if plain.MaxInFlight != 1 || plain.RatePerSecond != 0 || plain.TimeoutSeconds != 0 || plain.Profile != "" || len(plain.Headers) != 0 {
		t.Errorf("defaults: %+v", plain)
	}
}

func TestEndpoint_RefusedFieldByField(t *testing.T) {
	t.Parallel()
	b := setup(t)
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("type.n%d", i)
	}
	for field, s := range map[string]webhooks.Settings{
		"url":               {URL: "http://localhost/"},
		"description":       {URL: anywhere, Description: strings.Repeat("a", 501)},
		"subscriber":        {URL: anywhere, Subscriber: "a\nb"},
		"eventTypes":        {URL: anywhere, EventTypes: many},
		"eventTypes[1]":     {URL: anywhere, EventTypes: []string{"order.created", "order created"}},
		"profile":           {URL: anywhere, Profile: "fast"},
		"headers.Webhook-A": {URL: anywhere, Headers: map[string]string{"Webhook-A": "x"}},
		"maxInFlight":       {URL: anywhere, MaxInFlight: 65},
		"ratePerSecond":     {URL: anywhere, RatePerSecond: -1},
		"timeoutSeconds":    {URL: anywhere, TimeoutSeconds: 31},
	} {
		_, err := b.endpoints.CreateEndpoint(b.ctx, b.owner, webhooks.NewEndpoint{Settings: s})
		if sentence(err, field) == "" {
			t.Errorf("%s: %v", field, err)
		}
	}
	_, err := b.endpoints.CreateEndpoint(b.ctx, b.owner, webhooks.NewEndpoint{Settings: webhooks.Settings{MaxInFlight: 99}, Secret: "x"})
	for _, field := range []string{"url", "maxInFlight", "secret"} {
		if sentence(err, field) == "" {
			t.Errorf("%s is not among all that is wrong: %v", field, err)
		}
	}
}

func TestEndpoint_ChangeRaisesTheVersionAndIsAuditedWithoutSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.create(webhooks.Settings{URL: anywhere, Headers: map[string]string{"X-Api-Key": "oldsecret"}}).Endpoint
	url, wide := "https://hooks.example.com/in?token=urlsecret", 8
	headers := map[string]string{"x-api-key": "newsecret"}
	got, err := b.endpoints.UpdateEndpoint(b.ctx, b.owner, e.ID, webhooks.Change{URL: &url, MaxInFlight: &wide, Headers: &headers})
	if err != nil {
		t.Fatal(err)
	}
	if got.URL != url || got.MaxInFlight != 8 || got.Headers["X-Api-Key"] != "newsecret" || got.Version != 2 {
		t.Errorf("after the change: %+v", got)
	}
	same, err := b.endpoints.UpdateEndpoint(b.ctx, b.owner, e.ID, webhooks.Change{MaxInFlight: &wide})
	if err != nil || same.Version != 2 {
		t.Errorf("a change of nothing: version %d, %v", same.Version, err)
	}
	entries, err := tenant.AuditOfSubject(b.ctx, b.pool, b.project, "endpoint", e.ID, 10)
	if err != nil || len(entries) != 2 || entries[0].Action != "endpoint.update" {
		t.Fatalf("audit: %+v, %v", entries, err)
	}
	for _, entry := range entries {
		for _, secret := range []string{"oldsecret", "newsecret", "urlsecret"} {
			if strings.Contains(string(entry.Detail), secret) {
				t.Errorf("%s keeps %q: %s", entry.Action, secret, entry.Detail)
			}
		}
	}
}

func TestEndpoint_SameURLTwiceIsAllowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.create(webhooks.Settings{URL: anywhere}), b.create(webhooks.Settings{URL: anywhere})
	if first.Endpoint.ID == second.Endpoint.ID || first.Secret == second.Secret {
		t.Error("two endpoints with one URL are the same one")
	}
}

func TestEndpoint_IdempotencyKeyAnswersTheFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := webhooks.NewEndpoint{Settings: webhooks.Settings{URL: anywhere}, IdempotencyKey: "k1"}
	first, err := b.endpoints.CreateEndpoint(b.ctx, b.owner, n)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.endpoints.CreateEndpoint(b.ctx, b.owner, n)
	if err != nil || !again.Duplicate || again.Endpoint.ID != first.Endpoint.ID || again.Secret != "" {
		t.Errorf("again: %+v, %v", again, err)
	}
	n.MaxInFlight = 2
	_, err = b.endpoints.CreateEndpoint(b.ctx, b.owner, n)
	wantConflict(t, err, "idempotency_mismatch")

	if err := b.endpoints.DeleteEndpoint(b.ctx, b.owner, first.Endpoint.ID); err != nil {
		t.Fatal(err)
	}
	fresh, err := b.endpoints.CreateEndpoint(b.ctx, b.owner, n)
	if err != nil || fresh.Duplicate {
		t.Errorf("after the first is gone: %+v, %v", fresh, err)
	}
}

func TestEndpoint_DeletedIsGoneWithItsSecrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.create(webhooks.Settings{URL: anywhere, Headers: map[string]string{"X-A": "b"}}).Endpoint
	if err := b.endpoints.DeleteEndpoint(b.ctx, b.owner, e.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := b.endpoints.EndpointByID(b.ctx, b.pool, b.project, e.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("read: %v", err)
	}
	if err := b.endpoints.DeleteEndpoint(b.ctx, b.owner, e.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("deleted again: %v", err)
	}
	if n := value[int](b, `select count(*) from endpoint_secrets where endpoint_id = $1`, e.ID); n != 0 {
		t.Errorf("%d secrets are left", n)
	}
	urls, err := webhooks.EndpointURLs(b.ctx, b.pool, b.project, []string{e.ID})
	if err != nil || urls[e.ID] != anywhere {
		t.Errorf("the URL for past deliveries: %v, %v", urls, err)
	}
}

func TestEndpoint_ListPagesBothWaysAndFilters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var ids []string
	for i := range 5 {
		ids = append([]string{b.create(webhooks.Settings{URL: anywhere, Description: fmt.Sprintf("number %d", i)}).Endpoint.ID}, ids...)
	}
	if _, err := b.endpoints.Disable(b.ctx, b.owner, ids[1], "moved away"); err != nil {
		t.Fatal(err)
	}
	list := func(f webhooks.EndpointFilter, p store.Page) store.List[webhooks.Endpoint] {
		got, err := b.endpoints.ListEndpoints(b.ctx, b.pool, b.project, f, p)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	idsOf := func(l store.List[webhooks.Endpoint]) (out []string) {
		for _, e := range l.Rows {
			out = append(out, e.ID)
		}
		return out
	}
	first := list(webhooks.EndpointFilter{}, store.Page{Limit: 2})
	second := list(webhooks.EndpointFilter{}, store.Page{Limit: 2, Cursor: first.Next})
	back := list(webhooks.EndpointFilter{}, store.Page{Limit: 2, Cursor: second.Prev})
	if diff := cmp.Diff([][]string{ids[:2], ids[2:4], ids[:2]}, [][]string{idsOf(first), idsOf(second), idsOf(back)}); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if got := idsOf(list(webhooks.EndpointFilter{State: webhooks.StateDisabled}, store.Page{})); !cmp.Equal(got, ids[1:2]) {
		t.Errorf("disabled: %v", got)
	}
	if got := idsOf(list(webhooks.EndpointFilter{Search: "NUMBER 4"}, store.Page{})); !cmp.Equal(got, ids[:1]) {
		t.Errorf("search: %v", got)
	}
	admin := tenant.Actor{Kind: tenant.ActorUser, ID: "user_admin", Name: "admin", Admin: true}
	all, err := b.endpoints.ListDisabledEndpoints(b.ctx, b.pool, admin, store.Page{})
	if err != nil || !cmp.Equal(idsOf(all), ids[1:2]) || all.Rows[0].DisabledDetail != "moved away" {
		t.Errorf("disabled in the installation: %v, %v", idsOf(all), err)
	}
	if _, err := b.endpoints.ListDisabledEndpoints(b.ctx, b.pool, b.owner, store.Page{}); !errors.Is(err, tenant.ErrForbidden) {
		t.Errorf("an owner lists the installation: %v", err)
	}
}
