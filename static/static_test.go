package static

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, target, encoding string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	if encoding != "" {
		r.Header.Set("Accept-Encoding", encoding)
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

func TestURL_CarriesAHashOfTheContent(t *testing.T) {
	t.Parallel()
	for name, pattern := range map[string]string{
		"panel.css": `^/static/panel\.[0-9a-f]{12}\.css$`,
		"panel.js":  `^/static/panel\.[0-9a-f]{12}\.js$`,
		"icon.svg":  `^/static/icon\.[0-9a-f]{12}\.svg$`,
	} {
		if got := URL(name); !regexp.MustCompile(pattern).MatchString(got) {
			t.Errorf("URL(%q) = %q, want a match of %s", name, got, pattern)
		}
	}
}

func TestHandler_ServesForEverUnderTheHashedName(t *testing.T) {
	t.Parallel()
	for name, contentType := range map[string]string{
		"panel.css": "text/css; charset=utf-8",
		"panel.js":  "text/javascript; charset=utf-8",
		"icon.svg":  "image/svg+xml",
	} {
		plain, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		answer := get(t, URL(name), "")
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusOK || string(body) != string(plain) {
			t.Errorf("%s: status %d, %d bytes, want 200 and the %d embedded ones", name, answer.StatusCode, len(body), len(plain))
		}
		for header, want := range map[string]string{
			"Content-Type":           contentType,
			"Cache-Control":          "public, max-age=31536000, immutable",
			"X-Content-Type-Options": "nosniff",
			"Vary":                   "Accept-Encoding",
		} {
			if got := answer.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
	}
}

func TestHandler_CompressesForThoseWhoAccept(t *testing.T) {
	t.Parallel()
	answer := get(t, URL("panel.css"), "br, gzip;q=0.8")
	if got := answer.Header.Get("Content-Encoding"); got != "gzip" {
		t.Fatalf("Content-Encoding is %q, want gzip", got)
	}
	r, err := gzip.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := files.ReadFile("panel.css")
	if err != nil {
		t.Fatal(err)
	}
	if string(body) != string(plain) {
		t.Error("the decompressed stylesheet differs from the embedded one")
	}
	if got := get(t, URL("panel.css"), "gzip;q=0").Header.Get("Content-Encoding"); got != "" {
		t.Errorf("Content-Encoding is %q for one who refuses gzip, want none", got)
	}
}

func TestHandler_AnyOtherNameIsNotFound(t *testing.T) {
	t.Parallel()
	for _, target := range []string{
		"/static/panel.css", "/static/panel.000000000000.css", "/static/", "/static/../static.go",
		strings.Replace(URL("panel.js"), ".js", ".css", 1),
	} {
		if answer := get(t, target, ""); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", target, answer.StatusCode)
		}
	}
}

// The panel's policy has no 'unsafe-inline' and lets the page talk to its own
// origin alone, so the assets must not reach elsewhere.
func TestAssets_NameNoOtherOrigin(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"panel.css", "panel.js"} {
		content, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "")
		for _, bad := range []string{"http://", "https://", "@import", "innerHTML =", "eval(", ".style."} {
			if strings.Contains(text, bad) {
				t.Errorf("%s contains %q", name, bad)
			}
		}
	}
}
