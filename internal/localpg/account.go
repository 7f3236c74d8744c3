package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that the server runs as. PostgreSQL refuses to run as root, so root lends it another user; anybody
// else runs it as themselves.
type account struct {
	name     string
	uid, gid int
	lent     bool // whether it is another user than ours
}

// accountFor picks the user: the owner of the cluster when there is one, else postgres, else nobody.
func accountFor(data string) (account, error) {
	owner, err := ownerOf(data)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return account{}, fmt.Errorf("find the owner of the private postgres: %w", err)
	}

	if os.Geteuid() != 0 {
		if exists && owner.uid != os.Geteuid() {
			return account{}, fmt.Errorf("%s belongs to user %s: run as the user who made it (root, perhaps), "+
				"or set ENTREGA_DATA to another folder", data, owner.name)
		}
		return account{name: "ourselves", uid: os.Geteuid(), gid: os.Getegid()}, nil
	}

	if exists && owner.uid != 0 {
		owner.lent = true
		return owner, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr == nil && gidErr == nil {
			return account{name: name, uid: uid, gid: gid, lent: true}, nil
		}
	}
	return account{}, errors.New("postgres does not run as root, and there is no user postgres or nobody to run it as: " +
		"add one (useradd --system postgres), or run entrega as another user")
}

func ownerOf(path string) (account, error) {
	info, err := os.Stat(path)
	if err != nil {
		return account{}, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return account{}, fmt.Errorf("%s does not tell its owner", path)
	}
	a := account{name: strconv.Itoa(int(st.Uid)), uid: int(st.Uid), gid: int(st.Gid)}
	if u, err := user.LookupId(a.name); err == nil {
		a.name = u.Username
	}
	return a, nil
}

// command makes a command that runs as the account, in a folder that every user may enter and with none of our
// environment, which holds secrets. It is killed when ctx ends.
func (a account) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if a.lent {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return cmd
}

// check says so when the account may not run the server at all.
func (a account) check(ctx context.Context, i Installation) error {
	if !a.lent || a.command(context.WithoutCancel(ctx), i.postgres(), "--version").Run() == nil {
		return nil
	}
	return fmt.Errorf("user %s may not run %s: open its folders to others (chmod o+x), or run entrega as another user",
		a.name, i.postgres())
}

// reaches reports whether the account can enter dir. The kernel is asked, by starting a process there, since modes,
// access lists and namespaces all have a say. The end of ctx does not count as a no.
func (a account) reaches(ctx context.Context, dir string, i Installation) bool {
	if !a.lent {
		return true
	}
	cmd := a.command(context.WithoutCancel(ctx), i.postgres(), "--version")
	cmd.Dir = dir
	return cmd.Run() == nil
}

// mkdir makes dir, or takes it when it is there and ours, for the account alone.
func (a account) mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make a folder for postgres: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("make a folder for postgres: %w", err)
	}
	owner, err := ownerOf(dir)
	if err != nil {
		return fmt.Errorf("make a folder for postgres: %w", err)
	}
	if !info.IsDir() || (owner.uid != os.Geteuid() && owner.uid != a.uid) {
		return fmt.Errorf("%s is in the way and belongs to user %s: remove it", dir, owner.name)
	}
	if a.lent {
		if err := os.Chown(dir, a.uid, a.gid); err != nil {
			return fmt.Errorf("give %s to user %s: %w", dir, a.name, err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("close %s to others: %w", dir, err)
	}
	return nil
}
