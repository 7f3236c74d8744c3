// Package localpg runs a private PostgreSQL from the server binaries that the machine has, for `entrega serve` without
// DATABASE_URL and for tests. It owns the cluster's files, its process and who may stop it; it knows nothing of what is
// stored inside.
//
// The server listens on a unix socket only, in a folder that only its own user can enter. It runs in a session of its
// own, so a Ctrl-C in the terminal reaches Entrega and not the database it is still draining into.
//
// Any number of processes share one server. Each holds a shared lock on pg.users while it uses it, and the last to leave
// stops it. The kernel drops the locks of a process that was killed, so a server that lost its starter is simply taken
// over by the next one. Starting and stopping happen under the exclusive lock pg.lock.
package localpg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"entrega/internal/localpg/flock"
)

const (
	// Database is the database that Start makes, and superuser the role that owns it.
	Database  = "entrega"
	superuser = "entrega"

	// port only names the socket file: nothing listens on TCP.
	port = "5432"

	gateFile  = "pg.lock"
	usersFile = "pg.users"
	logFile   = "pg.log"

	// startTimeout leaves room for the recovery of a large database after a crash.
	startTimeout = 3 * time.Minute
)

// Options says where the cluster lives. Only Dir is required.
type Options struct {
	// Dir is the data folder. The cluster lives in its pg folder and logs to its pg.log.
	Dir string
	// BinDir holds the server binaries; when empty they are searched for, see Find.
	BinDir string
	// Volatile gives up every promise to survive a crash, for tests. It matters only to the process that starts the server.
	Volatile bool
	// Settings are further server settings, which win over the configuration file.
	Settings map[string]string
	// Logger receives a line on start, attach and stop; nil means none.
	Logger *slog.Logger
}

// Server is a running PostgreSQL that this process uses. Its methods are safe for concurrent use.
type Server struct {
	// Owned reports that no other process was using the server when this one came: it started it, or found it left
	// behind and took it over. Whoever leaves last stops it, whether it owned it or not.
	Owned bool
	// SocketDir is the folder of the unix socket.
	SocketDir string

	dir     string
	proc    *process
	users   *flock.File
	log     *slog.Logger
	leaving sync.Once
	left    error
}

// Start returns the server of opts.Dir: the one that runs there already, or a new one, whose cluster it makes on first
// use. It returns when the server answers and the database "entrega" exists. ctx bounds the start, not the server's life.
func Start(ctx context.Context, opts Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the data folder: %w", err)
	}
	opts.Dir, opts.Logger = dir, cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))

	gate, err := flock.Exclusive(ctx, filepath.Join(dir, gateFile))
	if err != nil {
		return nil, explainPermission(dir, err)
	}
	defer gate.Close()
	users, err := flock.Open(filepath.Join(dir, usersFile))
	if err != nil {
		return nil, explainPermission(dir, err)
	}

	s, err := start(ctx, opts, users)
	if err != nil {
		users.Close()
		return nil, err
	}
	return s, nil
}

// start runs under the gate, so nobody else decides about the server meanwhile.
func start(ctx context.Context, opts Options, users *flock.File) (*Server, error) {
	alone, err := users.TryExclusive()
	if err != nil {
		return nil, err
	}

	proc, err := attach(ctx, opts.Dir)
	if err != nil {
		return nil, err
	}
	attached := proc != nil
	if !attached {
		c, err := openCluster(ctx, opts)
		if err != nil {
			return nil, err
		}
		if proc, err = c.launch(ctx); err != nil {
			return nil, err
		}
	}
	s := &Server{Owned: alone, SocketDir: proc.SocketDir, dir: opts.Dir, proc: proc, users: users, log: opts.Logger}
	if err := ensureDatabase(ctx, s); err != nil {
		if alone {
			proc.shutdown(ctx)
		}
		return nil, err
	}

	held, err := users.TryShared()
	if err != nil {
		return nil, err
	}
	if !held {
		return nil, fmt.Errorf("another program locks %s: end it", filepath.Join(opts.Dir, usersFile))
	}
	s.log.InfoContext(ctx, "private postgres ready", "folder", proc.Data, "attached", attached, "owned", alone)
	return s, nil
}

// DSN is the address of the database db, for pgx and libpq alike. It holds no secret: the socket's folder is the guard.
func (s *Server) DSN(db string) string { return dsn(s.SocketDir, db) }

func dsn(socketDir, db string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User(superuser),
		Path:     "/" + db,
		RawQuery: url.Values{"host": {socketDir}, "port": {port}, "sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}

// Done is closed when the server is gone, stopped or crashed.
func (s *Server) Done() <-chan struct{} { return s.proc.done }

// Stop ends this process's use of the server. When no other process uses it, it shuts the server down (fast: running
// transactions are rolled back, what was committed is written out) and waits until it is gone. Close the pools first.
// Give it a live context: the one that a signal has cancelled is over. Further calls return the first one's result.
func (s *Server) Stop(ctx context.Context) error {
	s.leaving.Do(func() { s.left = s.stop(ctx) })
	return s.left
}

// Leave ends this process's use of the server and never stops it: somebody else sees to that. Stop does nothing after it.
func (s *Server) Leave() {
	s.leaving.Do(func() {
		s.proc.forget()
		s.users.Close()
	})
}

func (s *Server) stop(ctx context.Context) error {
	defer s.users.Close()
	gate, err := flock.Exclusive(ctx, filepath.Join(s.dir, gateFile))
	if err != nil {
		return fmt.Errorf("stop the private postgres: %w", err)
	}
	defer gate.Close()

	last, err := s.users.TryExclusive()
	if err != nil {
		return fmt.Errorf("stop the private postgres: %w", err)
	}
	if !last {
		s.proc.forget()
		s.log.InfoContext(ctx, "private postgres left running for others")
		return nil
	}
	if err := s.proc.shutdown(ctx); err != nil {
		return fmt.Errorf("stop the private postgres: %w", err)
	}
	s.log.InfoContext(ctx, "private postgres stopped")
	return nil
}

// explainPermission adds what to do when the data folder belongs to somebody else.
func explainPermission(dir string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("the data folder %s is not ours to write (we are user id %d): "+
		"run as the user who made it, or set ENTREGA_DATA to another folder: %w", dir, os.Geteuid(), err)
}
