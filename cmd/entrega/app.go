package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"time"

	"entrega/internal/alerts"
	"entrega/internal/egress"
	"entrega/internal/events"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
	"entrega/web"
	"entrega/webhooks"
)

// poolSize is how many connections one node takes at most: what its fetchers, ledger writers, lanes, relay and panel want at once.
// Deliveries in flight hold none.
const poolSize = 20

// leastPool is what a node needs so that none of its parts can starve another.
const leastPool = 12

// app is one node: the object graph, built once.
type app struct {
	config    Config
	log       *slog.Logger
	db        *database
	accounts  *tenant.Accounts
	client    *jobs.Client
	ledger    *jobs.Ledger
	door      *egress.Door
	endpoints *webhooks.Endpoints
	deliverer *webhooks.Deliverer
	relay     *events.Relay
	mailer    *mailer.Mailer
	sender    *mailer.Sender
	mailDoor  *egress.Door
	scanner   *alerts.Scanner
	worker    *jobs.Worker
	listener  net.Listener
	web       *web.Server
	// hurry closes when a stop must not wait for what is under way; nil never does.
	hurry <-chan struct{}
}

// newApp connects, migrates and builds. It begins no work; close undoes it.
func newApp(ctx context.Context, c Config, log *slog.Logger) (a *app, err error) {
	a = &app{config: c, log: log}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	policies, err := jobs.LoadPolicies(c.Policies)
	if err != nil {
		return a, err
	}
	if a.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen); err != nil {
		return a, fmt.Errorf("ENTREGA_LISTEN: %w. Is another Entrega running? Else choose another port", err)
	}
	if c.PublicURL.Host == browsable(c.Listen) {
		c.PublicURL.Host = browsable(a.listener.Addr().String()) // port 0 is known only now
	}
	if a.db, err = openDatabase(ctx, c, poolSize, log); err != nil {
		return a, err
	}
	if n := a.db.pool.Config().MaxConns; n < leastPool {
		return a, fmt.Errorf("DATABASE_URL: allows %d connections, but a node needs %d. Raise pool_max_conns to %d or leave it out", n, leastPool, leastPool)
	}
	if err := a.config.ensureKey(); err != nil {
		return a, err
	}
	box, err := newBox(a.config)
	if err != nil {
		return a, err
	}
	if err := policies.StoreVersions(ctx, a.db.pool); err != nil {
		return a, err
	}
	if a.door, err = newDoor(c, a.listener, a.db); err != nil {
		return a, err
	}
	if a.mailDoor, err = newMailDoor(c, a.listener, a.db); err != nil {
		return a, err
	}
	if a.client, err = jobs.NewClient(jobs.ClientOptions{Pool: a.db.pool, Policies: policies, Logger: log, BeforeRetry: webhooks.BeforeRetry}); err != nil {
		return a, err
	}
	node, gate := jobs.NewNodeID(), store.NewGate(runtime.GOMAXPROCS(0))
	a.ledger = jobs.NewLedger(jobs.LedgerOptions{Pool: a.db.pool, Gate: gate, Logger: log})
	a.accounts = tenant.NewAccounts(tenant.AccountsOptions{Pool: a.db.pool})
	a.endpoints = webhooks.NewEndpoints(webhooks.EndpointsOptions{Pool: a.db.pool, Client: a.client, Door: a.door, Box: box, Logger: log})
	a.deliverer = webhooks.NewDeliverer(webhooks.DelivererOptions{Pool: a.db.pool, Client: a.client, Door: a.door, Box: box, Gate: gate, Logger: log, NodeID: node, Version: version})
	a.relay = events.NewRelay(events.RelayOptions{Pool: a.db.pool, Client: a.client, Logger: log})
	if a.mailer, err = mailer.NewMailer(mailer.MailerOptions{Pool: a.db.pool, Client: a.client, Box: box, Installation: c.Mail, Door: a.door, OwnDoor: a.mailDoor, Logger: log}); err != nil {
		return a, err
	}
	if err := a.mailer.ForgetOldPause(ctx); err != nil {
		return a, err
	}
	a.sender = mailer.NewSender(mailer.SenderOptions{Mailer: a.mailer, Links: mailLinks{a.accounts, c.PublicURL}})

	periodic := []jobs.Periodic{
		jobs.LedgerPartitions(a.db.pool),
		jobs.StatsRollup(a.db.pool, time.Now),
		{Name: "people.sweep", About: "Removes expired sessions, links and log-in counters.", Every: time.Hour, Do: func(ctx context.Context) error {
			_, err := tenant.Sweep(ctx, a.db.pool, time.Now())
			return err
		}},
		mailer.Retention(a.db.pool, time.Now),
		{Name: "mail.sweep", About: "Forgets how many mails recipients got in hours that are over.", Every: time.Hour, Do: func(ctx context.Context) error {
			return mailer.SweepSlots(ctx, a.db.pool, time.Now())
		}},
	}
	a.scanner = alerts.NewScanner(alerts.Options{Pool: a.db.pool, Policies: policies, Periodic: periodic, Logger: log})

	// Every kind with its handler, on one screen.
	registrations := append(a.deliverer.Registrations(),
		jobs.On(jobs.BulkTasks, a.client.WorkBulk),
	)
	registrations = append(registrations, a.sender.Registrations()...)
	a.worker, err = jobs.NewWorker(jobs.WorkerOptions{Client: a.client, Pool: a.db.pool, Ledger: a.ledger, Logger: log, NodeID: node, Version: version,
		Claimer: a.deliverer, Gate: gate, Periodic: periodic}, registrations...)
	if err != nil {
		return a, err
	}
	a.web, err = web.New(web.Options{Pool: a.db.pool, Client: a.client, Accounts: a.accounts, Endpoints: a.endpoints, Mailer: a.mailer,
		Door: a.door, OIDC: c.OIDC, SignUpClosed: c.SignUpClosed, Periodic: periodic, PublicURL: c.PublicURL, TrustedProxies: c.TrustedProxies,
		Version: version, Relay: a.relay, Gate: gate, Logger: log})
	return a, err
}

// close gives back what newApp took, in reverse.
func (a *app) close() error {
	if a.web != nil {
		a.web.Close()
	}
	if a.ledger != nil {
		a.ledger.Close()
	}
	if a.sender != nil {
		a.sender.Close()
	}
	for _, door := range []*egress.Door{a.door, a.mailDoor} {
		if door != nil {
			door.Close()
		}
	}
	var err error
	if a.listener != nil {
		if closeErr := a.listener.Close(); closeErr != nil && !errors.Is(closeErr, net.ErrClosed) {
			err = closeErr
		}
	}
	if a.db != nil {
		err = errors.Join(err, a.db.close())
	}
	return err
}

// newDoor is the guard of outgoing calls. This installation's own addresses and its database's stay closed whatever is allowed.
func newDoor(c Config, l net.Listener, d *database) (*egress.Door, error) {
	allow, err := egress.ParseAllow(c.EgressAllow...)
	if err != nil {
		return nil, fmt.Errorf("ENTREGA_EGRESS_ALLOW: %w", err)
	}
	deny := []netip.AddrPort{}
	if own, err := netip.ParseAddrPort(l.Addr().String()); err == nil {
		deny = append(deny, own)
	}
	conn := d.pool.Config().ConnConfig
	if addr, err := netip.ParseAddr(conn.Host); err == nil {
		deny = append(deny, netip.AddrPortFrom(addr, conn.Port))
	}
	return egress.New(egress.Options{Allow: allow, AllowHTTP: c.AllowHTTP, DenyAddrs: deny, UserAgent: "Entrega/" + version})
}
