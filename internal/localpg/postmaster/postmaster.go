// Package postmaster finds the PostgreSQL server process of a cluster and tells it apart from a stranger that was given
// the same process id.
//
// Like flock it rests on the standard library alone.
package postmaster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// PIDFile is the file in the cluster's folder in which its server says who it is.
const PIDFile = "postmaster.pid"

// Postmaster is the server process of one cluster.
type Postmaster struct {
	PID  int
	Data string // the cluster's folder, as on the server's command line
	// SocketDir is empty while the server has only begun to start.
	SocketDir string
}

// Find reads who the server of the cluster in data is, or was: the file outlives a server that was killed. It holds
// process id, data folder, start time, port and socket folder, one a line.
func Find(data string) (Postmaster, bool) {
	raw, err := os.ReadFile(filepath.Join(data, PIDFile))
	if err != nil {
		return Postmaster{}, false
	}
	lines := strings.Split(string(raw), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 1 {
		return Postmaster{}, false
	}
	p := Postmaster{PID: pid, Data: data}
	if len(lines) > 4 {
		p.SocketDir = strings.TrimSpace(lines[4])
	}
	return p, true
}

// Alive reports whether the process is there and is the server of this cluster: neither a zombie, whose command line is
// empty, nor a stranger.
func (p Postmaster) Alive() bool {
	if err := syscall.Kill(p.PID, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
	if errors.Is(err, fs.ErrNotExist) && !hasProc() {
		line, err = exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(p.PID)).Output()
	}
	return err == nil && bytes.Contains(line, []byte(p.Data))
}

// Signal sends sig when the server is alive. That it is gone already is no error.
func (p Postmaster) Signal(sig syscall.Signal) error {
	if !p.Alive() {
		return nil
	}
	if err := syscall.Kill(p.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", sig, p.PID, err)
	}
	return nil
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/cmdline")
	return err == nil
}
