package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/webhooks"
)

const (
	demoEmail    = "owner@demo.example"
	demoProject  = "Demo shop"
	demoReceiver = "127.0.0.1:8090"
	demoEvery    = 5 * time.Second
)

func demoCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Serve with a sample project, three receivers and a stream of events",
		Long: "Serves like `entrega serve`, and adds a project with an owner who can log in, three endpoints served by a receiver on this machine (one healthy,\n" +
			"one that fails twice before it works, one that asks to be left alone for a while), and a small stream of events. A second run keeps the data.\n\n" + settingsHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), env) },
	}
}

func demo(ctx context.Context, env environment) error {
	c, err := LoadConfig(env.getenv)
	if err != nil {
		return err
	}
	receiver, err := startReceiver(ctx, demoReceiver)
	if err != nil {
		return err
	}
	defer receiver.stop()
	// The receiver is on this machine and has no certificate; nothing else becomes reachable.
	c.AllowHTTP = true
	c.EgressAllow = append(c.EgressAllow, receiver.addr())

	log := slog.New(slog.NewTextHandler(env.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	a, err := newApp(ctx, c, log)
	if err != nil {
		return err
	}
	a.hurry = env.hurry
	project, err := a.prepareDemo(ctx, env, receiver)
	if err != nil {
		return errors.Join(err, a.close())
	}
	ctx, stop := context.WithCancel(ctx)
	var stream sync.WaitGroup
	err = a.run(ctx, nil, func() {
		fmt.Fprintf(env.out, "\n  Panel     %s\n  Log in as %s\n  Ctrl-C stops it; the data stays in %s.\n\n", a.address(), demoEmail, c.Data)
		stream.Go(func() { a.streamSamples(ctx, project) })
	})
	stop()
	stream.Wait()
	return errors.Join(err, a.close())
}

// prepareDemo makes the owner, the project and the endpoints on the first run, and points the endpoints at the receiver on each.
func (a *app) prepareDemo(ctx context.Context, env environment, r *receiver) (project string, err error) {
	owner, err := tenant.UserByEmail(ctx, a.db.pool, demoEmail)
	if errors.Is(err, store.ErrNotFound) {
		return a.makeDemo(ctx, env, r)
	}
	if err != nil {
		return "", err
	}
	fmt.Fprintf(env.out, "The password of %s was printed at the first run. To set another: entrega user password --email %s\n", demoEmail, demoEmail)
	memberships, err := tenant.ListProjectsOf(ctx, a.db.pool, owner.ID)
	if err != nil {
		return "", err
	}
	if len(memberships) == 0 {
		return a.makeProject(ctx, env, owner, r)
	}
	project = memberships[0].Project.ID
	return project, a.repointEndpoints(ctx, project, r)
}

func (a *app) makeDemo(ctx context.Context, env environment, r *receiver) (string, error) {
	password := newPassword()
	owner, err := a.accounts.CreateUser(ctx, cli(), tenant.NewUser{Email: demoEmail, Password: password, Admin: true})
	if err != nil {
		return "", err
	}
	fmt.Fprintf(env.out, "The owner of the demo project is %s\n  Password  %s   (shown this once)\n", demoEmail, password)
	return a.makeProject(ctx, env, owner, r)
}

func (a *app) makeProject(ctx context.Context, env environment, owner tenant.User, r *receiver) (string, error) {
	p, err := tenant.CreateProject(ctx, a.db.pool, cli(), tenant.NewProject{Name: demoProject, OwnerID: owner.ID})
	if err != nil {
		return "", err
	}
	_, key, err := tenant.CreateAPIKey(ctx, a.db.pool, cli().In(p.ID), p.ID, tenant.NewAPIKey{Name: "Demo", Scopes: tenant.Scopes()})
	if err != nil {
		return "", err
	}
	fmt.Fprintf(env.out, "  API key   %s   (shown this once)\n", key)
	for _, b := range behaviours {
		if _, err := a.endpoints.CreateEndpoint(ctx, cli().In(p.ID), webhooks.NewEndpoint{Settings: webhooks.Settings{URL: r.url(b), Description: b.about}}); err != nil {
			return "", fmt.Errorf("make the sample endpoint %s: %w", b.path, err)
		}
	}
	return p.ID, nil
}

// streamSamples publishes a few events at once and then one now and again.
func (a *app) streamSamples(ctx context.Context, project string) {
	tick := time.NewTicker(demoEvery)
	defer tick.Stop()
	for range 8 {
		a.publishSample(ctx, project)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.publishSample(ctx, project)
		}
	}
}

func (a *app) publishSample(ctx context.Context, project string) {
	order := 10_000 + rand.IntN(90_000)
	samples := []events.New{
		{Type: "order.created", Data: fmt.Appendf(nil, `{"order_id":"SO-%d","total":"%d.90","currency":"EUR"}`, order, 20+rand.IntN(300))},
		{Type: "invoice.paid", Data: fmt.Appendf(nil, `{"invoice_id":"IN-%d","order_id":"SO-%d"}`, order, order)},
		{Type: "order.shipped", Data: fmt.Appendf(nil, `{"order_id":"SO-%d","carrier":"Post","parcels":%d}`, order, 1+rand.IntN(3))},
	}
	if _, err := events.Publish(ctx, a.db.pool, project, samples[rand.IntN(len(samples))]); err != nil && ctx.Err() == nil {
		a.log.WarnContext(ctx, "publish a sample event", "error", err)
	}
}
