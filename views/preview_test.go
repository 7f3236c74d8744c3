package views

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestPages_WeighUnder100KB also writes each page beside the assets, into the
// folder that ENTREGA_PREVIEW names or else a temporary one, to be looked at.
func TestPages_WeighUnder100KB(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("ENTREGA_PREVIEW")
	if dir == "" {
		dir = t.TempDir()
	}
	assets := 0
	for _, name := range []string{"panel.css", "panel.js", "icon.svg"} {
		content, err := os.ReadFile(filepath.Join("..", "static", name))
		if err != nil {
			t.Fatal(err)
		}
		assets += len(content)
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pages := allSamplePages(plainText)
	full := sampleTasks(plainText)
	for len(full.Rows) < 50 {
		full.Rows = append(full.Rows, full.Rows[0])
	}
	pages = append(pages, sample{"tasks-full", Tasks(full)})
	for _, s := range pages {
		var b bytes.Buffer
		if err := s.page.Render(context.Background(), &b); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, s.name+".html"), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		if total := b.Len() + assets; total > 100_000 {
			t.Errorf("%s weighs %d bytes with its assets, want 100,000 at most", s.name, total)
		}
		t.Logf("%s: %d bytes, %d with assets", s.name, b.Len(), b.Len()+assets)
	}
}
