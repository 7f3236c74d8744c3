package storetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"entrega/internal/localpg/flock"
)

const keeperPackage = "entrega/internal/store/storetest/keeper"

// ensureKeeper starts a keeper when none is at its post. The caller uses the cluster, so none can be about to leave.
func ensureKeeper(ctx context.Context, dir string) error {
	post, vacant, err := flock.TryExclusive(filepath.Join(dir, "keeper.lock"))
	if err != nil || !vacant {
		return err
	}
	defer post.Close()

	program := filepath.Join(dir, "keeper")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, keeperPackage).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", keeperPackage, err, out)
	}
	// It must outlive this process, and hold none of its pipes: go test waits for their end.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, dir)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{post.Handle()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	go cmd.Wait()
	return nil
}
