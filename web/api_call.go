package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

const (
	// callTimeout ends what a call asks of the database.
	callTimeout = 30 * time.Second
	// bodyTimeout is how long a body may take to arrive, for each MiB that it may have.
	bodyTimeout = 15 * time.Second
)

// call is one request that has passed the guard.
type call struct {
	actor tenant.Actor
	// unproven is the API key where the actor is only remembered: it may be revoked since.
	unproven string
	// body is whole and not decoded; empty when the call takes none.
	body []byte
	// key is the Idempotency-Key, empty without one.
	key       string
	requestID string
}

// project is the one that the key belongs to.
func (c call) project() string { return c.actor.ProjectID }

// decode reads the body into the struct that into points to. No body leaves it as it is: the guard asks for one where it must be.
func (c call) decode(into any) error {
	if len(c.body) == 0 {
		return nil
	}
	return decode(c.body, into)
}

type callKey struct{}

// callIn is what the guard left for the handler.
func callIn(ctx context.Context) call {
	c, _ := ctx.Value(callKey{}).(call)
	return c
}

// guard lets a request through to its handler when its key may do what the call needs, the client takes JSON, and the body is
// there and of the right type. It answers the others.
func (a *api) guard(op operation) func(huma.Context, func(huma.Context)) {
	return func(hc huma.Context, next func(huma.Context)) {
		ec := humaecho.Unwrap(hc)
		ctx, cancel := context.WithTimeout(hc.Context(), callTimeout)
		defer cancel()
		c := call{requestID: requestIDOf(ec)}
		err := a.identify(ctx, op, ec.Request(), &c)
		if err == nil {
			err = op.check(ec.Request(), c.actor)
		}
		if err == nil && op.body != nil {
			c.body, err = op.readBody(ec)
		}
		if err == nil {
			c.key, err = idempotencyKey(ec.Request())
		}
		if err != nil {
			writeProblem(ec, a.problemOf(ctx, c, op.id, cmp.Or(a.prove(ctx, c), err)))
			return
		}
		next(huma.WithContext(hc, context.WithValue(ctx, callKey{}, c)))
	}
}

// identify finds the actor of the request's bearer key (RFC 6750, section 2.1).
func (a *api) identify(ctx context.Context, op operation, r *http.Request, c *call) (err error) {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if scheme == "" {
		return unauthorized(`Bearer realm="Entrega"`, "Send an API key of the project: Authorization: Bearer entrega_…")
	}
	if !strings.EqualFold(scheme, "Bearer") {
		return unauthorized(`Bearer realm="Entrega"`, "The API takes keys as Authorization: Bearer entrega_… and no other scheme.")
	}
	key = strings.TrimSpace(key)
	if op.proves && r.URL.RawQuery == "" { // What the address says is judged by others, who prove nothing.
		if actor, ok := a.keys.Recall(key); ok {
			c.actor, c.unproven = actor, key
			return nil
		}
	}
	c.actor, err = a.authenticate(ctx, key)
	return err
}

// prove makes sure of an actor that is only remembered.
func (a *api) prove(ctx context.Context, c call) error {
	if c.unproven == "" {
		return nil
	}
	_, err := a.authenticate(ctx, c.unproven)
	return err
}

func (a *api) authenticate(ctx context.Context, key string) (tenant.Actor, error) {
	actor, err := a.keys.Authenticate(ctx, key)
	if errors.Is(err, tenant.ErrUnknownKey) {
		return tenant.Actor{}, unauthorized(`Bearer realm="Entrega", error="invalid_token"`, "This API key is wrong or was revoked.")
	}
	return actor, err
}

func unauthorized(challenge, detail string) *problem {
	p := newProblem(http.StatusUnauthorized, "unauthorized", detail)
	p.headers = http.Header{"Www-Authenticate": {challenge}}
	return p
}

// check looks at what can be judged before the body is read.
func (op operation) check(r *http.Request, actor tenant.Actor) error {
	if !actor.Can(op.needs) {
		return op.missingScope(actor)
	}
	if err := checkAddress(r.URL); err != nil {
		return err
	}
	if !acceptsJSON(r.Header.Values("Accept")) {
		return newProblem(http.StatusNotAcceptable, "not_acceptable", "Answers come as application/json; the Accept header must allow that.")
	}
	if op.body == nil || !hasBody(r) {
		return nil
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type", "Send the body as it is, without Content-Encoding.")
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		return newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type", "Send the body as application/json and say so: Content-Type: application/json")
	}
	return nil
}

// checkAddress refuses what no text column can be compared with. No id is like that.
func checkAddress(u *url.URL) error {
	if !isText(u.Path) {
		return store.ErrNotFound
	}
	var bad store.InvalidError
	for name, values := range u.Query() {
		if !slices.ContainsFunc(values, func(v string) bool { return !isText(v) }) {
			continue
		}
		bad.Add(strings.ToValidUTF8(name, "\uFFFD"), "Give UTF-8 text without NUL characters.")
	}
	return bad.OrNil()
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

func (op operation) missingScope(actor tenant.Actor) *problem {
	has := make([]string, len(actor.Scopes))
	for i, s := range actor.Scopes {
		has[i] = string(s)
	}
	p := newProblem(http.StatusForbidden, "missing_scope", fmt.Sprintf("This call needs a key with the scope %s; this key has %s.",
		joinWords(op.scopes(), "or"), joinWords(has, "and")))
	p.headers = http.Header{"Www-Authenticate": {fmt.Sprintf(`Bearer realm="Entrega", error="insufficient_scope", scope="%s"`, op.scopes()[0])}}
	return p
}

// acceptsJSON reads Accept headers (RFC 9110, section 12.5.1). None means that anything is fine.
func acceptsJSON(accept []string) bool {
	if len(accept) == 0 {
		return true
	}
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		media, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		switch media {
		case mediaJSON, "application/*", "*/*":
			if q, err := strconv.ParseFloat(params["q"], 64); err != nil || q > 0 {
				return true
			}
		}
	}
	return false
}

func hasBody(r *http.Request) bool { return r.ContentLength != 0 }

// isJSON takes application/json in UTF-8. A body without a type is taken for JSON: there is nothing else that it could be.
func isJSON(contentType string) bool {
	if contentType == "" {
		return true
	}
	media, params, err := mime.ParseMediaType(contentType)
	charset := params["charset"]
	return err == nil && media == mediaJSON && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// readBody reads the whole body within the call's bounds of size and time.
func (op operation) readBody(ec echo.Context) ([]byte, error) {
	r := ec.Request()
	if r.ContentLength > op.bodyBytes {
		return nil, op.tooLarge()
	}
	control := http.NewResponseController(ec.Response())
	// Where the server cannot set deadlines it has its own.
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout * time.Duration(1+op.bodyBytes>>20)))
	body, err := readUpTo(r, op.bodyBytes+1)
	_ = control.SetReadDeadline(time.Time{})
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return nil, newProblem(http.StatusRequestTimeout, "request_timeout", "The body took too long to arrive.")
	case err != nil:
		return nil, newProblem(http.StatusBadRequest, "malformed_request", "The body broke off or was not sent as HTTP wants it.")
	case int64(len(body)) > op.bodyBytes:
		return nil, op.tooLarge()
	case len(body) == 0 && !op.bodyOptional:
		return nil, &malformedError{"Send a JSON object as the body."}
	}
	return body, nil
}

func (op operation) tooLarge() *problem {
	return newProblem(http.StatusRequestEntityTooLarge, "body_too_large", "The body may take "+inKiB(op.bodyBytes)+" at most.")
}

func readUpTo(r *http.Request, n int64) ([]byte, error) {
	if r.ContentLength < 0 {
		return io.ReadAll(io.LimitReader(r.Body, n))
	}
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	return body, err
}

// maxIdempotencyKey is what events and endpoints keep of a key, less the index that a batch puts behind it.
const maxIdempotencyKey = 240

// idempotencyKey reads the header. An empty one is a mistake: whoever sends it believes to be safe from doing things twice.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	if r.Method != http.MethodPost || len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if len(values) > 1 || key == "" || len(key) > maxIdempotencyKey || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", store.Invalid("Idempotency-Key", fmt.Sprintf("Send one key of 1 to %d visible ASCII characters, or leave the header out.", maxIdempotencyKey))
	}
	return key, nil
}
