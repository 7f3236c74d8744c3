package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"entrega/internal/localpg/postmaster"
)

// serverConfig is written once, when a durable cluster is made, and belongs to the person who runs it from then on.
const serverConfig = `
# Set by Entrega when it made this cluster. Change what you like: it is not written again.
max_connections = 200
shared_buffers = 256MB
max_wal_size = 2GB
# The files of the log that a flood has made are used again by the next: to make one holds up all who commit for some 50 ms.
min_wal_size = 1GB
checkpoint_timeout = 15min
random_page_cost = 1.1
autovacuum_naptime = 15s
jit = off
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] '
`

// volatileSettings trade every promise about a crash for speed.
func volatileSettings() map[string]string {
	return map[string]string{
		"fsync":              "off",
		"synchronous_commit": "off",
		"full_page_writes":   "off",
		"wal_level":          "minimal",
		"max_wal_senders":    "0",
		"max_connections":    "300",
	}
}

// cluster is the files of one PostgreSQL and what is needed to run it.
type cluster struct {
	data    string // the folder that initdb makes, free of symbolic links
	log     string
	account account
	install Installation
	opts    Options
}

// openCluster finds the binaries and the files, and makes the cluster when there is none. The caller holds the gate.
func openCluster(ctx context.Context, opts Options) (*cluster, error) {
	installs, err := Find(opts.BinDir)
	if err != nil {
		return nil, err
	}
	c := &cluster{
		log:     filepath.Join(opts.Dir, logFile),
		install: installs[0],
		opts:    opts,
	}
	if c.account, err = accountFor(filepath.Join(opts.Dir, "pg")); err != nil {
		return nil, err
	}
	if err := c.account.check(ctx, c.install); err != nil {
		return nil, err
	}
	root, err := settle(ctx, opts.Dir, c.account, c.install)
	if err != nil {
		return nil, err
	}
	c.data = filepath.Join(root, "pg")

	version, err := os.ReadFile(filepath.Join(c.data, "PG_VERSION"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, c.init(ctx)
	case err != nil:
		return nil, fmt.Errorf("read the version of the private postgres: %w", err)
	}
	return c, c.matchVersion(strings.TrimSpace(string(version)), installs)
}

// matchVersion picks the installation that can read the files: another major version cannot.
func (c *cluster) matchVersion(version string, installs []Installation) error {
	major, err := strconv.Atoi(version)
	if err != nil {
		return fmt.Errorf("%s holds %q instead of a version: restore the folder from a backup", c.data, version)
	}
	for _, i := range installs {
		if i.Major == major {
			c.install = i
			return nil
		}
	}
	return fmt.Errorf("the data in %s was written by PostgreSQL %d, but only %d is installed: install postgresql-%d, "+
		"or upgrade the data with pg_upgrade", c.data, major, installs[0].Major, major)
}

// init makes the cluster beside its final place and renames it, so that a run cut short leaves nothing half made.
func (c *cluster) init(ctx context.Context) error {
	fresh := c.data + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("clear a half-made cluster: %w", err)
	}
	if err := c.account.mkdir(fresh); err != nil {
		return err
	}

	args := []string{"--pgdata", fresh, "--username", superuser, "--encoding", "UTF8", "--locale", "C",
		"--auth-local", "trust", "--auth-host", "reject", "--no-instructions"}
	if c.opts.Volatile {
		args = append(args, "--no-sync")
	} else {
		args = append(args, "--data-checksums")
	}
	cmd := c.account.command(ctx, c.install.initdb(), args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("make a postgres cluster in %s: %w: %s", fresh, err, lastLine(out))
	}

	if !c.opts.Volatile {
		if err := appendTo(filepath.Join(fresh, "postgresql.conf"), serverConfig); err != nil {
			return fmt.Errorf("configure the private postgres: %w", err)
		}
	}
	// An empty pg folder, made by a person or a volume, is in the way of the rename.
	if err := os.Remove(c.data); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there but holds no postgres cluster, move it away: %w", c.data, err)
	}
	if err := os.Rename(fresh, c.data); err != nil {
		return fmt.Errorf("put the new cluster in place: %w", err)
	}
	return nil
}

// command is the server's command line. Only what keeps it private is set here, so that the configuration file decides
// the rest.
func (c *cluster) command(ctx context.Context, socketDir string) *exec.Cmd {
	settings := map[string]string{
		"listen_addresses":        "",
		"port":                    port,
		"unix_socket_directories": socketDir,
		"unix_socket_permissions": "0700",
		"logging_collector":       "off",
		"cluster_name":            "entrega",
	}
	if c.opts.Volatile {
		for name, value := range volatileSettings() {
			settings[name] = value
		}
	}
	for name, value := range c.opts.Settings {
		settings[name] = value
	}
	args := []string{"-D", c.data}
	for name, value := range settings {
		args = append(args, "-c", name+"="+value)
	}
	cmd := c.account.command(ctx, c.install.postgres(), args...)
	cmd.SysProcAttr.Setsid = true
	return cmd
}

// attach returns the server that already runs on the cluster of dir, once it answers, or nil when none runs. It starts no
// program, so that coming second costs next to nothing.
func attach(ctx context.Context, dir string) (*process, error) {
	data, err := filepath.EvalSymlinks(filepath.Join(dir, "pg"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explainPermission(dir, fmt.Errorf("find the private postgres: %w", err))
	}

	var found *process
	err = await(ctx, pollStart, func() (bool, error) {
		p, ok := postmaster.Find(data)
		if !ok || !p.Alive() {
			return true, nil
		}
		if answers(ctx, p.SocketDir) {
			found = follow(p)
			return true, nil
		}
		return false, nil
	})
	if err != nil {
		return nil, fmt.Errorf("a postgres runs on %s but does not answer, see %s: %w", data, filepath.Join(dir, logFile), err)
	}
	return found, nil
}

// launch starts the server and waits until it answers. The caller has made sure that none runs.
func (c *cluster) launch(ctx context.Context) (*process, error) {
	// What is left of a killed server would stop the next one when its process id is in use again or not yet reaped.
	// The server itself refuses to share its memory with one that still lives.
	err := os.Remove(filepath.Join(c.data, postmaster.PIDFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove a stale %s: %w", postmaster.PIDFile, err)
	}
	socketDir, err := c.socketDir(ctx)
	if err != nil {
		return nil, err
	}
	if err := rotate(c.log); err != nil {
		return nil, fmt.Errorf("rotate the postgres log: %w", err)
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the postgres log: %w", err)
	}
	defer log.Close()

	var proc *process
	err = await(ctx, pollLeftover, func() (bool, error) {
		from, err := log.Seek(0, io.SeekEnd)
		if err != nil {
			return false, fmt.Errorf("read the postgres log: %w", err)
		}
		cmd := c.command(context.WithoutCancel(ctx), socketDir)
		cmd.Stdout, cmd.Stderr = log, log
		if proc, err = spawn(cmd, c.data, socketDir); err != nil {
			return false, err
		}
		if err := proc.ready(ctx); err == nil {
			return true, nil
		}
		_ = proc.signal(syscall.SIGQUIT) // It is gone already, or must go.
		<-proc.done
		if ctx.Err() != nil {
			return false, fmt.Errorf("postgres did not start in time (see %s): %w", c.log, ctx.Err())
		}
		said := logSince(c.log, from)
		// A backend that outlived its killed server keeps the shared memory until it notices, a moment later.
		if strings.Contains(said, "is still in use") {
			return false, nil
		}
		return false, fmt.Errorf("postgres did not start: %s (see %s)", reason(said), c.log)
	})
	if err != nil {
		return nil, err
	}
	return proc, nil
}
