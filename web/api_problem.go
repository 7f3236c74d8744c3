package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// problem is an error as the API tells it (RFC 9457).
type problem struct {
	Type      string         `json:"type" doc:"Always about:blank: the code tells what happened." example:"about:blank"`
	Title     string         `json:"title" doc:"The status in words." example:"Unprocessable Entity"`
	Status    int            `json:"status" doc:"The status code of the answer." example:"422"`
	Detail    string         `json:"detail" doc:"What happened and what to do, in a sentence for a person." example:"The request cannot be used as it is; see errors."`
	Code      string         `json:"code" doc:"What happened, for programs. A code never changes its meaning." example:"invalid"`
	Errors    []fieldProblem `json:"errors" nullable:"false" doc:"What is wrong with single fields or parameters; empty when it is not about those."`
	RequestID string         `json:"requestId" doc:"Names this request in the server's log; also in the header X-Request-Id." example:"req_01jqz4x1f8e3v9m2c7d5b6a0kt"`

	headers http.Header
}

// fieldProblem is what is wrong with one field.
type fieldProblem struct {
	Field  string `json:"field" doc:"The field or parameter, with dots and indexes for inner ones." example:"url"`
	Detail string `json:"detail" doc:"A sentence for a person." example:"The URL must start with https://."`
}

func (p *problem) Error() string { return p.Detail }

// GetStatus tells huma the status.
func (p *problem) GetStatus() int { return p.Status }

// GetHeaders tells huma the headers.
func (p *problem) GetHeaders() http.Header { return p.headers }

// ContentType tells huma the media type.
func (p *problem) ContentType(string) string { return mediaProblem }

func newProblem(status int, code, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code, Errors: []fieldProblem{}}
}

// codes are those of problems that have none of their own.
var codes = map[int]string{
	http.StatusBadRequest:            "malformed_request",
	http.StatusForbidden:             "forbidden",
	http.StatusNotFound:              "not_found",
	http.StatusMethodNotAllowed:      "method_not_allowed",
	http.StatusConflict:              "conflict",
	http.StatusRequestEntityTooLarge: "body_too_large",
	http.StatusUnprocessableEntity:   "invalid",
	http.StatusTooManyRequests:       "too_many_requests",
	http.StatusServiceUnavailable:    "unavailable",
}

func codeOf(status int) string {
	switch code := codes[status]; {
	case code != "":
		return code
	case status < http.StatusInternalServerError:
		return "malformed_request"
	default:
		return "internal"
	}
}

// problemFor is the problem that an error of the domain reads as. Status and sentence are those of the panel; the code, and what
// is wrong with each field, are only for the API.
func problemFor(err error) *problem {
	var own *problem
	var malformed *malformedError
	var invalid *store.InvalidError
	var conflicting *store.ConflictError
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &malformed):
		return newProblem(http.StatusBadRequest, "malformed_json", malformed.sentence)
	case errors.As(err, &invalid):
		return invalidProblem(invalid)
	case errors.As(err, &conflicting):
		return newProblem(http.StatusConflict, conflicting.Code, conflicting.Sentence)
	case errors.Is(err, store.ErrNotFound):
		return newProblem(http.StatusNotFound, "not_found", "This project has nothing with that id.")
	case errors.Is(err, tenant.ErrForbidden):
		return newProblem(http.StatusForbidden, "forbidden", "This key may not do that.")
	default:
		return problemOfAnswer(answerOf(err))
	}
}

func invalidProblem(invalid *store.InvalidError) *problem {
	p := newProblem(http.StatusUnprocessableEntity, "invalid", "The request cannot be used as it is; see errors.")
	if len(invalid.Fields) == 1 {
		p.Detail = invalid.Fields[0].Field + ": " + invalid.Fields[0].Sentence
	}
	for _, f := range invalid.Fields {
		p.Errors = append(p.Errors, fieldProblem{Field: f.Field, Detail: f.Sentence})
	}
	return p
}

// problemOfAnswer words as a problem what the panel would answer as a page: what no handler of the API got to see, and mistakes.
func problemOfAnswer(a answer) *problem {
	p := newProblem(a.status, codeOf(a.status), a.sentence)
	switch a.status {
	case http.StatusNotFound:
		p.Detail = "The API has no such call. GET " + documentPath + " lists them, " + docsPath + " explains them."
	case http.StatusMethodNotAllowed:
		p.Detail = "This address does not take that method; the header Allow names those it takes."
	case http.StatusInternalServerError:
		p.Detail = "The mistake is ours and was written to the log under this requestId."
	}
	if a.retryAfter > 0 {
		p.headers = http.Header{"Retry-After": {fmt.Sprint(wholeSeconds(a.retryAfter))}}
	}
	return p
}

// problemOf is problemFor with a line in the log for what is our mistake.
func (a *api) problemOf(ctx context.Context, c call, operation string, err error) *problem {
	p := problemFor(err)
	if p.Status >= http.StatusInternalServerError && !errors.Is(ctx.Err(), context.Canceled) {
		a.log.ErrorContext(ctx, "an API call failed", "request_id", c.requestID, "project_id", c.project(), "operation", operation, "error", err)
	}
	return p
}

// finishProblem gives a problem its request's id, and rewords what huma itself refuses: parameters, before any handler runs.
func (a *api) finishProblem(ctx huma.Context, _ string, v any) (any, error) {
	if model, ok := v.(*huma.ErrorModel); ok {
		v = problemOfParams(ctx.Operation(), model)
	}
	if p, ok := v.(*problem); ok {
		p.RequestID = requestIDOf(humaecho.Unwrap(ctx))
		return p, nil
	}
	return v, nil
}

// problemOfParams names what is wrong with query parameters. Their sentences come from the document.
func problemOfParams(op *huma.Operation, model *huma.ErrorModel) *problem {
	if model.Status != http.StatusUnprocessableEntity {
		return newProblem(model.Status, codeOf(model.Status), sentence(model.Detail))
	}
	var bad store.InvalidError
	for _, e := range model.Errors {
		name := e.Location[strings.LastIndexByte(e.Location, '.')+1:]
		bad.Add(name, paramSentence(op, name))
	}
	return invalidProblem(&bad)
}

// writeProblem answers outside of huma.
func writeProblem(c echo.Context, p *problem) {
	p.RequestID = requestIDOf(c)
	h := c.Response().Header()
	for name, values := range p.headers {
		h[name] = values
	}
	if p.Status == http.StatusRequestTimeout || p.Status == http.StatusRequestEntityTooLarge {
		h.Set("Connection", "close") // What is left of the body is not read.
	}
	h.Set(echo.HeaderContentType, mediaProblem)
	c.Response().WriteHeader(p.Status)
	_ = encode(c.Response(), p) // Nobody is left to tell.
}
