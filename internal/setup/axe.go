package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	toolsFolder = ".tools"
	axeVersion  = "4.14.1"
)

// installAxe puts axe-core, which checks pages for accessibility, into the folder tools, unless that version is there.
func installAxe(ctx context.Context, out io.Writer, tools string, run runner) error {
	if axeInstalled(tools) == axeVersion {
		return nil
	}
	fmt.Fprintf(out, "setup: installing axe-core %s into %s\n", axeVersion, tools)
	err := run(ctx, nil, "npm", "install", "--prefix", tools, "--no-audit", "--no-fund", "--no-update-notifier",
		"--ignore-scripts", "--loglevel=error", "axe-core@"+axeVersion)
	if err != nil {
		return err
	}
	if got := axeInstalled(tools); got != axeVersion {
		return fmt.Errorf("npm installed axe-core %q instead of %s: remove %s and try again", got, axeVersion, tools)
	}
	return nil
}

// axeInstalled returns the version that is in place, or "".
func axeInstalled(tools string) string {
	folder := filepath.Join(tools, "node_modules", "axe-core")
	if _, err := os.Stat(filepath.Join(folder, "axe.min.js")); err != nil {
		return ""
	}
	raw, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err != nil {
		return ""
	}
	var manifest struct {
		Version string `json:"version"`
	}
	if json.Unmarshal(raw, &manifest) != nil {
		return ""
	}
	return manifest.Version
}
