// Command keeper stops the PostgreSQL of the tests and removes its folder once no test process uses it any more. The
// test processes cannot do it themselves: they may be killed, and none of them knows that it is the last.
//
// Whichever test process needs it builds it on the spot, hence it rests on the standard library alone. It inherits the
// locked keeper.lock, so that a cluster has one keeper, and holds it simply by living.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"entrega/internal/localpg/flock"
	"entrega/internal/localpg/postmaster"
)

const (
	// grace bridges the gap between the test processes of two packages, the second of which may still be building.
	grace = 20 * time.Second
	every = 500 * time.Millisecond
	// patience is how long the server may take to end before its folder is removed all the same.
	patience = 10 * time.Second
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: keeper FOLDER")
		os.Exit(2)
	}
	if err := keep(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		os.Exit(1)
	}
}

// keep waits until nobody has used the cluster in dir for a while, then stops and removes it.
func keep(ctx context.Context, dir string) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for usedAt := time.Now(); ; <-ticker.C {
		end := time.Since(usedAt) >= grace
		unused, err := ifUnused(ctx, dir, func() error {
			if end {
				return remove(dir)
			}
			return nil
		})
		switch {
		case err != nil || unused && end:
			return err
		case !unused:
			usedAt = time.Now()
		}
	}
}

// ifUnused runs do when no process uses the cluster, and keeps new ones out meanwhile.
func ifUnused(ctx context.Context, dir string, do func() error) (unused bool, err error) {
	gate, err := flock.Exclusive(ctx, filepath.Join(dir, "pg.lock"))
	if err != nil {
		return false, err
	}
	defer gate.Close()
	users, unused, err := flock.TryExclusive(filepath.Join(dir, "pg.users"))
	if err != nil || !unused {
		return false, err
	}
	defer users.Close()
	return true, do()
}

// remove ends the server without letting it write anything out, for nobody will read it, and removes the folder.
func remove(dir string) error {
	data := filepath.Join(dir, "pg")
	if real, err := filepath.EvalSymlinks(data); err == nil {
		data = real
	}
	if server, ok := postmaster.Find(data); ok {
		if err := server.Signal(syscall.SIGQUIT); err != nil {
			return err
		}
		for deadline := time.Now().Add(patience); server.Alive() && time.Now().Before(deadline); {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return os.RemoveAll(dir)
}
