// Command entrega is the whole product in one binary: it serves the panel and the API, works the queues, and has the commands to set
// both up. It is the only place that reads the environment and builds the object graph.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the build with -ldflags "-X main.version=…".
var version = "0.1.0-dev"

func main() {
	ctx, hurry := untilSignals()
	err := run(ctx, environment{args: os.Args[1:], getenv: os.Getenv, in: os.Stdin, out: os.Stdout, err: os.Stderr, hurry: hurry})
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "entrega: "+err.Error())
		os.Exit(1)
	}
}

// untilSignals gives a context that ends with the first SIGINT or SIGTERM, and a channel that closes with the second. The third
// kills, as it does by default.
func untilSignals() (ctx context.Context, hurry <-chan struct{}) {
	ctx, stop := context.WithCancel(context.Background())
	second := make(chan struct{})
	got := make(chan os.Signal, 1)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-got
		stop()
		<-got
		close(second)
		signal.Stop(got)
	}()
	return ctx, second
}

// environment is all that a command takes from the process, so that tests can give their own.
type environment struct {
	args   []string
	getenv func(string) string
	in     io.Reader
	out    io.Writer
	err    io.Writer
	// hurry closes when whoever stops the program does not want to wait for what is under way; nil never does.
	hurry <-chan struct{}
}

func run(ctx context.Context, env environment) error {
	root := &cobra.Command{
		Use:           "entrega",
		Short:         "Delivers signed webhooks and transactional mail, and shows each task",
		Long:          "Entrega delivers signed webhooks and transactional mail for many tenants, from one binary on one Postgres.\n\nStart with `entrega demo`. Settings come from the environment; `entrega serve --help` lists them.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(serveCommand(env), demoCommand(env), migrateCommand(env), userCommand(env), projectCommand(env),
		policiesCommand(env), evidenceCommand(env), doctorCommand(env), versionCommand(env), seedCommand(env))
	root.SetArgs(env.args)
	root.SetIn(env.in)
	root.SetOut(env.out)
	root.SetErr(env.err)
	return root.ExecuteContext(ctx)
}

func versionCommand(env environment) *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(env.out, "entrega "+version)
			return err
		}}
}
