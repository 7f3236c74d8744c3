package localpg

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// sheltered is where root keeps a cluster whose data folder the server's user cannot reach, such as one below /root.
	sheltered = "/var/lib/entrega"

	// maxSocketPath is what every system takes: sun_path holds 104 bytes on macOS and 108 on Linux, with the final zero.
	maxSocketPath = 103
)

// settle returns the folder that holds, or shall hold, the pg folder. It is the data folder itself, unless the server's
// user cannot enter it: then it is a new folder under /var/lib/entrega, and <dir>/pg is a symbolic link into it, which
// later runs follow. Removing the data folder thus forgets the cluster, and the next one starts empty.
func settle(ctx context.Context, dir string, a account, i Installation) (string, error) {
	link := filepath.Join(dir, "pg")
	real, err := filepath.EvalSymlinks(link)
	switch {
	case err == nil:
		root := filepath.Dir(real)
		if err := openTo(a, dir, root); err != nil {
			return "", err
		}
		if !a.reaches(ctx, root, i) {
			return "", fmt.Errorf("user %s, as whom postgres runs, cannot reach %s: open the folders above it (chmod o+x), "+
				"or set ENTREGA_DATA to another folder", a.name, real)
		}
		return root, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("find the private postgres: %w", err)
	}
	if target, err := os.Readlink(link); err == nil {
		return "", fmt.Errorf("%s leads to %s, which is gone: bring it back, or remove the link to start empty", link, target)
	}

	// The server chases links by itself, so its folder is named without any.
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("find the data folder: %w", err)
	}
	if err := openTo(a, dir, root); err != nil {
		return "", err
	}
	if a.reaches(ctx, root, i) {
		return root, nil
	}
	return shelter(link, dir)
}

// openTo lets the server's user pass through our own data folder, whose secrets have modes of their own.
func openTo(a account, dir, root string) error {
	if !a.lent || filepath.Clean(root) != evaluated(dir) {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("open the data folder to user %s: %w", a.name, err)
	}
	if info.Mode().Perm()&0o001 != 0 {
		return nil
	}
	if err := os.Chmod(dir, info.Mode().Perm()|0o001); err != nil {
		return fmt.Errorf("open the data folder to user %s: %w", a.name, err)
	}
	return nil
}

func evaluated(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

func shelter(link, dir string) (string, error) {
	if err := os.MkdirAll(sheltered, 0o755); err != nil {
		return "", fmt.Errorf("make a folder that postgres can reach: %w", err)
	}
	root, err := os.MkdirTemp(sheltered, "data-")
	if err != nil {
		return "", fmt.Errorf("make a folder that postgres can reach: %w", err)
	}
	if err := os.Chmod(root, 0o711); err != nil {
		return "", fmt.Errorf("make a folder that postgres can reach: %w", err)
	}
	// For whoever finds the folder later and asks whose it is.
	if err := os.WriteFile(filepath.Join(root, "ORIGIN"), []byte(dir+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("note where the cluster belongs: %w", err)
	}
	if err := os.Symlink(filepath.Join(root, "pg"), link); err != nil {
		return "", fmt.Errorf("link to the cluster: %w", err)
	}
	return root, nil
}

// socketDir makes the folder of the unix socket: beside the cluster, or under the temporary folder when its path would
// be too long for a socket.
func (c *cluster) socketDir(ctx context.Context) (string, error) {
	root := filepath.Dir(c.data)
	sum := sha256.Sum256([]byte(c.data))
	name := "entrega-" + hex.EncodeToString(sum[:6])
	candidates := []string{filepath.Join(root, "run"), filepath.Join(os.TempDir(), name), filepath.Join("/tmp", name)}
	for _, dir := range candidates {
		if len(filepath.Join(dir, ".s.PGSQL."+port)) > maxSocketPath || !c.account.reaches(ctx, filepath.Dir(dir), c.install) {
			continue
		}
		return dir, c.account.mkdir(dir)
	}
	return "", fmt.Errorf("no folder for the socket of the private postgres is short enough: set TMPDIR to a short path")
}
