package web

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// schemaName is the name of a type in the document: Event for EventShown, NewEndpoint for newEndpointBody, EventList for
// listBody[EventShown].
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	name, list := strings.CutPrefix(name, "ListBody")
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Shown"), "Body")
	if list {
		name += "List"
	}
	return name
}

// problemSchema puts the problem and its parts among the schemas.
func problemSchema(schemas huma.Registry) {
	schemas.Schema(reflect.TypeFor[problem](), true, "")
}
