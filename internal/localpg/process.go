package localpg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	pidFile = "postmaster.pid"

	pollStart    = 20 * time.Millisecond
	pollLeftover = 200 * time.Millisecond
	pollGone     = 50 * time.Millisecond
	pollWatch    = time.Second

	answerTimeout = 5 * time.Second

	// stopTimeout is how long a fast shutdown may take to write everything out before it is cut short. Cut short it loses
	// nothing either, but the next start has to recover.
	stopTimeout = 30 * time.Second
	quitTimeout = 5 * time.Second
)

// process is a running postmaster, our child or not.
type process struct {
	pid       int
	data      string
	socketDir string
	child     bool
	done      chan struct{} // closed when it is gone
	ended     sync.Once     // closes done
	unwatch   chan struct{}
	unwatched sync.Once // closes unwatch
}

// spawn starts cmd and reaps it when it ends.
func spawn(cmd *exec.Cmd, data, socketDir string) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	p := newProcess(cmd.Process.Pid, data, socketDir)
	p.child = true
	go func() {
		_ = cmd.Wait() // Why it ended stands in its log.
		p.end()
	}()
	return p, nil
}

func newProcess(pid int, data, socketDir string) *process {
	return &process{pid: pid, data: data, socketDir: socketDir, done: make(chan struct{}), unwatch: make(chan struct{})}
}

// readPostmaster reads the file in which a server says who it is: process id, data folder, start time, port and socket
// folder, one a line. A server that has only begun to start has no socket folder yet.
func readPostmaster(data string) (*process, bool) {
	raw, err := os.ReadFile(filepath.Join(data, pidFile))
	if err != nil {
		return nil, false
	}
	lines := strings.Split(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return nil, false
	}
	socketDir := ""
	if len(lines) > 4 {
		socketDir = strings.TrimSpace(lines[4])
	}
	return newProcess(pid, data, socketDir), true
}

// alive reports whether the process is there and is the server of these files, rather than a zombie or a stranger that
// was given the same number.
func (p *process) alive() bool {
	if err := syscall.Kill(p.pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
	if errors.Is(err, os.ErrNotExist) && !hasProc() {
		line, err = exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(p.pid)).Output()
	}
	return err == nil && bytes.Contains(line, []byte(p.data))
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/cmdline")
	return err == nil
}

// watch closes done when a process that is not our child goes away.
func (p *process) watch() {
	go func() {
		ticker := time.NewTicker(pollWatch)
		defer ticker.Stop()
		for p.alive() {
			select {
			case <-p.unwatch:
				return
			case <-ticker.C:
			}
		}
		p.end()
	}()
}

func (p *process) end() { p.ended.Do(func() { close(p.done) }) }

// forget ends the watch over a process that goes on without us.
func (p *process) forget() { p.unwatched.Do(func() { close(p.unwatch) }) }

// ready waits until the server answers, or is gone.
func (p *process) ready(ctx context.Context) error {
	return await(ctx, pollStart, func() (bool, error) {
		if p.isDone() {
			return false, errors.New("postgres ended while starting")
		}
		return answers(ctx, p.socketDir), nil
	})
}

// shutdown asks for a fast shutdown and waits until the process is gone. It cuts the wait short when ctx ends.
func (p *process) shutdown(ctx context.Context) error {
	defer p.forget()
	defer os.Remove(p.socketDir) // Empty by then, and made anew by the next start.
	if err := p.signal(syscall.SIGINT); err != nil {
		return err
	}
	fast, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if p.gone(fast) == nil {
		return nil
	}
	if err := p.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	quit, cancel := context.WithTimeout(context.WithoutCancel(ctx), quitTimeout)
	defer cancel()
	if err := p.gone(quit); err != nil {
		return fmt.Errorf("process %d does not end: %w", p.pid, err)
	}
	return nil
}

// gone waits for the end of the process.
func (p *process) gone(ctx context.Context) error {
	return await(ctx, pollGone, func() (bool, error) {
		if !p.child && !p.alive() {
			p.end()
		}
		return p.isDone(), nil
	})
}

func (p *process) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) signal(sig syscall.Signal) error {
	if p.isDone() || !p.child && !p.alive() {
		return nil
	}
	err := syscall.Kill(p.pid, sig)
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("send %s to process %d: %w", sig, p.pid, err)
}

// answers reports whether the server takes connections.
func answers(ctx context.Context, socketDir string) bool {
	if socketDir == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn(socketDir, "postgres"))
	if err != nil {
		return false
	}
	_ = conn.Close(ctx) // It answered; a goodbye that fails changes nothing.
	return true
}

// ensureDatabase makes the database when it is missing. The caller holds the gate, so nobody makes it at the same time.
func ensureDatabase(ctx context.Context, s *Server) error {
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect to the private postgres: %w", err)
	}
	defer conn.Close(ctx)
	var exists bool
	err = conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", Database).Scan(&exists)
	if err != nil {
		return fmt.Errorf("look for the database: %w", err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "create database "+Database); err != nil {
		return fmt.Errorf("make the database: %w", err)
	}
	return nil
}

// await asks done every so often until it says yes or fails, or ctx ends.
func await(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}
