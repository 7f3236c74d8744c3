package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"entrega/internal/egress"
	"entrega/internal/seal"
	"entrega/internal/tenant"
	"entrega/webhooks"
)

// readyWithin is how long a node may take to start.
const readyWithin = time.Minute

// installation is a database with nodes of Entrega on it.
type installation struct {
	*database
	key       []byte
	endpoints *webhooks.Endpoints
	nodes     []*node
}

// node is one `entrega serve`.
type node struct {
	cmd   *exec.Cmd
	addr  string
	admin string
	log   *os.File
}

// install makes a database and starts n nodes on it.
func (b *bench) install(ctx context.Context, n int) (*installation, error) {
	db, err := b.database(ctx, 8)
	if err != nil {
		return nil, err
	}
	in := &installation{database: db, key: seal.NewKey()}
	box, err := seal.New(in.key)
	if err != nil {
		return in, err
	}
	allow, err := egress.ParseAllow("127.0.0.1")
	if err != nil {
		return in, err
	}
	door, err := egress.New(egress.Options{Allow: allow, AllowHTTP: true})
	if err != nil {
		return in, err
	}
	in.endpoints = webhooks.NewEndpoints(webhooks.EndpointsOptions{Pool: db.pool, Door: door, Box: box, Logger: slog.New(slog.DiscardHandler)})
	for range n {
		if err := in.start(ctx); err != nil {
			return in, err
		}
	}
	return in, nil
}

func (in *installation) start(ctx context.Context, args ...string) error {
	log, err := os.Create(filepath.Join(in.bench.data, fmt.Sprintf("node-%d-%d.log", in.bench.databases, len(in.nodes))))
	if err != nil {
		return err
	}
	n := &node{log: log, cmd: exec.Command(in.bench.binary, append([]string{"serve"}, args...)...)}
	if n.admin, err = freeAddr(ctx); err != nil {
		return err
	}
	n.cmd.Env = []string{"DATABASE_URL=" + in.dsn, "ENTREGA_SECRET_KEY=" + seal.FormatKey(in.key), "ENTREGA_LISTEN=127.0.0.1:0",
		"ENTREGA_ADMIN_LISTEN=" + n.admin, "ENTREGA_ALLOW_HTTP=true", "ENTREGA_EGRESS_ALLOW=127.0.0.1"}
	n.cmd.Stderr = log
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := n.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", in.bench.binary, err)
	}
	in.nodes = append(in.nodes, n)
	ready := make(chan string, 1)
	go func() {
		defer close(ready)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if _, address, found := strings.Cut(lines.Text(), "is ready: "); found {
				ready <- address
			}
		}
	}()
	select {
	case address := <-ready:
		u, err := url.Parse(address)
		if err != nil || u.Host == "" {
			return fmt.Errorf("a node did not start; its log is %s", log.Name())
		}
		n.addr = u.Host
		return nil
	case <-time.After(readyWithin):
		return fmt.Errorf("a node was not ready within %s; its log is %s", readyWithin, log.Name())
	}
}

// close ends the nodes as a person would, and returns the error of one that did not end well.
func (in *installation) close() error {
	var failed error
	for _, n := range in.nodes {
		_ = n.cmd.Process.Signal(syscall.SIGTERM) // One that is gone already shows in Wait.
	}
	for _, n := range in.nodes {
		if err := n.cmd.Wait(); err != nil && failed == nil {
			failed = fmt.Errorf("a node ended with %w; its log is %s", err, n.log.Name())
		}
		n.log.Close()
	}
	in.nodes = nil
	return errors.Join(failed, in.drop())
}

func freeAddr(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// project is a tenant to measure with.
type project struct {
	in    *installation
	key   string
	actor tenant.Actor
}

func (in *installation) project(ctx context.Context, name string) (*project, error) {
	p, err := tenant.CreateProject(ctx, in.pool, tenant.CLI("bench"), tenant.NewProject{Name: name})
	if err != nil {
		return nil, err
	}
	actor := tenant.CLI("bench").In(p.ID)
	_, key, err := tenant.CreateAPIKey(ctx, in.pool, actor, p.ID, tenant.NewAPIKey{Name: "bench", Scopes: []tenant.Scope{tenant.ScopeManage, tenant.ScopePublish}})
	return &project{in: in, key: key, actor: actor}, err
}

// endpoint makes an endpoint that sends to a sink and returns its id.
func (p *project) endpoint(ctx context.Context, s *sink, width int) (string, error) {
	created, err := p.in.endpoints.CreateEndpoint(ctx, p.actor, webhooks.NewEndpoint{Settings: webhooks.Settings{
		URL: p.in.bench.receiver.url(s), MaxInFlight: width}})
	return created.Endpoint.ID, err
}

func (p *project) addr() string { return p.in.nodes[0].addr }

// watch takes a profile and a trace of the first node while something is measured, where they are asked for.
func (in *installation) watch(ctx context.Context, name string) (stop func() error, err error) {
	b := in.bench
	counted, err := in.countStatements(ctx, name)
	if err != nil {
		return nil, err
	}
	profiling, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	take := func(folder, path, suffix string) {
		if folder == "" || len(in.nodes) == 0 {
			return
		}
		all.Go(func() {
			if err := fetch(profiling, in.nodes[0].admin, path, filepath.Join(folder, fileName(name)+suffix)); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = err
			}
		})
	}
	take(b.profile, "/debug/pprof/profile?seconds=3", ".pprof")
	take(b.trace, "/debug/pprof/trace?seconds=1", ".trace")
	return func() error {
		all.Wait()
		cancel()
		return errors.Join(failed, counted())
	}, nil
}

func fetch(ctx context.Context, addr, path, file string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+path, nil)
	if err != nil {
		return err
	}
	resp, err := new(http.Transport).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("take a profile: %w", err)
	}
	defer resp.Body.Close()
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(f, resp.Body)
	return err
}

func fileName(s string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s)), "-")
}
