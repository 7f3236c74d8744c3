package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// securityScheme is the name of the one way to log in to the API.
const securityScheme = "apiKey"

// newDocument is the OpenAPI document before any call is in it.
func newDocument() *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:   "Entrega API",
			Version: "1",
			Description: "Publish events, manage the endpoints that get them, and see and act on each delivery. Names are camelCase, instants are RFC 3339 in UTC. " +
				"An API key belongs to one project; ids of other projects read as 404. Bodies are JSON objects whose unknown members are refused; answers may get new members at any time. " +
				"Errors are problems by RFC 9457 with a stable `code`.",
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/", Description: "This installation"}},
		Tags: []*huma.Tag{
			{Name: tagEvents, Description: "What happened, to be delivered to every endpoint that takes it."},
			{Name: tagEndpoints, Description: "Where events go, and how it is doing."},
			{Name: tagDeliveries, Description: "One event on its way to one endpoint, with each attempt."},
			{Name: tagPolicies, Description: "The data that decides about every retry."},
			{Name: tagMail, Description: "Mails about orders, and the evidence of each. Providers send what became of a mail to `POST /v1/mail/feedback/{provider}` (resend, postmark, ses, sendgrid, mailgun, dsn), proven by their own signatures and not by an API key; `?project=` names a project with a transport of its own."},
			{Name: tagAlerts, Description: "What a person should look at. Alerts resolve themselves when their cause is gone; nothing is mailed about them."},
		},
		Components: &huma.Components{
			Schemas:   huma.NewMapRegistry("#/components/schemas/", schemaName),
			Responses: map[string]*huma.Response{},
			SecuritySchemes: map[string]*huma.SecurityScheme{securityScheme: {
				Type: "http", Scheme: "bearer", BearerFormat: "entrega_…",
				Description: "An API key of the project. Its scopes say what it may do: publish, read, or manage, which includes both.",
			}},
		},
	}
}

// finishDocument adds the problems that calls refer to, takes out what huma puts in for its own, and fills in the examples.
func (a *api) finishDocument() {
	document := a.huma.OpenAPI()
	schemas := document.Components.Schemas
	for _, p := range problems {
		document.Components.Responses[problemName(p.status)] = problemResponse(p.description, problem{Status: p.status, Code: p.code, Detail: p.detail})
	}
	problemSchema(schemas)
	delete(schemas.Map(), "ErrorModel")
	delete(schemas.Map(), "ErrorDetail")
	for _, item := range document.Paths {
		for _, op := range operationsOf(item) {
			fillExamples(schemas, op)
		}
	}
}

// problems are the answers that many calls share.
var problems = []struct {
	status                    int
	code, description, detail string
}{
	{http.StatusBadRequest, "malformed_json", "The body is no JSON object, or broke off. Codes: `malformed_json`, `malformed_request`.",
		"The body is not valid JSON: unexpected end of JSON input, at byte 17."},
	{http.StatusUnauthorized, "unauthorized", "There is no API key, or it is wrong or revoked. The header WWW-Authenticate says which.",
		"This API key is wrong or was revoked."},
	{http.StatusForbidden, "missing_scope", "The key has no scope for this call. Codes: `missing_scope`, `forbidden`.",
		"This call needs a key with the scope manage; this key has read."},
	{http.StatusNotFound, "not_found", "The project has nothing with that id.", "This project has nothing with that id."},
	{http.StatusNotAcceptable, "not_acceptable", "The Accept header allows no JSON.",
		"Answers come as application/json; the Accept header must allow that."},
	{http.StatusRequestTimeout, "request_timeout", "The body took too long to arrive.", "The body took too long to arrive."},
	{http.StatusRequestEntityTooLarge, "body_too_large", "The body is larger than the call takes.", "The body may take 256 KiB at most."},
	{http.StatusUnsupportedMediaType, "unsupported_media_type", "The body is not sent as application/json in UTF-8, without Content-Encoding.",
		"Send the body as application/json and say so: Content-Type: application/json"},
	{http.StatusUnprocessableEntity, "invalid", "A field or parameter is unknown, missing or wrong; `errors` names each.",
		"The request cannot be used as it is; see errors."},
	{http.StatusInternalServerError, "internal", "The mistake is ours. The log has it under the `requestId`.",
		"The mistake is ours and was written to the log under this requestId."},
	{http.StatusServiceUnavailable, "unavailable", "The database does not answer. Whether a POST was carried out is not known: send it again with the same id or Idempotency-Key.",
		"The database does not answer right now. Try again in a moment."},
}

// problemName is a shared answer's name in the document, such as NotFound.
func problemName(status int) string { return strings.ReplaceAll(http.StatusText(status), " ", "") }

func problemResponse(description string, example problem) *huma.Response {
	full := newProblem(example.Status, example.Code, example.Detail)
	full.RequestID = "req_01jqz4x1f8e3v9m2c7d5b6a0kt"
	if example.Status == http.StatusUnprocessableEntity {
		full.Errors = []fieldProblem{{Field: "subcriber", Detail: `There is no "subcriber" here. Did you mean subscriber?`}}
	}
	return &huma.Response{
		Description: description,
		Content:     map[string]*huma.MediaType{mediaProblem: {Schema: &huma.Schema{Ref: "#/components/schemas/Problem"}, Example: full}},
	}
}

func operationsOf(item *huma.PathItem) []*huma.Operation {
	var all []*huma.Operation
	for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
		if op != nil {
			all = append(all, op)
		}
	}
	return all
}

// fillExamples gives the bodies of a call the example that the fields' own examples make.
func fillExamples(schemas huma.Registry, op *huma.Operation) {
	if op.RequestBody != nil {
		fillExample(schemas, op.RequestBody.Content[mediaJSON])
	}
	for status, response := range op.Responses {
		if n, err := strconv.Atoi(status); err == nil && n < 300 {
			fillExample(schemas, response.Content[mediaJSON])
		}
	}
}

func fillExample(schemas huma.Registry, media *huma.MediaType) {
	if media != nil && media.Example == nil {
		media.Example = exampleOf(schemas, media.Schema)
	}
}

// exampleOf puts an example together from those of the fields. A field that may be null and has no example is null in it; an
// object that may be missing is left out.
func exampleOf(schemas huma.Registry, s *huma.Schema) any {
	switch {
	case len(s.Examples) > 0:
		return s.Examples[0]
	case s.Ref != "":
		return exampleObject(schemas, schemas.SchemaFromRef(s.Ref), memberNames(schemas, s))
	case len(s.AnyOf) > 0:
		return exampleOf(schemas, s.AnyOf[0])
	case s.Items != nil:
		return []any{exampleOf(schemas, s.Items)}
	default:
		return nil
	}
}

func exampleObject(schemas huma.Registry, s *huma.Schema, names []string) object {
	var example object
	for _, name := range names {
		property := s.Properties[name]
		if property.Ref != "" && !slices.Contains(s.Required, name) {
			continue
		}
		if v := exampleOf(schemas, property); v != nil || property.Nullable {
			example = append(example, objectMember{name, v})
		}
	}
	return example
}

// memberNames are the members of an object that a schema refers to, in the order in which its type declares them.
func memberNames(schemas huma.Registry, s *huma.Schema) []string {
	return namesOf(jsonFields(schemas.TypeFromRef(s.Ref)))
}

// object is a JSON object whose members keep their order.
type object []objectMember

type objectMember struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i, m := range o {
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("encode the example of %s: %w", m.name, err)
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendQuote(text, m.name)
		text = append(append(text, ':'), value...)
	}
	return append(text, '}'), nil
}
