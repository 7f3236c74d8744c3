// Package flock locks files between processes. The kernel frees a lock when its holder ends, however it ends, so
// nothing stale can be left behind.
//
// It rests on the standard library alone: a helper program of the tests is built from it on the spot.
package flock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// poll is how often a waiting process asks for a lock. flock(2) itself cannot be told to give up when a context ends.
const poll = 20 * time.Millisecond

// File is an open lock file. It is for one goroutine at a time.
type File struct {
	path string
	file *os.File
}

// Open opens the lock file at path, and makes it and its folder when missing. It holds no lock yet.
func Open(path string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of a lock file: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a lock file: %w", err)
	}
	return &File{path: path, file: file}, nil
}

// Exclusive opens path and waits until this process alone holds it, or ctx ends.
//
// A file that was removed while we waited is no lock for anybody who comes later, so it starts over with the new one.
func Exclusive(ctx context.Context, path string) (*File, error) {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		f, held, err := TryExclusive(path)
		if err != nil || held {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock %s: %w", path, ctx.Err())
		case <-ticker.C:
		}
	}
}

// TryExclusive opens path and takes it when nobody holds it. When somebody does, held is false and f is nil.
func TryExclusive(path string) (f *File, held bool, err error) {
	f, err = Open(path)
	var step *fs.PathError
	if errors.Is(err, fs.ErrNotExist) && errors.As(err, &step) && step.Op == "open" {
		return nil, false, nil // The folder was removed between the two steps of Open. One that cannot be made is an error.
	}
	if err != nil {
		return nil, false, err
	}
	held, err = f.TryExclusive()
	if err == nil && held && f.current() {
		return f, true, nil
	}
	f.Close()
	return nil, false, err
}

// TryExclusive makes this process the only holder, unless another one holds the file in any way. A shared lock that was
// held before may be lost in a failed try.
func (f *File) TryExclusive() (held bool, err error) {
	return f.lock(syscall.LOCK_EX | syscall.LOCK_NB)
}

// TryShared makes this process one of the holders, unless another one holds the file exclusively.
func (f *File) TryShared() (held bool, err error) {
	return f.lock(syscall.LOCK_SH | syscall.LOCK_NB)
}

// Handle is the open file, for a child process to inherit (exec.Cmd.ExtraFiles): the lock then lasts until both have
// closed it.
func (f *File) Handle() *os.File { return f.file }

// Close gives the lock up, if any is held.
func (f *File) Close() { _ = f.file.Close() }

func (f *File) lock(how int) (held bool, err error) {
	for {
		switch err := syscall.Flock(int(f.file.Fd()), how); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return false, fmt.Errorf("lock %s: %w", f.path, err)
		}
	}
}

// current reports whether the path still leads to the file that is open.
func (f *File) current() bool {
	open, err := f.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.path)
	return err == nil && os.SameFile(open, named)
}
