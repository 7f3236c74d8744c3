package imports

import "entrega/internal/verify/ours"

// Level is a package's height. A package may import what stands strictly below
// it, never what stands beside it.
type Level int

// The levels of the architecture, lowest first. The numbers leave room between
// neighbours; only their order means something.
const (
	// Leaf packages import none of ours.
	Leaf   Level = 0
	Store  Level = 20
	Tenant Level = 30
	Jobs   Level = 40
	Events Level = 50
	// Domain holds alerts, webhooks, mailer and search, which stand side by side.
	Domain Level = 60
	Web    Level = 70
	Cmd    Level = 80
	// Tool packages check the tree. They import none of ours but each other, and
	// nothing imports them.
	Tool Level = 100
)

// Place gives a folder, with all that lies below it, its level.
type Place struct {
	Path  string
	Level Level
}

// tableFile is named in messages, so that whoever adds a package finds the list.
const tableFile = "internal/verify/imports/table.go"

// table lists every folder that may hold Go packages. A new folder under
// internal/ is refused until it stands here: its height is a decision.
var table = []Place{
	{"cmd", Cmd},
	{"internal/setup", Cmd}, // a command of the Makefile, which asks localpg what is installed
	{"web", Web},
	{"internal/alerts", Domain},
	{"webhooks", Domain},
	{"mailer", Domain},
	{"internal/search", Domain},
	{"internal/events", Events},
	{"jobs", Jobs},
	{"internal/tenant", Tenant},
	{"internal/store", Store},
	{"views", Leaf},
	{"static", Leaf},
	{"migrations", Leaf},
	{"internal/egress", Leaf},
	{"internal/localpg", Leaf},
	{"internal/seal", Leaf},
	{"internal/verify", Tool},
}

// reservation says that some packages from elsewhere have one importer.
type reservation struct {
	prefix string
	owner  string
	why    string
}

// reservations names the libraries that only one of our packages may see.
// Adapters count as the library that they adapt, for they hand out its types.
var reservations = []reservation{
	{"github.com/labstack/echo", "web", "the rest of the code knows nothing of HTTP routing"},
	{"github.com/danielgtaylor/huma/v2/adapters/humaecho", "web", "it hands out echo's types"},
	{"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo", "web", "it hands out echo's types"},
	{"github.com/riverqueue", "jobs", "kinds, decisions and task states have one home"},
}

// schemaOwner is the package that brings a database to its schema, River's part included. External tests of the packages
// below it may import it for that.
const schemaOwner = "jobs"

// viewsMayImport lists, beside the standard library, what views may import.
var viewsMayImport = []string{"github.com/a-h/templ"}

// placeOf returns the entry that holds the package at the module-relative path
// rel.
func placeOf(rel string) (Place, bool) {
	for _, place := range table {
		if ours.Under(rel, place.Path) {
			return place, true
		}
	}
	return Place{}, false
}
