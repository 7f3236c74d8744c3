package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"entrega/internal/egress"
	"entrega/views"
)

// OIDC names an identity provider that people may log in by (OpenID Connect Core 1.0, the code flow with PKCE).
type OIDC struct {
	// Issuer is the provider's identifier, an address below which it describes itself. Empty means that there is none.
	Issuer                 string
	ClientID, ClientSecret string
	// Name is what the log-in page calls the provider; empty means the issuer's host.
	Name string
}

// check fails when something is missing. What the provider itself says is looked at with the first log-in: it may be down
// while Entrega starts.
func (o OIDC) check(door *egress.Door) error {
	if o.Issuer == "" {
		return nil
	}
	if u, err := url.Parse(o.Issuer); err != nil || u.Host == "" {
		return fmt.Errorf("the issuer %q is no address such as https://id.example.com", o.Issuer)
	}
	if o.ClientID == "" || o.ClientSecret == "" {
		return errors.New("an issuer needs a client id and a client secret")
	}
	if door == nil {
		return errors.New("an issuer needs a door to be called through")
	}
	return nil
}

// What a log-in by the provider can end in, beside success. Each has a sentence for the person.
var (
	errProviderSilent   = errors.New("the identity provider did not answer")
	errProviderRefused  = errors.New("the identity provider refused")
	errTokenRefused     = errors.New("the identity provider's token cannot be trusted")
	errEmailNotVerified = errors.New("the identity provider does not say that the address is verified")
)

// provider is the identity provider, as far as it is known. It is safe for concurrent use.
type provider struct {
	settings    OIDC
	redirectURL string
	client      *http.Client
	now         func() time.Time

	mu sync.Mutex
	// described is nil until the provider has answered for the first time.
	described *description
}

// description is what the provider says of itself.
type description struct {
	oauth    oauth2.Config
	verifier *oidc.IDTokenVerifier
}

func newProvider(o OIDC, door *egress.Door, publicURL *url.URL, now func() time.Time) *provider {
	if o.Issuer == "" {
		return nil
	}
	return &provider{settings: o, redirectURL: publicURL.String() + views.OIDCCallbackURL(), now: now, client: &http.Client{
		Transport:     door.RoundTripper(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// name is what people call the provider, "" where there is none.
func (p *provider) name() string {
	if p == nil {
		return ""
	}
	if p.settings.Name != "" {
		return p.settings.Name
	}
	return hostOf(p.settings.Issuer)
}

// describe asks the provider once; further log-ins use what it said.
func (p *provider) describe(ctx context.Context) (*description, error) {
	p.mu.Lock()
	known := p.described
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	found, err := oidc.NewProvider(ctx, p.settings.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errProviderSilent, err)
	}
	endpoint := found.Endpoint()
	if endpoint.AuthStyle, err = authStyle(found); err != nil {
		return nil, fmt.Errorf("%w: %w", errProviderSilent, err)
	}
	d := &description{
		oauth: oauth2.Config{ClientID: p.settings.ClientID, ClientSecret: p.settings.ClientSecret, Endpoint: endpoint,
			RedirectURL: p.redirectURL, Scopes: []string{oidc.ScopeOpenID, "email"}},
		verifier: found.Verifier(&oidc.Config{ClientID: p.settings.ClientID, Now: p.now}),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.described = d
	return d, nil
}

// authStyle is how the token endpoint wants the client's secret. Left open, the library would try one way after the other and
// spend the code with the first.
func authStyle(p *oidc.Provider) (oauth2.AuthStyle, error) {
	var says struct {
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := p.Claims(&says); err != nil {
		return 0, err
	}
	// Without a word the default is client_secret_basic (OpenID Connect Discovery 1.0, section 3).
	if len(says.Methods) > 0 && !slices.Contains(says.Methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams, nil
	}
	return oauth2.AuthStyleInHeader, nil
}

// exchange is one log-in under way. Its values live in the browser's session.
type exchange struct {
	state, nonce, verifier string
}

func newExchange() exchange {
	return exchange{state: rand.Text(), nonce: rand.Text(), verifier: oauth2.GenerateVerifier()}
}

// begin is the address that asks the provider who is there.
func (p *provider) begin(ctx context.Context, e exchange) (string, error) {
	d, err := p.describe(oidc.ClientContext(ctx, p.client))
	if err != nil {
		return "", err
	}
	return d.oauth.AuthCodeURL(e.state, oidc.Nonce(e.nonce), oauth2.S256ChallengeOption(e.verifier)), nil
}

// end trades the code for a token, and returns the address that the token vouches for.
func (p *provider) end(ctx context.Context, e exchange, code string) (email string, err error) {
	ctx = oidc.ClientContext(ctx, p.client)
	d, err := p.describe(ctx)
	if err != nil {
		return "", err
	}
	answer, err := d.oauth.Exchange(ctx, code, oauth2.VerifierOption(e.verifier))
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response.StatusCode < http.StatusInternalServerError {
		return "", fmt.Errorf("%w: status %d, %s", errProviderRefused, refused.Response.StatusCode, refused.ErrorCode)
	}
	if err != nil {
		return "", fmt.Errorf("%w: at the exchange: %w", errProviderSilent, err)
	}
	raw, _ := answer.Extra("id_token").(string)
	token, err := d.verifier.Verify(ctx, raw)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errTokenRefused, err)
	}
	if subtle.ConstantTimeCompare([]byte(token.Nonce), []byte(e.nonce)) != 1 {
		return "", fmt.Errorf("%w: it answers another question", errTokenRefused)
	}
	return p.address(token)
}

// address reads who the token is about.
func (p *provider) address(token *oidc.IDToken) (string, error) {
	var claims struct {
		AuthorizedParty string `json:"azp"`
		Email           string `json:"email"`
		// Verified is a boolean, which some providers write as a text.
		Verified any `json:"email_verified"`
	}
	if err := token.Claims(&claims); err != nil {
		return "", fmt.Errorf("%w: %w", errTokenRefused, err)
	}
	// OpenID Connect Core 1.0, section 3.1.3.7, rules 4 and 5.
	if claims.AuthorizedParty != "" && claims.AuthorizedParty != p.settings.ClientID || claims.AuthorizedParty == "" && len(token.Audience) > 1 {
		return "", fmt.Errorf("%w: it was made for somebody else", errTokenRefused)
	}
	if claims.Email == "" || claims.Verified != true && claims.Verified != "true" {
		return "", errEmailNotVerified
	}
	return claims.Email, nil
}
