package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"entrega/internal/localpg"
)

type options struct {
	test  bool
	pgBin string
}

// need is a program that must be on the machine.
type need struct {
	what string
	// missing is nil when the program is there, else a sentence on how a person would mend it.
	missing func() error
	// packages holds what to install, by package manager.
	packages map[string][]string
}

// needs lists what the product needs, and the tests.
func needs(opts options) []need {
	list := []need{{
		what: "the PostgreSQL server",
		missing: func() error {
			_, err := localpg.Find(opts.pgBin)
			return err
		},
		packages: map[string][]string{apt: {"postgresql"}, brew: {"postgresql@17"}},
	}}
	if !opts.test {
		return list
	}
	return append(list,
		need{
			what:     "a C compiler",
			missing:  oneOf("install a C compiler: apt-get install gcc libc6-dev, or xcode-select --install", "gcc", "clang", "cc"),
			packages: map[string][]string{apt: {"gcc", "libc6-dev"}},
		},
		need{
			what: "Chromium",
			// The names that chromedp looks for.
			missing: oneOf("install Chromium or Google Chrome",
				"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell", "headless_shell",
				"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
				"/Applications/Chromium.app/Contents/MacOS/Chromium"),
			// Without a font of its own it draws boxes.
			packages: map[string][]string{apt: {"chromium", "fonts-liberation"}, brew: {"chromium"}},
		},
		need{
			what:     "npm",
			missing:  oneOf("install Node.js with npm", "npm"),
			packages: map[string][]string{apt: {"nodejs", "npm"}, brew: {"node"}},
		},
	)
}

func oneOf(mend string, programs ...string) func() error {
	return func() error {
		for _, program := range programs {
			if _, err := exec.LookPath(program); err == nil {
				return nil
			}
		}
		return errors.New(mend)
	}
}

// setUp installs what is missing and then looks again, since a package may bring another version than is needed.
func setUp(ctx context.Context, out io.Writer, opts options) error {
	var missing []need
	for _, n := range needs(opts) {
		if n.missing() != nil {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		if err := install(ctx, out, missing); err != nil {
			return err
		}
	}
	if !opts.test {
		return nil
	}
	return installAxe(ctx, out, toolsFolder, execute)
}

func install(ctx context.Context, out io.Writer, missing []need) error {
	m, err := findManager()
	if err != nil {
		for _, n := range missing {
			err = errors.Join(err, fmt.Errorf("%s is missing: %w", n.what, n.missing()))
		}
		return err
	}

	var packages, names []string
	for _, n := range missing {
		packages = append(packages, n.packages[m.name]...)
		names = append(names, n.what)
	}
	if len(packages) > 0 {
		fmt.Fprintf(out, "setup: installing %s (%s)\n", strings.Join(names, ", "), strings.Join(packages, " "))
		err = m.install(ctx, packages)
	}
	for _, n := range missing {
		if lack := n.missing(); lack != nil {
			err = errors.Join(err, fmt.Errorf("%s is still missing: %w", n.what, lack))
		}
	}
	return err
}
