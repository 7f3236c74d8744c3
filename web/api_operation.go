package web

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"entrega/internal/tenant"
)

// mediaJSON is the one type of bodies, and of answers but problems.
const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
)

// defaultBody bounds the body of calls that do not say otherwise.
const defaultBody = 64 << 10

// operation is one call of the API: its route, whom it is for, and what its documentation says.
type operation struct {
	// id names it in generated clients.
	id, method, path string
	tag              string
	summary          string
	description      string
	// needs is what the key must be allowed.
	needs tenant.Permission
	// proves says that what the call does is done only for a key that is not revoked by then, and that it proves the actor before any other
	// answer. So the key need not be asked for before.
	proves bool
	// body is a value of the type that its body is decoded into; nil means it takes none.
	body         any
	bodyOptional bool
	// bodyBytes bounds the body; 0 means defaultBody.
	bodyBytes int64
	// status is that of success; 0 means 200, or 204 when the answer has no body.
	status int
	// answers describes the statuses of success.
	answers map[int]string
	// conflicts are the codes of its 409s, with what they mean.
	conflicts []conflict
}

// conflict documents one code of a 409.
type conflict struct{ code, meaning string }

// register adds a call to the routes and to the document. handle gets a request that has passed the guard: the key's actor may
// do what the call needs, and the body is read but not decoded.
func register[I, O any](a *api, op operation, handle func(ctx context.Context, c call, in *I) (*O, error)) {
	op.bodyBytes = max(op.bodyBytes, defaultBody)
	documented := huma.Operation{
		OperationID:   op.id,
		Method:        op.method,
		Path:          op.path,
		Tags:          []string{op.tag},
		Summary:       op.summary,
		Description:   op.describe(),
		DefaultStatus: op.status,
		Security:      op.security(),
		Responses:     op.responses(reflect.TypeFor[I]()),
		Middlewares:   huma.Middlewares{a.guard(op)},
	}
	huma.Register(a.huma, documented, func(ctx context.Context, in *I) (*O, error) {
		c := callIn(ctx)
		out, err := handle(ctx, c, in)
		if err != nil {
			return nil, a.problemOf(ctx, c, op.id, err)
		}
		return out, nil
	})
	if op.body != nil {
		// Only now: huma would read and check a body that it knew of.
		a.document(op.path, op.method).RequestBody = a.requestBody(op)
	}
}

// document finds a registered call in the document.
func (a *api) document(path, method string) *huma.Operation {
	item := a.huma.OpenAPI().Paths[path]
	switch method {
	case http.MethodGet:
		return item.Get
	case http.MethodPost:
		return item.Post
	case http.MethodPut:
		return item.Put
	case http.MethodPatch:
		return item.Patch
	case http.MethodDelete:
		return item.Delete
	default:
		panic("web: an API call with method " + method)
	}
}

func (a *api) requestBody(op operation) *huma.RequestBody {
	schema := a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(op.body), true, op.id)
	return &huma.RequestBody{
		Required:    !op.bodyOptional,
		Description: fmt.Sprintf("At most %s.", inKiB(op.bodyBytes)),
		Content:     map[string]*huma.MediaType{mediaJSON: {Schema: schema}},
	}
}

func inKiB(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// describe adds the scopes to the description, for readers of the page.
func (op operation) describe() string {
	return strings.TrimSpace(op.description + "\n\nThe key needs the scope " + joinWords(op.scopes(), "or") + ".")
}

// scopes are those of which a key needs one.
func (op operation) scopes() []string {
	var scopes []string
	for _, s := range tenant.Scopes() {
		if (tenant.Actor{Kind: tenant.ActorAPIKey, ProjectID: "any", Scopes: []tenant.Scope{s}}).Can(op.needs) {
			scopes = append(scopes, string(s))
		}
	}
	return scopes
}

// security names each scope as an alternative of its own: the scopes of one requirement would all be needed.
func (op operation) security() []map[string][]string {
	var alternatives []map[string][]string
	for _, scope := range op.scopes() {
		alternatives = append(alternatives, map[string][]string{securityScheme: {scope}})
	}
	return alternatives
}

// responses lists what the call may answer besides its success, whose content huma fills in.
func (op operation) responses(in reflect.Type) map[string]*huma.Response {
	statuses := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotAcceptable, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusServiceUnavailable}
	if strings.Contains(op.path, "{") {
		statuses = append(statuses, http.StatusNotFound)
	}
	if op.body != nil {
		statuses = append(statuses, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	responses := map[string]*huma.Response{}
	for _, status := range statuses {
		responses[strconv.Itoa(status)] = &huma.Response{Ref: "#/components/responses/" + problemName(status)}
	}
	if len(op.conflicts) > 0 {
		responses[strconv.Itoa(http.StatusConflict)] = op.conflictResponse()
	}
	for status, description := range op.answers {
		responses[strconv.Itoa(status)] = &huma.Response{Description: description}
	}
	return responses
}

func (op operation) conflictResponse() *huma.Response {
	meanings := make([]string, len(op.conflicts))
	for i, c := range op.conflicts {
		meanings[i] = "`" + c.code + "`: " + c.meaning
	}
	example := problem{Status: http.StatusConflict, Code: op.conflicts[0].code, Detail: sentence(op.conflicts[0].meaning)}
	return problemResponse("The present state does not allow it, by `code`.\n\n- "+strings.Join(meanings, "\n- "), example)
}

// sentence gives a phrase a capital and a full stop.
func sentence(phrase string) string {
	return strings.ToUpper(phrase[:1]) + phrase[1:] + "."
}

// joinWords writes "a", "a or b", "a, b or c".
func joinWords(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	head, tail := words[:len(words)-1], words[len(words)-1]
	return strings.Join(slices.Clone(head), ", ") + " " + last + " " + tail
}
