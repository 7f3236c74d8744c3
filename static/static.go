// Package static holds the panel's stylesheet, its one script and its icon, and
// serves them under names that carry a hash of their content, so that browsers
// may keep them for ever. It only embeds and knows nothing of the pages.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed panel.css panel.js icon.svg
var files embed.FS

// Prefix is where Handler must be mounted.
const Prefix = "/static/"

// file is one embedded file as it is served.
type file struct {
	name        string // with the hash
	contentType string
	plain, gzip []byte
}

// index holds the files by their plain and by their hashed names. It is built on
// first use from what was embedded and never changes.
var index = sync.OnceValue(func() map[string]*file {
	named := map[string]*file{}
	for _, name := range []string{"panel.css", "panel.js", "icon.svg"} {
		f := load(name)
		named[name], named[f.name] = f, f
	}
	return named
})

func load(name string) *file {
	plain, err := files.ReadFile(name)
	if err != nil {
		panic("static: " + err.Error()) // the embed directive and the list of names differ
	}
	sum := sha256.Sum256(plain)
	ext := path.Ext(name)
	return &file{
		name:        strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext,
		contentType: contentType(ext),
		plain:       plain,
		gzip:        compress(plain),
	}
}

func contentType(ext string) string {
	switch ext {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	default:
		return "image/svg+xml"
	}
}

func compress(plain []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(plain)                                 // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// URL is the address of an embedded file, for example "panel.css". A name that
// is not embedded gets an address that answers 404.
func URL(name string) string {
	if f, ok := index()[name]; ok {
		return Prefix + f.name
	}
	return Prefix + name
}

// Handler serves the files below Prefix under their hashed names only; any other
// name is 404, so that an old page never gets a newer file under its old name.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, Prefix)
		f, ok := index()[name]
		if !ok || f.name != name {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.contentType)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Vary", "Accept-Encoding")
		body := f.plain
		if acceptsGzip(r) {
			h.Set("Content-Encoding", "gzip")
			body = f.gzip
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	})
}

// acceptsGzip reads Accept-Encoding; a quality of zero refuses.
func acceptsGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, quality, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(coding) != "gzip" {
			continue
		}
		q := strings.TrimSpace(quality)
		return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
	}
	return false
}
