package tree_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/verify/tree"
)

// The forbidden words are put together here, so that this file stays free of
// them.
const (
	home     = "/" + "home/ana"
	rootHome = "/" + "root/go"
	workdir  = "/" + "work/main"
	users    = "/" + "Users/ana"
	windows  = `C:\` + `Users\ana`
	goProxy  = "proxy." + "golang.org"
	npm      = "registry." + "npmjs.org"
	todo     = "TO" + "DO"
	fixme    = "FIX" + "ME"
	xxx      = "X" + "XX"
)

// sound holds the documents that every tree needs.
func sound(files map[string]string) fstest.MapFS {
	all := fstest.MapFS{
		"CHANGELOG.md":         {Data: []byte("# Changes\n")},
		"docs/architecture.md": {Data: []byte("# Architecture\n")},
	}
	for name, content := range files {
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return all
}

func TestCheck_Words(t *testing.T) {
	t.Parallel()
	const (
		pathRest     = " exists on one machine only; write a path relative to the module or read it from a setting"
		registryRest = " is a package registry; leave the choice to the machine's own settings"
		markerRest   = " names no issue; finish the work, or open an issue and write its number, as in (#12)"
	)
	tests := []struct {
		name    string
		file    string
		content string
		want    []tree.Finding
	}{
		{"HomeFolder_Refused", "README.md", "see\n`" + home + "/entrega`", []tree.Finding{{"README.md", 2, "tree/machine-path: " + home + pathRest}}},
		{"RootFolder_Refused", "a.go", "package a // " + rootHome, []tree.Finding{{"a.go", 1, "tree/machine-path: " + rootHome + pathRest}}},
		{"WorkFolder_Refused", "views/page_templ.go", `FileName: "` + workdir + `/views"`, []tree.Finding{{"views/page_templ.go", 1, "tree/machine-path: " + workdir + pathRest}}},
		{"UsersFolder_Refused", "x.sh", "cd " + users, []tree.Finding{{"x.sh", 1, "tree/machine-path: " + users + pathRest}}},
		{"WindowsFolder_Refused", "x.txt", windows, []tree.Finding{{"x.txt", 1, "tree/machine-path: " + windows + pathRest}}},
		{"RelativeFolder_Accepted", "README.md", "./home/ana ../work/main web/root/x https://example.org" + home + " /usr/lib/postgresql /home /work", nil},
		{"HomebrewFolder_Accepted", "a.go", "package a // /home/linuxbrew/.linuxbrew/opt", nil},

		{"Registry_Refused", ".ci/run", "GOPROXY=https://" + goProxy, []tree.Finding{{".ci/run", 1, "tree/registry-host: " + goProxy + registryRest}}},
		{"NpmRegistry_Refused", "x.json", npm, []tree.Finding{{"x.json", 1, "tree/registry-host: " + npm + registryRest}}},
		{"ModulePath_Accepted", "go.mod", "require golang.org/x/tools v0.52.0", nil},

		{"Marker_RefusedWithoutIssue", "a.sql", "SELECT 1;\n-- " + todo + ": index", []tree.Finding{{"a.sql", 2, "tree/marker: " + todo + markerRest}}},
		{"Marker_RefusedInGoComment", "a.go", "package a\n\n/* one\n" + fixme + " two */\n", []tree.Finding{{"a.go", 4, "tree/marker: " + fixme + markerRest}}},
		{"Marker_RefusedInStyle", "a.css", "/* " + xxx + " */", []tree.Finding{{"a.css", 1, "tree/marker: " + xxx + markerRest}}},
		{"Marker_AcceptedWithIssue", "a.sql", "-- " + todo + "(#12): index", nil},
		{"Marker_AcceptedInGoCode", "a.go", "package a\n\nvar x = \"" + todo + "\"\n", nil},
		{"Marker_AcceptedInOtherWords", "README.md", "context." + todo + " " + xxx + "L", nil},

		{"Binary_Skipped", "docs/a.png", "\x00 " + todo + home, nil},
		{"HiddenFolder_Skipped", ".entrega/log", todo + home, nil},
		{"BinFolder_Skipped", "bin/entrega", todo + home, nil},
		{"CIFolder_Read", ".ci/run", todo, []tree.Finding{{".ci/run", 1, "tree/marker: " + todo + markerRest}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := tree.Check(sound(map[string]string{test.file: test.content}))
			if err != nil {
				t.Fatalf("Check: %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheck_ArchitectureNamesFilesThatExist(t *testing.T) {
	t.Parallel()
	text := "First\n`web/api_event.go:12` and internal/events/relay.go, then migrations/001_store.sql.\n" +
		"[River](https://example.org/riverqueue/river/client.go), any `*_templ.go`, decide.go\n" +
		"(views/task.templ)"
	got, err := tree.Check(sound(map[string]string{
		"docs/architecture.md": text,
		"web/api_event.go":     "package web",
	}))
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	const rest = " is not in the tree; name the file that does this now"
	want := []tree.Finding{
		{"docs/architecture.md", 2, "tree/architecture: internal/events/relay.go" + rest},
		{"docs/architecture.md", 2, "tree/architecture: migrations/001_store.sql" + rest},
		{"docs/architecture.md", 4, "tree/architecture: views/task.templ" + rest},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestCheck_DocumentsMustExist(t *testing.T) {
	t.Parallel()
	got, err := tree.Check(fstest.MapFS{"go.mod": {Data: []byte("module entrega\n")}})
	if err != nil {
		t.Fatalf("Check: %v", err)
	}
	want := []tree.Finding{
		{"CHANGELOG.md", 1, "tree/changelog: CHANGELOG.md is missing; write what changed for users, newest first"},
		{"docs/architecture.md", 1, "tree/architecture: docs/architecture.md is missing; write the walk of one delivery with the names of the files it passes"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
