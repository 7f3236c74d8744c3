package web

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
)

var update = flag.Bool("update", false, "write docs/openapi.json anew")

const goldenDocument = "../docs/openapi.json"

// newTestAPI has every call and no database: enough for the document.
func newTestAPI() *api {
	a := &api{}
	a.huma = humaecho.New(echo.New(), a.config())
	a.mount()
	return a
}

func TestDocument_IsTheOneCheckedIn(t *testing.T) {
	t.Parallel()
	text := documentText(newTestAPI().huma.OpenAPI())
	if *update {
		if err := os.WriteFile(goldenDocument, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(goldenDocument)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), string(text)); diff != "" {
		t.Fatalf("the API differs from %s; run go test ./web -run TestDocument_IsTheOneCheckedIn -update when that is meant\n%s", goldenDocument, diff)
	}
}

func TestDocument_EveryReferenceLeadsSomewhere(t *testing.T) {
	t.Parallel()
	document := newTestAPI().huma.OpenAPI()
	var tree any
	if err := json.Unmarshal(documentText(document), &tree); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	walk(tree, func(object map[string]any) {
		ref, ok := object["$ref"].(string)
		if !ok {
			return
		}
		used[ref] = true
		at := tree
		for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
			at = at.(map[string]any)[part]
		}
		if at == nil {
			t.Errorf("%s leads nowhere", ref)
		}
	})
	for name := range document.Components.Schemas.Map() {
		if !used["#/components/schemas/"+name] {
			t.Errorf("nothing refers to the schema %s", name)
		}
	}
}

func walk(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(v)
		for _, inner := range v {
			walk(inner, visit)
		}
	case []any:
		for _, inner := range v {
			walk(inner, visit)
		}
	}
}

func TestDocument_EveryCallIsDescribed(t *testing.T) {
	t.Parallel()
	a := newTestAPI()
	document := a.huma.OpenAPI()
	params := regexp.MustCompile(`\{(\w+)\}`)
	for path, item := range document.Paths {
		for _, op := range operationsOf(item) {
			name := op.Method + " " + path
			if op.OperationID == "" || op.Summary == "" || op.Description == "" || len(op.Tags) != 1 || len(op.Security) == 0 {
				t.Errorf("%s lacks an id, a summary, a description, a tag or scopes", name)
			}
			declared := map[string]bool{}
			for _, p := range op.Parameters {
				declared[p.In+" "+p.Name] = true
				if p.Description == "" || len(p.Schema.Examples) == 0 && p.Schema.Default == nil {
					t.Errorf("%s: the parameter %s has no description or no example", name, p.Name)
				}
			}
			for _, m := range params.FindAllStringSubmatch(path, -1) {
				if !declared["path "+m[1]] {
					t.Errorf("%s does not declare {%s}", name, m[1])
				}
			}
			for status, response := range op.Responses {
				if response.Ref == "" && response.Description == "" {
					t.Errorf("%s does not describe %s", name, status)
				}
				for media, content := range response.Content {
					if content.Schema == nil || content.Example == nil {
						t.Errorf("%s: %s as %s has no schema or no example", name, status, media)
					}
				}
			}
			for _, status := range []string{"401", "403", "406", "422", "500", "503"} {
				if op.Responses[status] == nil {
					t.Errorf("%s does not mention %s", name, status)
				}
			}
		}
	}
}

// The examples are what people copy, so that they must hold to the schema, with all that it requires.
func TestDocument_EveryExampleFitsItsSchema(t *testing.T) {
	t.Parallel()
	document := newTestAPI().huma.OpenAPI()
	fits := func(name string, mode huma.ValidateMode, media *huma.MediaType) {
		t.Helper()
		if media == nil {
			return
		}
		raw, err := json.Marshal(media.Example)
		if err != nil {
			t.Fatal(err)
		}
		var example any
		if err := json.Unmarshal(raw, &example); err != nil {
			t.Fatal(err)
		}
		var result huma.ValidateResult
		huma.Validate(document.Components.Schemas, media.Schema, huma.NewPathBuffer(nil, 0), mode, example, &result)
		for _, err := range result.Errors {
			t.Errorf("%s: %v in %s", name, err, raw)
		}
	}
	for path, item := range document.Paths {
		for _, op := range operationsOf(item) {
			name := op.Method + " " + path
			if op.RequestBody != nil {
				fits(name+" body", huma.ModeWriteToServer, op.RequestBody.Content[mediaJSON])
			}
			for status, response := range op.Responses {
				fits(name+" "+status, huma.ModeReadFromServer, response.Content[mediaJSON])
				fits(name+" "+status, huma.ModeReadFromServer, response.Content[mediaProblem])
			}
		}
	}
	for name, response := range document.Components.Responses {
		fits(name, huma.ModeReadFromServer, response.Content[mediaProblem])
	}
}

// Whatever a body's schema names is taken by the decoder, and nothing else.
func TestDocument_BodiesAreReadAsTheirSchemasSay(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(namesOf(jsonFields(reflect.TypeFor[publishBody]())), eventFields); diff != "" {
		t.Error(diff)
	}
	document := newTestAPI().huma.OpenAPI()
	example, err := json.Marshal(document.Paths["/v1/events"].Post.RequestBody.Content[mediaJSON].Example)
	if err != nil {
		t.Fatal(err)
	}
	event, err := decodeEvent(example)
	if err != nil || event.Type == "" || event.ID == "" || event.Subscriber == "" || event.OccurredAt.IsZero() || event.ExpiresAt.IsZero() ||
		len(event.Metadata) == 0 || len(event.Data) == 0 {
		t.Errorf("%+v, %v", event, err)
	}
	for _, s := range document.Components.Schemas.Map() {
		if s.AdditionalProperties == false && len(s.Properties) == 0 {
			t.Errorf("a body takes nothing: %+v", s)
		}
	}
}
