package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"

	"entrega/migrations"
)

// fingerprint tells schemas apart: by the function that makes them, our migrations, and go.mod, which pins River's.
func fingerprint(migrate Migrate) (string, error) {
	hash := sha256.New()
	io.WriteString(hash, runtime.FuncForPC(reflect.ValueOf(migrate).Pointer()).Name())

	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		return "", fmt.Errorf("list the migrations: %w", err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			return "", fmt.Errorf("read a migration: %w", err)
		}
		fmt.Fprintf(hash, "\n%s %d\n%s", name, len(text), text)
	}

	mod, err := readGoMod()
	if err != nil {
		return "", err
	}
	hash.Write(mod)
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}

// readGoMod finds go.mod in the folder of the package under test or above. A test binary that runs outside the source
// tree has none and does without.
func readGoMod() ([]byte, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find go.mod: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			return text, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read go.mod: %w", err)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil, nil
		}
		dir = parent
	}
}
