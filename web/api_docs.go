package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"entrega/views"
)

const (
	documentPath = "/openapi.json"
	docsPath     = "/docs"
)

// mountDocs serves the document, and a page that shows it without anything from elsewhere. Both are made once: the document
// does not change while the server runs.
func (s *Server) mountDocs(document *huma.OpenAPI) {
	text := documentText(document)
	groups := presentDocument(document)
	s.echo.GET(documentPath, func(c echo.Context) error { return c.Blob(http.StatusOK, mediaJSON, text) })
	s.echo.GET(docsPath, func(c echo.Context) error {
		return s.page(c, http.StatusOK, views.APIDocs(views.APIDocsProps{Layout: s.plainLayout(c, "API"), Text: document.Info.Description,
			DocumentURL: documentPath, Groups: groups}))
	})
}

// documentText is the document as it is served and checked in. It panics on what JSON cannot hold, which the first test finds.
func documentText(document *huma.OpenAPI) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		panic(fmt.Sprintf("web: encode the OpenAPI document: %v", err))
	}
	return text.Bytes()
}

// presentDocument groups the calls by their tags, in the order of the document's list of tags; within a group by path.
func presentDocument(document *huma.OpenAPI) []views.APIGroup {
	p := docsPresenter{document.Components}
	calls := map[string][]views.APICall{}
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, op := range operationsOf(document.Paths[path]) {
			calls[op.Tags[0]] = append(calls[op.Tags[0]], p.call(op))
		}
	}
	groups := make([]views.APIGroup, len(document.Tags))
	for i, tag := range document.Tags {
		groups[i] = views.APIGroup{Name: tag.Name, Text: tag.Description, Calls: calls[tag.Name]}
	}
	return groups
}

// docsPresenter turns calls of the document into props.
type docsPresenter struct{ parts *huma.Components }

func (p docsPresenter) call(op *huma.Operation) views.APICall {
	call := views.APICall{ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, Text: op.Description}
	for _, param := range op.Parameters {
		call.Params = append(call.Params, views.APIField{Name: param.Name, Type: param.In + ", " + p.typeOf(param.Schema), Text: param.Description, Required: param.Required})
	}
	if op.RequestBody != nil {
		call.Body = p.content(op.RequestBody.Content)
		call.Body.Text = op.RequestBody.Description
		if !op.RequestBody.Required {
			call.Body.Text += " It may be left out."
		}
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		response := op.Responses[status]
		if response.Ref != "" {
			response = p.parts.Responses[response.Ref[strings.LastIndexByte(response.Ref, '/')+1:]]
		}
		call.Answers = append(call.Answers, views.APIAnswer{Status: status, Text: response.Description, Content: p.content(response.Content)})
	}
	return call
}

// content shows a JSON body; nil for a problem, which looks the same everywhere.
func (p docsPresenter) content(content map[string]*huma.MediaType) *views.APIContent {
	media := content[mediaJSON]
	if media == nil {
		return nil
	}
	var example bytes.Buffer
	encoder := json.NewEncoder(&example)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(media.Example); err != nil {
		panic(fmt.Sprintf("web: encode an example: %v", err))
	}
	return &views.APIContent{Fields: p.fields("", media.Schema, 0), Example: strings.TrimSpace(example.String())}
}

// maxFieldDepth is how far members of members are listed.
const maxFieldDepth = 3

// fields lists the members of an object, and of the objects in it.
func (p docsPresenter) fields(prefix string, ref *huma.Schema, depth int) []views.APIField {
	if ref.Ref == "" || depth > maxFieldDepth {
		return nil
	}
	s := p.resolve(ref)
	var fields []views.APIField
	for _, name := range memberNames(p.parts.Schemas, ref) {
		property := s.Properties[name]
		fields = append(fields, views.APIField{Name: prefix + name, Type: p.typeOf(property), Text: property.Description, Required: slices.Contains(s.Required, name)})
		inner, suffix := property, "."
		if len(inner.AnyOf) > 0 {
			inner = inner.AnyOf[0]
		}
		if inner.Items != nil {
			inner, suffix = inner.Items, "[]."
		}
		fields = append(fields, p.fields(prefix+name+suffix, inner, depth+1)...)
	}
	return fields
}

// resolve follows references, and passes over the alternative of null.
func (p docsPresenter) resolve(s *huma.Schema) *huma.Schema {
	switch {
	case s.Ref != "":
		return p.parts.Schemas.SchemaFromRef(s.Ref)
	case len(s.AnyOf) > 0:
		return p.resolve(s.AnyOf[0])
	default:
		return s
	}
}

// typeOf words the type of a value.
func (p docsPresenter) typeOf(s *huma.Schema) string {
	null := ""
	if s.Nullable || len(s.AnyOf) > 0 {
		null = " or null"
	}
	s = p.resolve(s)
	switch {
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			words[i] = fmt.Sprint(v)
		}
		return joinWords(words, "or") + null
	case s.Type == "array":
		return "list of " + p.typeOf(s.Items) + null
	case s.Format == "date-time":
		return "instant" + null
	case s.Type == "":
		return "any JSON"
	default:
		return s.Type + null
	}
}
