package localpg

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
)

// MinMajor is the oldest PostgreSQL that Entrega is tested with.
const MinMajor = 15

// ErrNotInstalled says that no usable PostgreSQL server was found. The error around it says how to get one.
var ErrNotInstalled = errors.New("no PostgreSQL server binaries were found")

var versionPattern = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// Installation is a folder with the server binaries of one PostgreSQL version.
type Installation struct {
	Dir   string // holds postgres and initdb
	Major int
}

func (i Installation) postgres() string { return filepath.Join(i.Dir, "postgres") }
func (i Installation) initdb() string   { return filepath.Join(i.Dir, "initdb") }

// packageDirs are where packages put the server binaries, which on most systems is outside PATH.
func packageDirs() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",                      // Debian, Ubuntu
		"/usr/pgsql-*/bin",                               // PostgreSQL's own packages for Red Hat and SUSE
		"/usr/libexec/postgresql*",                       // Alpine
		"/opt/homebrew/opt/postgresql*/bin",              // Homebrew on Apple silicon
		"/usr/local/opt/postgresql*/bin",                 // Homebrew on Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin", // Homebrew on Linux
		"/Applications/Postgres.app/Contents/Versions/*/bin",
	}
}

// Find lists the installed PostgreSQL servers that Entrega can use, the best first: the one on PATH, then the newest.
// With binDir it looks there and nowhere else. It never returns an empty list without an error; the error says what to
// install and wraps ErrNotInstalled.
func Find(binDir string) ([]Installation, error) {
	if binDir != "" {
		found, ok := inspect(binDir)
		if !ok {
			return nil, fmt.Errorf("%w: %s does not hold a working postgres and initdb", ErrNotInstalled, binDir)
		}
		return usable([]Installation{found})
	}

	var found []Installation
	for _, pattern := range packageDirs() {
		dirs, _ := filepath.Glob(pattern) // The patterns are constant and sound.
		for _, dir := range dirs {
			if i, ok := inspect(dir); ok {
				found = append(found, i)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Installation) int { return b.Major - a.Major })
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		if i, ok := inspect(filepath.Dir(path)); ok {
			found = slices.Insert(found, 0, i)
		}
	}
	return usable(found)
}

// inspect asks the postgres in dir for its version. A folder without initdb, or with binaries that do not run here, is
// not an installation.
func inspect(dir string) (Installation, bool) {
	i := Installation{Dir: dir}
	if _, err := exec.LookPath(i.initdb()); err != nil {
		return i, false
	}
	out, err := exec.Command(i.postgres(), "--version").Output()
	if err != nil {
		return i, false
	}
	m := versionPattern.FindSubmatch(out)
	if m == nil {
		return i, false
	}
	i.Major, err = strconv.Atoi(string(m[1]))
	return i, err == nil
}

func usable(found []Installation) ([]Installation, error) {
	newest := 0
	for _, i := range found {
		newest = max(newest, i.Major)
	}
	found = slices.DeleteFunc(found, func(i Installation) bool { return i.Major < MinMajor })
	switch {
	case len(found) > 0:
		return found, nil
	case newest > 0:
		return nil, fmt.Errorf("%w: PostgreSQL %d is installed, but Entrega needs %d or newer; %s, or set DATABASE_URL",
			ErrNotInstalled, newest, MinMajor, installHint())
	default:
		return nil, fmt.Errorf("%w: %s, or set DATABASE_URL", ErrNotInstalled, installHint())
	}
}

func installHint() string {
	if runtime.GOOS == "darwin" {
		return "install postgresql: brew install postgresql@17"
	}
	return "install postgresql: apt-get install postgresql"
}
