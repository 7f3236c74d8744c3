package main

import (
	"fmt"
	"os"
	"path/filepath"

	"entrega/internal/seal"
)

// keyFile is the private mode's key, in the data folder.
const keyFile = "secret.key"

// newBox opens and seals with the configured keys.
func newBox(c Config) (*seal.Box, error) { return seal.New(c.SecretKey, c.OldSecretKeys...) }

// makeKeyFile writes a new key for the private mode. Two processes may race: the file is made complete under another name and linked
// to its own, so that the loser reads the winner's.
func makeKeyFile(file string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".secret-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp.Name())
	if _, err := tmp.WriteString(seal.FormatKey(seal.NewKey()) + "\n"); err != nil {
		return nil, err
	}
	if err := tmp.Sync(); err != nil {
		return nil, err
	}
	if err := tmp.Close(); err != nil {
		return nil, err
	}
	if err := os.Link(tmp.Name(), file); err != nil && !os.IsExist(err) {
		return nil, err
	}
	return os.ReadFile(file)
}
