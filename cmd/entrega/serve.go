package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
)

func serveCommand(env environment) *cobra.Command {
	var without []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the panel and the API, and work the queues",
		Long:  "Serves the panel and the API, and works the queues, until it is told to stop. It brings the database to its schema first.\nAny number of nodes may share one database.\n\n" + settingsHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkWithout(without); err != nil {
				return err
			}
			return serve(cmd.Context(), env, without)
		},
	}
	cmd.Flags().StringSliceVar(&without, "without", nil, "leave out a part of the node: web or work")
	return cmd
}

func serve(ctx context.Context, env environment, without []string) error {
	c, err := LoadConfig(env.getenv)
	if err != nil {
		return err
	}
	for _, line := range c.Lines() {
		fmt.Fprintln(env.err, "entrega: "+line)
	}
	log := slog.New(slog.NewTextHandler(env.err, nil))
	a, err := newApp(ctx, c, log)
	if err != nil {
		return err
	}
	a.hurry = env.hurry
	if err := a.offerSetUp(ctx, env); err != nil {
		return errors.Join(err, a.close())
	}
	err = a.run(ctx, without, func() {
		fmt.Fprintf(env.out, "Entrega %s is ready: %s\n", version, a.address())
	})
	return errors.Join(err, a.close())
}

// offerSetUp prints a one-time link as long as there is no admin.
func (a *app) offerSetUp(ctx context.Context, env environment) error {
	token, err := a.accounts.SetUpLink(ctx)
	if err != nil || token == "" {
		return err
	}
	_, err = fmt.Fprintf(env.out, "There is no admin yet. Make the first one within a day: %s/setup/%s\n", a.address(), token)
	return err
}

// address is where people open the panel.
func (a *app) address() string { return a.config.PublicURL.String() }
