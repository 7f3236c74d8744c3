package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"entrega/internal/localpg/postmaster"

	"github.com/jackc/pgx/v5"
)

const (
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

// process is a running server, our child or not, and a watch over it.
type process struct {
	postmaster.Postmaster
	child     *os.Process   // nil for a server that somebody else started
	done      chan struct{} // closed when it is gone
	ended     sync.Once     // closes done
	unwatch   chan struct{}
	unwatched sync.Once // closes unwatch
}

func newProcess(p postmaster.Postmaster) *process {
	return &process{Postmaster: p, done: make(chan struct{}), unwatch: make(chan struct{})}
}

// spawn starts cmd and reaps it when it ends.
func spawn(cmd *exec.Cmd, data, socketDir string) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	p := newProcess(postmaster.Postmaster{PID: cmd.Process.Pid, Data: data, SocketDir: socketDir})
	p.child = cmd.Process
	go func() {
		_ = cmd.Wait() // Why it ended stands in its log.
		p.end()
	}()
	return p, nil
}

// follow watches over a server that is not our child.
func follow(found postmaster.Postmaster) *process {
	p := newProcess(found)
	go func() {
		ticker := time.NewTicker(pollWatch)
		defer ticker.Stop()
		for p.Alive() {
			select {
			case <-p.unwatch:
				return
			case <-ticker.C:
			}
		}
		p.end()
	}()
	return p
}

func (p *process) end() { p.ended.Do(func() { close(p.done) }) }

// forget ends the watch over a process that goes on without us.
func (p *process) forget() { p.unwatched.Do(func() { close(p.unwatch) }) }

// gone reports whether the process has ended.
func (p *process) gone() bool {
	select {
	case <-p.done:
		return true
	default:
		return p.child == nil && !p.Alive()
	}
}

// signal sends sig. That the process has ended is no error.
func (p *process) signal(sig syscall.Signal) error {
	if p.child == nil {
		return p.Signal(sig)
	}
	if err := p.child.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to process %d: %w", sig, p.PID, err)
	}
	return nil
}

// ready waits until the server answers, or is gone.
func (p *process) ready(ctx context.Context) error {
	return await(ctx, pollStart, func() (bool, error) {
		if p.gone() {
			return false, errors.New("postgres ended while starting")
		}
		return answers(ctx, p.SocketDir), nil
	})
}

// shutdown asks for a fast shutdown and waits until the process is gone. It cuts the wait short when ctx ends.
func (p *process) shutdown(ctx context.Context) error {
	defer p.forget()
	defer os.Remove(p.SocketDir) // Empty by then, and made anew by the next start.
	fast, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := p.signal(syscall.SIGINT); err != nil {
		return err
	}
	if p.awaitEnd(fast) == nil {
		return nil
	}

	quit, cancel := context.WithTimeout(context.WithoutCancel(ctx), quitTimeout)
	defer cancel()
	if err := p.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	if err := p.awaitEnd(quit); err != nil {
		return fmt.Errorf("process %d does not end: %w", p.PID, err)
	}
	return nil
}

func (p *process) awaitEnd(ctx context.Context) error {
	err := await(ctx, pollGone, func() (bool, error) { return p.gone(), nil })
	if err == nil {
		p.end()
	}
	return err
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
