package web

import (
	"slices"
	"strings"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

func presentKeys(l views.Layout, v *visit, keys []tenant.APIKey, n tenant.NewAPIKey, invalid *store.InvalidError) views.KeysProps {
	manage := v.can(tenant.PermManageKeys)
	p := views.KeysProps{Layout: l, Name: n.Name, CanCreate: manage}
	if invalid != nil {
		p.Problems = fieldProblems(invalid)
		p.Problems["scope"] = p.Problems["scopes"]
	}
	for _, scope := range tenant.Scopes() {
		p.Scopes = append(p.Scopes, views.ScopeChoice{Name: string(scope), Does: scopeDoes(scope), Chosen: slices.Contains(n.Scopes, scope)})
	}
	for _, k := range keys {
		row := views.KeyRow{ID: k.ID, Name: k.Name, Prefix: k.Prefix, CreatedBy: emailFor(v, k.CreatedBy), CreatedAt: k.CreatedAt,
			LastUsedAt: orZero(k.LastUsedAt), RevokedAt: orZero(k.RevokedAt), CanRevoke: manage && k.RevokedAt == nil}
		for _, scope := range k.Scopes {
			row.Scopes = append(row.Scopes, string(scope))
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}

func scopeDoes(s tenant.Scope) string {
	switch s {
	case tenant.ScopePublish:
		return "Publish events. All that most backends need."
	case tenant.ScopeRead:
		return "Read events, deliveries and endpoints, payloads included."
	default:
		return "Change endpoints, retry, cancel and redeliver. Not keys or members."
	}
}

func scopeWords(scopes []tenant.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}
