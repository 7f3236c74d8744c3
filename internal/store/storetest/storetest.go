// Package storetest gives every test a real PostgreSQL database of its own within a few milliseconds.
//
// All test processes of a `go test ./...` share one cluster: the first starts it, the others attach, and a keeper process
// removes it when it has been unused for a while. Each schema is migrated once into a template database, and each test
// gets a clone of that. The cluster does not survive a crash and must never hold anything but test data.
package storetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"entrega/internal/localpg"
	"entrega/internal/localpg/flock"
	"entrega/internal/store"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	setupTimeout = 2 * time.Minute
	// closeTimeout is how long a test's own goroutines may take to give back their connections at its end.
	closeTimeout = 10 * time.Second
	poolSize     = 20

	// cloneStrategy copies a template file by file. The two checkpoints that it asks for cost little without fsync, and
	// less than writing every page through the log.
	cloneStrategy = "file_copy"
)

// Migrate brings the empty database at dsn to the schema that a test wants.
type Migrate = func(ctx context.Context, dsn string) error

// New returns a pool on a fresh database with the schema that migrate makes; nil leaves it empty. The database lives as
// long as the test. A connection still in use at the end fails the test: something outlived it.
func New(t testing.TB, migrate Migrate) *pgxpool.Pool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	c := open(ctx, t)
	template := c.template(ctx, t, migrate)
	name := "test_" + randomName()
	c.clone(ctx, t, template, name)

	pool, err := store.Open(ctx, c.server.DSN(name), store.Options{MaxConns: poolSize, ApplicationName: "test"})
	if err != nil {
		t.Fatalf("open the test database: %v", err)
	}
	t.Cleanup(func() {
		closePool(t, pool)
		ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
		defer cancel()
		c.exec(ctx, t, "drop database "+quote(name)+" with (force)")
		c.server.Leave()
	})
	return pool
}

// Tx returns a transaction that is rolled back when the test ends, on a database with the schema that migrate makes. It
// is the cheapest start; take New where commits, LISTEN or several connections matter. Tests of one process share the
// database, so two of them that write the same unique key wait for each other.
func Tx(t testing.TB, migrate Migrate) pgx.Tx {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	c := open(ctx, t)
	conn, err := pgx.Connect(ctx, c.server.DSN(c.shared(ctx, t, migrate)))
	if err != nil {
		t.Fatalf("connect to the shared test database: %v", err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatalf("begin the test's transaction: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := conn.Close(ctx); err != nil { // Rolls back.
			t.Errorf("close the test's transaction: %v", err)
		}
		c.server.Leave()
	})
	return tx
}

// DSN is the address of the pool's database, for code under test that opens connections itself.
func DSN(pool *pgxpool.Pool) string { return pool.Config().ConnString() }

// cluster is this test's hold on the shared cluster.
type cluster struct {
	dir    string
	server *localpg.Server
}

// open attaches to the cluster, or starts it, and makes sure that a keeper looks after it.
func open(ctx context.Context, t testing.TB) *cluster {
	t.Helper()
	dir, err := folder()
	if err != nil {
		t.Fatal(err)
	}
	server, err := localpg.Start(ctx, localpg.Options{Dir: dir, Volatile: true, Settings: map[string]string{
		"autovacuum":         "off", // It would connect to a template that is being cloned.
		"checkpoint_timeout": "1h",
		"log_checkpoints":    "off",
		"max_wal_size":       "4GB",
	}})
	if err != nil {
		t.Fatalf("start the test database: %v", err)
	}
	if err := ensureKeeper(ctx, dir); err != nil {
		server.Leave()
		t.Fatalf("start the keeper of the test database: %v", err)
	}
	return &cluster{dir: dir, server: server}
}

// folder is the same for all test processes of one user.
func folder() (string, error) {
	base := os.TempDir()
	if os.Geteuid() == 0 {
		base = "/tmp" // Another user runs the server, and may not reach root's own temporary folder.
	}
	dir := filepath.Join(base, fmt.Sprintf("entrega-test-%d", os.Geteuid()))
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", fmt.Errorf("make the folder of the test database: %w", err)
	}
	// The temporary folder is open to all, so somebody else may have made ours first. Only an owner may change its mode.
	if err := os.Chmod(dir, 0o711); err != nil && os.Geteuid() != 0 {
		return "", fmt.Errorf("%s is not ours, remove it: %w", dir, err)
	}
	return dir, nil
}

// template returns the database that migrate has brought to its schema, and makes it when it is missing. Its name holds
// a fingerprint of the schema, so changed migrations get a new one.
func (c *cluster) template(ctx context.Context, t testing.TB, migrate Migrate) string {
	t.Helper()
	if migrate == nil {
		return "template0"
	}
	print, err := fingerprint(migrate)
	if err != nil {
		t.Fatalf("tell the schema: %v", err)
	}
	name := "template_" + print
	defer c.lock(ctx, t).Close()
	if c.exists(ctx, t, "datname = $1 and datistemplate", name) {
		return name
	}

	c.exec(ctx, t, "drop database if exists "+quote(name)+" with (force)") // Left half made by a process that was killed.
	c.exec(ctx, t, "create database "+quote(name)+" template template0 strategy file_copy")
	if err := migrate(ctx, c.server.DSN(name)); err != nil {
		t.Fatalf("migrate the template database: %v", err)
	}
	c.exec(ctx, t, "alter database "+quote(name)+" allow_connections false")
	c.exec(ctx, t, "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '"+name+"'")
	c.exec(ctx, t, "alter database "+quote(name)+" is_template true")
	return name
}

// shared returns this process's clone for transactions that are rolled back. It goes with the cluster.
func (c *cluster) shared(ctx context.Context, t testing.TB, migrate Migrate) string {
	t.Helper()
	template := c.template(ctx, t, migrate)
	name := fmt.Sprintf("shared_%d_%s", os.Getpid(), template)
	defer c.lock(ctx, t).Close()
	if !c.exists(ctx, t, "datname = $1", name) {
		c.clone(ctx, t, template, name)
	}
	return name
}

func (c *cluster) clone(ctx context.Context, t testing.TB, template, name string) {
	t.Helper()
	c.exec(ctx, t, "create database "+quote(name)+" template "+quote(template)+" strategy "+cloneStrategy)
}

// lock makes one test process at a time decide about templates.
func (c *cluster) lock(ctx context.Context, t testing.TB) *flock.File {
	t.Helper()
	lock, err := flock.Exclusive(ctx, filepath.Join(c.dir, "template.lock"))
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func (c *cluster) exists(ctx context.Context, t testing.TB, where string, args ...any) bool {
	t.Helper()
	conn := c.admin(ctx, t)
	defer conn.Close(ctx)
	var exists bool
	err := conn.QueryRow(ctx, "select exists (select from pg_database where "+where+")", args...).Scan(&exists)
	if err != nil {
		t.Fatalf("look for a test database: %v", err)
	}
	return exists
}

func (c *cluster) exec(ctx context.Context, t testing.TB, sql string) {
	t.Helper()
	conn := c.admin(ctx, t)
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (c *cluster) admin(ctx context.Context, t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(ctx, c.server.DSN("postgres"))
	if err != nil {
		t.Fatalf("connect to the test database: %v", err)
	}
	return conn
}

func closePool(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closeTimeout):
		t.Errorf("%d connections are still in use at the end of the test", pool.Stat().AcquiredConns())
	}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

func randomName() string {
	raw := make([]byte, 8)
	_, _ = rand.Read(raw) // Never fails: see crypto/rand.
	return hex.EncodeToString(raw)
}
