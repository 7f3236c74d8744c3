package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// buildBinary builds the product once for all tests of this package.
var buildBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "entrega-bin-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "entrega")
	out, err := exec.Command("go", "build", "-o", file, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return file, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if err := stopChromium(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the browser:", err)
	}
	if file, err := buildBinary(); err == nil {
		os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

// installation is one data folder with the product running on it as a process of its own, as users have it.
type installation struct {
	t      testing.TB
	binary string
	data   string
	env    []string
	serve  *exec.Cmd
	stderr *bytes.Buffer
	url    string
	// patience is how long a command may take, a minute at least.
	patience time.Duration
}

func install(t testing.TB, env ...string) *installation {
	t.Helper()
	binary, err := buildBinary()
	if err != nil {
		t.Fatal(err)
	}
	in := &installation{t: t, binary: binary, data: dataDir(t)}
	in.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ENTREGA_DATA=" + in.data, "ENTREGA_LISTEN=127.0.0.1:0"}, env...)
	return in
}

// dataDir is a folder that the server's own user can reach when the tests run as root, unlike t.TempDir.
func dataDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "entrega-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start runs `entrega serve` (or other arguments) and waits until it says that it is ready.
func (in *installation) start(args ...string) {
	in.t.Helper()
	if len(args) == 0 {
		args = []string{"serve"}
	}
	cmd := exec.Command(in.binary, args...)
	cmd.Env = in.env
	in.stderr = &bytes.Buffer{}
	cmd.Stderr = in.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		in.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		in.t.Fatal(err)
	}
	in.serve = cmd
	in.t.Cleanup(in.stop)
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if _, url, found := strings.Cut(lines.Text(), "is ready: "); found {
				ready <- url
			}
		}
		close(ready)
	}()
	select {
	case url, ok := <-ready:
		if !ok {
			in.t.Fatalf("serve ended before it was ready:\n%s", in.stderr)
		}
		in.url = url
	case <-time.After(60 * time.Second):
		in.t.Fatal("serve was not ready within a minute")
	}
}

// stop ends serve as Ctrl-C does. It is safe to call again.
func (in *installation) stop() {
	if in.serve == nil {
		return
	}
	cmd := in.serve
	in.serve = nil
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		in.t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		in.t.Errorf("serve: %v\n%s", err, in.stderr)
	}
}

// kill ends serve as a crash does: kill -9.
func (in *installation) kill() {
	in.t.Helper()
	cmd := in.serve
	in.serve = nil
	if err := cmd.Process.Kill(); err != nil {
		in.t.Fatal(err)
	}
	_ = cmd.Wait() // its error is the signal
}

// command runs another command beside serve and returns its output.
func (in *installation) command(args ...string) string {
	in.t.Helper()
	out, err := in.tryCommand("", args...)
	if err != nil {
		in.t.Fatalf("entrega %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (in *installation) tryCommand(stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(in.t.Context(), max(in.patience, time.Minute))
	defer cancel()
	cmd := exec.CommandContext(ctx, in.binary, args...)
	cmd.Env = in.env
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// project makes a project and gives its id and key.
func (in *installation) project(name string) (id, key string) {
	in.t.Helper()
	var p struct{ ProjectID, APIKey string }
	out := in.command("project", "create", "--name", name, "--json")
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		in.t.Fatalf("%v: %s", err, out)
	}
	return p.ProjectID, p.APIKey
}

// call makes one API request and decodes the answer into out, when that is not nil. Any status but want fails the test.
func (in *installation) call(key, method, path string, body, out any, want int) {
	in.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		in.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(in.t.Context(), method, in.url+path, bytes.NewReader(raw))
	if err != nil {
		in.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		in.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		in.t.Fatal(err)
	}
	if res.StatusCode != want {
		in.t.Fatalf("%s %s: %s, want %d\n%s", method, path, res.Status, want, answer)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			in.t.Fatalf("%s %s: %v\n%s", method, path, err, answer)
		}
	}
}
