package web_test

import (
	"strings"
	"testing"

	"entrega/internal/tenant"
)

// TestAPI_AKeyThatWasGoodAMomentAgoPublishesNothing: publishing does not ask for the key before, and must not show that.
func TestAPI_AKeyThatWasGoodAMomentAgoPublishesNothing(t *testing.T) {
	t.Parallel()
	p := setup(t)
	event := func(id string) string { return `{"id":"` + id + `","type":"order.created","data":{}}` }
	p.api(p.ours).do("POST", "/v1/events", event("first")).is(202)
	for name, send := range map[string]func(*apiClient) answered{
		"a new event":            func(c *apiClient) answered { return c.do("POST", "/v1/events", event("third")) },
		"an event that is there": func(c *apiClient) answered { return c.do("POST", "/v1/events", event("first")) },
		"one with other content": func(c *apiClient) answered {
			return c.do("POST", "/v1/events", strings.Replace(event("first"), "created", "paid", 1))
		},
		"one that is refused": func(c *apiClient) answered { return c.do("POST", "/v1/events", `{"type":"??"}`) },
		"no JSON":             func(c *apiClient) answered { return c.do("POST", "/v1/events", `{`) },
		"no body":             func(c *apiClient) answered { return c.do("POST", "/v1/events", nil) },
		"another type of body": func(c *apiClient) answered {
			return c.with("Content-Type", "text/plain").do("POST", "/v1/events", event("third"))
		},
		"another type of answer": func(c *apiClient) answered {
			return c.with("Accept", "text/html").do("POST", "/v1/events", event("third"))
		},
		"an empty idempotency key": func(c *apiClient) answered {
			return c.with("Idempotency-Key", "").do("POST", "/v1/events", event("third"))
		},
		"an unknown parameter": func(c *apiClient) answered { return c.do("POST", "/v1/events?dry=1", event("third")) },
		"a batch": func(c *apiClient) answered {
			return c.do("POST", "/v1/events/batch", `{"events":[`+event("third")+`]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			key, secret, err := tenant.CreateAPIKey(p.ctx, p.pool, p.ownerOf(p.ours), p.ours.ID, tenant.NewAPIKey{Name: "shop", Scopes: []tenant.Scope{tenant.ScopePublish}})
			if err != nil {
				t.Fatal(err)
			}
			shop := &apiClient{p: p, key: secret}
			shop.do("POST", "/v1/events", event("first")).is(202) // It is remembered now.
			if _, err := tenant.RevokeAPIKey(p.ctx, p.pool, p.ownerOf(p.ours), p.ours.ID, key.ID); err != nil {
				t.Fatal(err)
			}
			a := send(shop)
			a.t = t
			a.problem(401, "unauthorized")
			if got := a.header.Get("WWW-Authenticate"); got != `Bearer realm="Entrega", error="invalid_token"` {
				t.Errorf("challenges with %q", got)
			}
		})
	}
	var n int
	if err := p.pool.QueryRow(p.ctx, `select count(*) from events where project_id = $1`, p.ours.ID).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d events are stored, want 1; %v", n, err)
	}
}
