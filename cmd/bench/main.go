// Command bench measures Entrega on the machine at hand: first what the machine allows without it, then Entrega itself, as a
// process of its own on a private Postgres with durable settings, in the same run, so that the ratios mean something. It prints a
// table and writes the section "Deliveries" of docs/performance.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"
)

// settings are what the command line says.
type settings struct {
	binary  string
	runs    int
	only    *regexp.Regexp
	out     string
	data    string
	profile string
	trace   string
	// statements is a folder for accounts of what Postgres did.
	statements string
	// growthDir is where the pictures of growth go; empty leaves growth out.
	growthDir string
	scale     float64
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench: "+err.Error())
		os.Exit(1)
	}
}

func parse(args []string) (settings, error) {
	var s settings
	var only string
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&s.binary, "entrega", "bin/entrega", "the binary to measure")
	f.IntVar(&s.runs, "runs", 3, "how often to measure each figure")
	f.StringVar(&only, "only", "", "measure the figures whose names match; the limits always")
	f.StringVar(&s.out, "out", "", "file whose section \"Deliveries\" to write, such as docs/performance.md")
	f.StringVar(&s.data, "data", "", "folder for the private Postgres; a temporary one when empty")
	f.StringVar(&s.profile, "cpuprofile", "", "folder for a CPU profile of Entrega during each figure")
	f.StringVar(&s.trace, "trace", "", "folder for an execution trace of Entrega during each figure")
	f.StringVar(&s.statements, "statements", "", "folder for an account of Postgres' statements during each figure")
	f.StringVar(&s.growthDir, "growth", "", "folder for pictures of how it goes with more of everything, such as docs; they are not measured when empty")
	f.Float64Var(&s.scale, "scale", 1, "multiplies the sizes, for a quick look")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	var err error
	if s.only, err = regexp.Compile(only); err != nil {
		return s, fmt.Errorf("-only: %w", err)
	}
	if s.runs < 1 || s.scale <= 0 {
		return s, errors.New("-runs and -scale must be positive")
	}
	return s, nil
}

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	b, err := newBench(ctx, s)
	if err != nil {
		return err
	}
	return errors.Join(b.measure(ctx), b.close())
}

// size scales a number of things down for a quick look.
func (b *bench) size(n int) int { return max(1, int(float64(n)*b.scale)) }

// lasting scales a duration down for a quick look.
func (b *bench) lasting(d time.Duration) time.Duration {
	return max(2*time.Second, time.Duration(float64(d)*b.scale))
}
