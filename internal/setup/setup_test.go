package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorder notes the commands instead of running them, with what they are fed after a "<".
type recorder struct {
	ran  []string
	fail string // a command that holds it fails
}

func (r *recorder) run(_ context.Context, stdin io.Reader, argv ...string) error {
	line := strings.Join(argv, " ")
	if stdin != nil {
		fed, err := io.ReadAll(stdin)
		if err != nil {
			return err
		}
		line += " <" + strings.TrimSpace(string(fed))
	}
	r.ran = append(r.ran, line)
	if r.fail != "" && strings.Contains(line, r.fail) {
		return errors.New(r.fail + " failed")
	}
	return nil
}

const aptGet = "env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "

func TestInstall_AptAsksNothingAndStartsNoCluster(t *testing.T) {
	t.Parallel()
	var r recorder
	m := manager{name: apt, sudo: []string{"sudo"}, run: r.run}
	if err := m.install(t.Context(), []string{"postgresql"}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"sudo mkdir -p /etc/postgresql-common/createcluster.d",
		"sudo tee /etc/postgresql-common/createcluster.d/entrega.conf <create_main_cluster = false",
		"sudo " + aptGet + "update",
		"sudo " + aptGet + "install --yes --no-install-recommends postgresql",
		"sudo rm -f /etc/postgresql-common/createcluster.d/entrega.conf",
	}
	if diff := cmp.Diff(want, r.ran); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestInstall_AptWithoutPostgresTouchesNoClusterSettings(t *testing.T) {
	t.Parallel()
	r := recorder{fail: "update"}
	m := manager{name: apt, run: r.run}
	if err := m.install(t.Context(), []string{"gcc", "npm"}); err != nil {
		t.Errorf("a failed update alone is no failure: %v", err)
	}
	want := []string{aptGet + "update", aptGet + "install --yes --no-install-recommends gcc npm"}
	if diff := cmp.Diff(want, r.ran); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestInstall_AFailureIsToldAndTheSettingsAreTakenBack(t *testing.T) {
	t.Parallel()
	r := recorder{fail: "install --yes"}
	m := manager{name: apt, run: r.run}
	if err := m.install(t.Context(), []string{"postgresql"}); err == nil {
		t.Error("no error")
	}
	if last := r.ran[len(r.ran)-1]; !strings.HasPrefix(last, "rm -f "+clusterConfig) {
		t.Errorf("last command = %s", last)
	}
}

func TestInstall_Brew(t *testing.T) {
	t.Parallel()
	var r recorder
	m := manager{name: brew, run: r.run}
	if err := m.install(t.Context(), []string{"postgresql@17"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"env NONINTERACTIVE=1 HOMEBREW_NO_AUTO_UPDATE=1 brew install --quiet postgresql@17"}
	if diff := cmp.Diff(want, r.ran); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestNeeds_TheProductNeedsOnlyPostgres(t *testing.T) {
	t.Parallel()
	names := func(opts options) (names []string) {
		for _, n := range needs(opts) {
			names = append(names, n.what)
		}
		return names
	}
	if diff := cmp.Diff([]string{"the PostgreSQL server"}, names(options{})); diff != "" {
		t.Errorf("product (-want +got):\n%s", diff)
	}
	want := []string{"the PostgreSQL server", "a C compiler", "Chromium", "npm"}
	if diff := cmp.Diff(want, names(options{test: true})); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
}

func TestNeeds_PostgresIsMissingInAFolderWithoutIt(t *testing.T) {
	t.Parallel()
	if err := needs(options{pgBin: t.TempDir()})[0].missing(); err == nil {
		t.Error("an empty folder passes for a PostgreSQL server")
	}
}

func TestOneOf_AnyOfThePrograms(t *testing.T) {
	t.Parallel()
	if err := oneOf("mend it", "no-such-program", "go")(); err != nil {
		t.Errorf("go is here, but: %v", err)
	}
	if err := oneOf("mend it", "no-such-program")(); err == nil || err.Error() != "mend it" {
		t.Errorf("error = %v", err)
	}
}

// fakeNPM does what npm would do with the version it is asked for, or with another one.
func fakeNPM(t *testing.T, tools, version string) runner {
	return func(_ context.Context, _ io.Reader, argv ...string) error {
		if !slices.Contains(argv, "axe-core@"+axeVersion) {
			t.Errorf("npm was asked for %v", argv)
		}
		folder := filepath.Join(tools, "node_modules", "axe-core")
		return errors.Join(
			os.MkdirAll(folder, 0o755),
			os.WriteFile(filepath.Join(folder, "axe.min.js"), []byte("//"), 0o600),
			os.WriteFile(filepath.Join(folder, "package.json"), []byte(`{"version":"`+version+`"}`), 0o600))
	}
}

func TestInstallAxe_OnceAndThePinnedVersion(t *testing.T) {
	t.Parallel()
	tools := t.TempDir()
	if err := installAxe(t.Context(), io.Discard, tools, fakeNPM(t, tools, "1.0.0")); err == nil {
		t.Error("another version was accepted")
	}
	if err := installAxe(t.Context(), io.Discard, tools, fakeNPM(t, tools, axeVersion)); err != nil {
		t.Fatal(err)
	}
	again := func(context.Context, io.Reader, ...string) error { return errors.New("it is there already") }
	if err := installAxe(t.Context(), io.Discard, tools, again); err != nil {
		t.Error(err)
	}
}
