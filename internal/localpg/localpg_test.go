package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"entrega/internal/localpg/postmaster"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// dataDir makes a data folder that any user can reach, below folders that they can reach too.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "entrega")
}

func startIn(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), Options{Dir: dir, Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

func query[T any](t *testing.T, s *Server, sql string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN(Database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[T])
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func execute(t *testing.T, s *Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.DSN(Database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func setting(t *testing.T, s *Server, name string) string {
	t.Helper()
	return query[string](t, s, "select current_setting('"+name+"')")
}

func TestStart_DurablePrivateAndInItsOwnSession(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{Dir: dataDir(t)})
	if err != nil {
		t.Fatal(err)
	}

	got := map[string]string{}
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes", "listen_addresses", "data_checksums", "server_encoding"} {
		got[name] = setting(t, s, name)
	}
	want := map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"listen_addresses": "", "data_checksums": "on", "server_encoding": "UTF8",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if !s.Owned {
		t.Error("the only user of a server does not own it")
	}
	if group, err := syscall.Getpgid(s.proc.PID); err != nil || group == syscall.Getpgrp() {
		t.Errorf("postgres is in process group %d (%v), as we are: a Ctrl-C would reach it", group, err)
	}
	if info, err := os.Stat(s.SocketDir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the socket folder is open to others: %v, %v", info, err)
	}

	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if _, err := pgx.Connect(t.Context(), s.DSN(Database)); err == nil {
		t.Error("the server still answers after Stop")
	}
}

func TestStart_SecondRunKeepsTheData(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	first := startIn(t, dir)
	execute(t, first, "create table kept as select 7 as n")
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}

	second := startIn(t, dir)
	if got := query[int](t, second, "select n from kept"); got != 7 {
		t.Errorf("kept = %d, want 7", got)
	}
}

func TestStop_LastUserStopsTheServer(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	first, second := startIn(t, dir), startIn(t, dir)
	if !first.Owned || second.Owned {
		t.Errorf("owned: first %v, second %v; want only the first", first.Owned, second.Owned)
	}
	if first.DSN("x") != second.DSN("x") {
		t.Errorf("the second user got another server: %s, %s", first.DSN("x"), second.DSN("x"))
	}

	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, second, "select 1"); got != 1 {
		t.Errorf("after the owner left: %d", got)
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
}

func TestStart_TakesOverTheServerOfAKilledProcess(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	killed := startIn(t, dir)
	killed.Leave() // As the kernel does for a killed process: its locks are gone, and nothing was stopped.

	next := startIn(t, dir)
	if !next.Owned {
		t.Error("a server left behind was attached to but not taken over")
	}
	if next.proc.PID != killed.proc.PID {
		t.Errorf("a second server was started beside the first: %d, %d", next.proc.PID, killed.proc.PID)
	}
	if err := next.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-killed.Done()
}

func TestStart_AfterEverythingWasKilled(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	killed := startIn(t, dir)
	killed.Leave() // As the kernel does for a killed process: its locks are gone, and nothing was stopped.
	if err := syscall.Kill(killed.proc.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-killed.Done()

	next := startIn(t, dir)
	if next.proc.PID == killed.proc.PID {
		t.Error("attached to a dead server")
	}
	if got := query[int](t, next, "select 1"); got != 1 {
		t.Errorf("select 1 = %d", got)
	}
}

func TestStart_StalePidFileOfAReusedNumber(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	if err := startIn(t, dir).Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "pg")
	stale := fmt.Sprintf("%d\n%s\n1700000000\n%s\n%s\n\n", os.Getpid(), data, port, filepath.Join(dir, "run"))
	if err := os.WriteFile(filepath.Join(data, postmaster.PIDFile), []byte(stale), 0o600); err != nil {
		t.Fatal(err)
	}

	if s := startIn(t, dir); s.proc.PID == os.Getpid() {
		t.Error("took the test for a postgres")
	}
}

func TestStart_LongDataPathPutsTheSocketElsewhere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(dataDir(t), strings.Repeat("deep", 12), strings.Repeat("down", 12))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for d := dir; d != filepath.Dir(dataDir(t)) && strings.Contains(d, "entrega"); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	s := startIn(t, dir)
	if strings.HasPrefix(s.SocketDir, dir) {
		t.Errorf("the socket is in %s, which is too long for one", s.SocketDir)
	}
	if again := startIn(t, dir); again.SocketDir != s.SocketDir {
		t.Errorf("the next user looks in %s, not in %s", again.SocketDir, s.SocketDir)
	}
}

// Root lends the server another user, who may not pass a closed folder; everybody else runs it as themselves and may.
func TestStart_ClosedParentFolder(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(filepath.Dir(dataDir(t)), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, ".entrega")
	s := startIn(t, dir)
	real, err := filepath.EvalSymlinks(filepath.Join(dir, "pg"))
	if err != nil {
		t.Fatal(err)
	}
	moved := !strings.HasPrefix(real, dir)
	if moved {
		t.Cleanup(func() { os.RemoveAll(filepath.Dir(real)) })
	}
	if root := os.Geteuid() == 0; moved != root {
		t.Errorf("run by root: %v, cluster in %s", root, real)
	}

	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := startIn(t, dir)
	if again.proc.Data != real {
		t.Errorf("the second run uses %s instead of %s", again.proc.Data, real)
	}
	if err := again.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if moved {
		if err := os.RemoveAll(filepath.Dir(real)); err != nil {
			t.Fatal(err)
		}
		_, err := Start(t.Context(), Options{Dir: dir, Volatile: true})
		if err == nil || !strings.Contains(err.Error(), "remove the link to start empty") {
			t.Errorf("a link that leads nowhere: %v", err)
		}
	}
}

func TestStart_RefusesDataOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	if err := startIn(t, dir).Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pg", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "written by PostgreSQL 9") || !strings.Contains(err.Error(), "install postgresql-9") {
		t.Errorf("error = %v", err)
	}
}

func TestStart_SaysWhyPostgresDidNotStart(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Dir: dataDir(t), Volatile: true, Settings: map[string]string{"max_connections": "many"}})
	if err == nil || !strings.Contains(err.Error(), `invalid value for parameter "max_connections"`) {
		t.Errorf("error = %v", err)
	}
}

func TestFind_SaysWhatToInstall(t *testing.T) {
	t.Parallel()
	_, err := Find(t.TempDir())
	if !errors.Is(err, ErrNotInstalled) {
		t.Fatalf("error = %v, want ErrNotInstalled", err)
	}
	found, err := Find("")
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range found {
		if i.Major < MinMajor {
			t.Errorf("%s holds PostgreSQL %d", i.Dir, i.Major)
		}
	}
}

func TestUsable_TooOldNamesBothVersions(t *testing.T) {
	t.Parallel()
	_, err := usable([]Installation{{Dir: "/old", Major: MinMajor - 1}})
	if !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "PostgreSQL 14 is installed, but Entrega needs 15") {
		t.Errorf("error = %v", err)
	}
}

// TestStart_AsPlainUser runs one of the tests above as a user without rights, which root can do.
func TestStart_AsPlainUser(t *testing.T) {
	t.Parallel()
	home := filepath.Join(filepath.Dir(dataDir(t)), "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(home, "localpg.test")
	copyExecutable(t, binary)

	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestStop_LastUserStopsTheServer$", "-test.v")
	cmd.Dir = home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + home, "HOME=" + home}
	if os.Geteuid() == 0 {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, uidErr := strconv.Atoi(nobody.Uid)
		gid, gidErr := strconv.Atoi(nobody.Gid)
		if err := errors.Join(uidErr, gidErr, os.Chown(home, uid, gid)); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestStop_LastUserStopsTheServer") {
		t.Errorf("as a plain user: %v\n%s", err, out)
	}
}

func copyExecutable(t *testing.T, to string) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(file, from); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// A data folder that was copied while its server ran names a server of other files, which must be left alone.
func TestStart_CopyOfARunningFolderIsNotItsServer(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	running := startIn(t, dir)
	copied := filepath.Join(filepath.Dir(dir), "copy")
	if err := os.Mkdir(copied, 0o755); err != nil {
		t.Fatal(err)
	}
	cp := exec.CommandContext(t.Context(), "cp", "-a", filepath.Join(dir, "pg"), filepath.Join(copied, "pg"))
	if out, err := cp.CombinedOutput(); err != nil {
		t.Fatalf("copy: %v\n%s", err, out)
	}

	other := startIn(t, copied)
	if other.proc.PID == running.proc.PID {
		t.Error("the copy attached to the server of the original")
	}
}

func TestRotate_SetsALargeLogAside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pg.log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, maxLog); err != nil {
		t.Fatal(err)
	}
	if err := rotate(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log is still in place: %v", err)
	}
	if info, err := os.Stat(path + ".1"); err != nil || info.Size() != maxLog {
		t.Errorf("the older log: %v, %v", info, err)
	}
}

func TestStart_GivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := Start(ctx, Options{Dir: dataDir(t), Volatile: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v, want deadline exceeded", err)
	}
}
