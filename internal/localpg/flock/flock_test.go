package flock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"entrega/internal/localpg/flock"
)

func tryExclusive(t *testing.T, path string) (*flock.File, bool) {
	t.Helper()
	f, held, err := flock.TryExclusive(path)
	if err != nil {
		t.Fatal(err)
	}
	return f, held
}

func TestTryExclusive_OneHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made", "lock")
	first, held := tryExclusive(t, path)
	if !held {
		t.Fatal("nobody holds it and it was refused")
	}
	if _, held := tryExclusive(t, path); held {
		t.Error("two holders of an exclusive lock")
	}
	first.Close()
	second, held := tryExclusive(t, path)
	if !held {
		t.Fatal("still held after Close")
	}
	second.Close()
}

func TestTryShared_ManyHoldersAndNoExclusiveOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	for range 2 {
		f, err := flock.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Close)
		if held, err := f.TryShared(); err != nil || !held {
			t.Fatalf("shared: %v, %v", held, err)
		}
	}
	if _, held := tryExclusive(t, path); held {
		t.Error("exclusive beside shared holders")
	}
}

func TestExclusive_AFolderThatCannotBeMadeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	// Not even root can; Linux says that it does not exist.
	if _, err := flock.Exclusive(ctx, "/proc/self/task/made/lock"); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want why the folder cannot be made", err)
	}
}

func TestExclusive_WaitsForItsTurn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, _ := tryExclusive(t, path)
	got := make(chan error, 1)
	go func() {
		f, err := flock.Exclusive(t.Context(), path)
		if err == nil {
			f.Close()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("did not wait: %v", err)
	default:
	}
	first.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestExclusive_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, _ := tryExclusive(t, path)
	defer first.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := flock.Exclusive(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want canceled", err)
	}
}

// The last user of a cluster removes the folder with its lock file. Whoever waited for that file must not believe that
// it guards the new one.
func TestExclusive_RemovedFileIsNoLock(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	path := filepath.Join(dir, "lock")
	old, _ := tryExclusive(t, path)
	waiting := make(chan *flock.File, 1)
	go func() {
		f, err := flock.Exclusive(t.Context(), path)
		if err != nil {
			t.Error(err)
		}
		waiting <- f
	}()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	old.Close()

	f := <-waiting
	defer f.Close()
	if _, held := tryExclusive(t, path); held {
		t.Error("two processes hold the lock of one path")
	}
}
