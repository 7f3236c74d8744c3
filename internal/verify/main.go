// Verify checks the rules of this repository that the compiler does not know:
// who may import whom, that only the job layer retries, that one package begins
// transactions and one reads the environment, that what is exported is
// documented, and what no file may say. Run it from the module's root:
//
//	go run ./internal/verify
//
// Each finding is a line "file:line: sentence"; it ends with status 1 when there
// is one, and with status 2 when it could not look.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, ".", os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run checks the module in dir and returns the exit status.
func run(ctx context.Context, dir string, stdout, stderr io.Writer) int {
	findings, err := check(ctx, dir)
	if err != nil {
		fmt.Fprintln(stderr, "verify:", err)
		return 2
	}
	for _, finding := range findings {
		fmt.Fprintf(stdout, "%s:%d: %s\n", finding.File, finding.Line, finding.Message)
	}
	if len(findings) > 0 {
		return 1
	}
	return 0
}
