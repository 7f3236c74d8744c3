package web

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/views"
)

// showKeys lists the project's API keys.
func (s *Server) showKeys(c echo.Context) error {
	return s.keysPage(c, http.StatusOK, tenant.NewAPIKey{Scopes: []tenant.Scope{tenant.ScopePublish}}, nil)
}

// keysPage shows the list, with the form for a new key as it was filled in.
func (s *Server) keysPage(c echo.Context, status int, n tenant.NewAPIKey, invalid *store.InvalidError) error {
	v := visitOf(c)
	l, err := s.layout(c, "API keys", views.SectionKeys)
	if err != nil {
		return err
	}
	keys, err := tenant.ListAPIKeys(c.Request().Context(), s.pool, v.project.ID)
	if err != nil {
		return err
	}
	return s.page(c, status, views.Keys(presentKeys(l, v, keys, n, invalid)))
}

// createKey makes a key and shows it, this once.
func (s *Server) createKey(c echo.Context) error {
	v, form := visitOf(c), c.Request().PostForm
	n := tenant.NewAPIKey{Name: form.Get("name")}
	for _, scope := range form["scope"] {
		n.Scopes = append(n.Scopes, tenant.Scope(scope))
	}
	key, secret, err := tenant.CreateAPIKey(c.Request().Context(), s.pool, v.actor, v.project.ID, n)
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return s.keysPage(c, http.StatusUnprocessableEntity, n, invalid)
	}
	if err != nil {
		return err
	}
	l, err := s.layout(c, "API key created", views.SectionKeys)
	if err != nil {
		return err
	}
	p := views.SecretProps{Layout: l, Title: "API key created", Label: key.Name, Value: secret,
		Note:    "Send it as a bearer token. It is good for " + scopeWords(key.Scopes) + " in this project.",
		NextURL: views.KeysURL(v.project.ID), NextLabel: "Back to the keys"}
	for _, scope := range key.Scopes {
		if scope == tenant.ScopePublish {
			p.Example = "export ENTREGA_API_KEY=" + secret + "\n" + publishCommand(s.publicURL.String())
		}
	}
	return s.page(c, http.StatusOK, views.ShownOnce(p))
}

// revokeKey ends a key for good.
func (s *Server) revokeKey(c echo.Context) error {
	v := visitOf(c)
	key, err := tenant.RevokeAPIKey(c.Request().Context(), s.pool, v.actor, v.project.ID, c.Param("id"))
	if err != nil {
		return err
	}
	return s.done(c, "The key "+key.Name+" was revoked. Requests with it are refused from now on.", views.KeysURL(v.project.ID))
}
