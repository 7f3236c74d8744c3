package web_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

const (
	clientID     = "entrega"
	clientSecret = "s3cret-&-more"
)

// issuer is an identity provider on loopback, as OpenID Connect Core 1.0 has it. Whoever comes is logged in at once as the
// person that its claims name.
type issuer struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey

	mu sync.Mutex
	// claims are put over those of a proper token; a nil value takes one out.
	claims map[string]any
	// wrongKey signs with a key that is not published, plain with none at all.
	wrongKey, plain bool
	// inParams says that the client's secret is wanted in the form.
	inParams bool
	// down makes every answer of the provider itself a failure.
	down bool
	// codes are those that wait for their exchange, each with its own question.
	codes map[string]question
	// asked counts the exchanges.
	asked int
}

// question is what the browser brought along from the panel.
type question struct{ nonce, challenge, redirectURI string }

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key, claims: map[string]any{}, codes: map[string]question{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.describe)
	mux.HandleFunc("GET /keys", i.keys)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	i.Server = httptest.NewServer(i.mayBeDown(mux))
	t.Cleanup(i.Close)
	return i
}

// set puts a claim into the tokens to come.
func (i *issuer) set(name string, value any) {
	i.change(func() { i.claims[name] = value })
}

func (i *issuer) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

func (i *issuer) mayBeDown(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		down := i.down
		i.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (i *issuer) describe(w http.ResponseWriter, _ *http.Request) {
	methods := []string{"client_secret_basic", "client_secret_post"}
	i.mu.Lock()
	if i.inParams {
		methods = methods[1:]
	}
	i.mu.Unlock()
	i.answer(w, http.StatusOK, map[string]any{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}, "token_endpoint_auth_methods_supported": methods})
}

func (i *issuer) keys(w http.ResponseWriter, _ *http.Request) {
	i.answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]any{"kty": "RSA", "kid": "1", "alg": "RS256", "use": "sig",
		"n": encode(i.key.N.Bytes()), "e": encode(big.NewInt(int64(i.key.E)).Bytes())}}})
}

// authorize sends the browser back with a code, as after a log-in at the provider.
func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name, want := range map[string]string{"response_type": "code", "client_id": clientID, "code_challenge_method": "S256", "scope": "openid email"} {
		if got := q.Get(name); got != want {
			i.t.Errorf("authorize: %s is %q, want %q", name, got, want)
		}
	}
	code := rand.Text()
	i.change(func() { i.codes[code] = question{q.Get("nonce"), q.Get("code_challenge"), q.Get("redirect_uri")} })
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL}}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// token trades a code, once, for whoever proves to have asked for it.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	if i.inParams {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	q, known := i.codes[r.PostFormValue("code")]
	delete(i.codes, r.PostFormValue("code"))
	proof := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !known || id != clientID || secret != clientSecret || encode(proof[:]) != q.challenge || r.PostFormValue("redirect_uri") != q.redirectURI {
		i.answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	i.answer(w, http.StatusOK, map[string]any{"access_token": "unused", "token_type": "Bearer", "id_token": i.sign(q.nonce)})
}

// sign makes a token of this moment. The caller holds the lock.
func (i *issuer) sign(nonce string) string {
	claims := map[string]any{"iss": i.URL, "aud": clientID, "sub": "248289", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
		"nonce": nonce, "email": "rui@acme.example", "email_verified": true}
	maps.Copy(claims, i.claims)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	header := map[string]any{"alg": "RS256", "kid": "1", "typ": "JWT"}
	if i.plain {
		header["alg"] = "none"
		return i.json(header) + "." + i.json(claims) + "."
	}
	key := i.key
	if i.wrongKey {
		var err error
		if key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			i.t.Error(err)
		}
	}
	signed := i.json(header) + "." + i.json(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Error(err)
	}
	return signed + "." + encode(signature)
}

func (i *issuer) json(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		i.t.Error(err)
	}
	return encode(raw)
}

func (i *issuer) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Error(err)
	}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
