// Setup installs what Entrega's Makefile needs and the machine does not have: the PostgreSQL server for `make run`, and
// with -test also a C compiler (for the race detector), Chromium and axe-core (for the tests in a browser). What is there
// is left alone, so running it again costs a moment. Run it from the module's root:
//
//	go run ./internal/setup [-test] [-pg-bin FOLDER]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	var opts options
	flag.BoolVar(&opts.test, "test", false, "also install what the tests need")
	flag.StringVar(&opts.pgBin, "pg-bin", "", "the `folder` with postgres and initdb; searched for when empty")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := setUp(ctx, os.Stdout, opts)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "setup:", err)
		os.Exit(1)
	}
}
