package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// Names of the package managers that we know.
const (
	apt  = "apt"
	brew = "brew"
)

// clusterConfig is where Debian's postgresql-common looks for settings of the cluster that it makes and starts with the
// server package. Ours is private, so that one would only take a port and memory.
const clusterConfig = "/etc/postgresql-common/createcluster.d/entrega.conf"

// runner runs a command, with stdin if it is not nil.
type runner func(ctx context.Context, stdin io.Reader, argv ...string) error

// manager installs packages.
type manager struct {
	name string
	sudo []string // what goes before a command that needs root
	run  runner
}

func findManager() (manager, error) {
	if _, err := exec.LookPath("apt-get"); err == nil {
		m := manager{name: apt, run: execute}
		if os.Geteuid() == 0 {
			return m, nil
		}
		if _, err := exec.LookPath("sudo"); err != nil {
			return manager{}, errors.New("installing needs root, and there is no sudo: run make setup as root once")
		}
		m.sudo = []string{"sudo"}
		return m, nil
	}
	if _, err := exec.LookPath("brew"); err == nil {
		return manager{name: brew, run: execute}, nil
	}
	return manager{}, errors.New("neither apt-get nor brew is here: install with your own package manager what is missing")
}

func (m manager) install(ctx context.Context, packages []string) error {
	if m.name == brew {
		return m.run(ctx, nil, append([]string{"env", "NONINTERACTIVE=1", "HOMEBREW_NO_AUTO_UPDATE=1", "brew", "install", "--quiet"}, packages...)...)
	}

	if slices.Contains(packages, "postgresql") {
		remove, err := m.withoutCluster(ctx)
		if err != nil {
			return err
		}
		defer remove()
	}
	// A list that cannot be fetched, of some other source perhaps, matters only when the packages are not found.
	updateErr := m.aptGet(ctx, "update")
	if err := m.aptGet(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...); err != nil {
		return errors.Join(updateErr, err)
	}
	return nil
}

// aptGet asks no questions, waits for another apt to end, and tries a broken download three times.
func (m manager) aptGet(ctx context.Context, args ...string) error {
	argv := []string{"env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq",
		"-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3", "-o", "Dpkg::Use-Pty=0"}
	return m.run(ctx, nil, slices.Concat(m.sudo, argv, args)...)
}

// withoutCluster keeps Debian from making and starting a cluster of its own during this installation only: whoever
// installs another version later gets what they expect.
func (m manager) withoutCluster(ctx context.Context) (remove func(), err error) {
	root := func(stdin io.Reader, argv ...string) error {
		return m.run(ctx, stdin, slices.Concat(m.sudo, argv)...)
	}
	if err := root(nil, "mkdir", "-p", path.Dir(clusterConfig)); err != nil {
		return nil, err
	}
	if err := root(strings.NewReader("create_main_cluster = false\n"), "tee", clusterConfig); err != nil {
		return nil, err
	}
	return func() {
		_ = root(nil, "rm", "-f", clusterConfig) // Left behind it does little harm.
	}, nil
}

// execute runs a command and shows what it said only when it fails.
func execute(ctx context.Context, stdin io.Reader, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, said.Bytes())
	}
	return nil
}
