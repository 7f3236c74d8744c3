package web_test

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/egress"
	"entrega/internal/seal"
	"entrega/internal/store/storetest"
	"entrega/internal/tenant"
	"entrega/jobs"
	"entrega/mailer"
	"entrega/web"
	"entrega/webhooks"
)

const password = "correct horse battery"

var quiet = slog.New(slog.DiscardHandler)

// panel is one test's own installation: a database, the server, and two projects that must see nothing of each other.
type panel struct {
	t         *testing.T
	ctx       context.Context
	pool      *pgxpool.Pool
	policies  *jobs.PolicySet
	client    *jobs.Client
	accounts  *tenant.Accounts
	door      *egress.Door
	box       *seal.Box
	endpoints *webhooks.Endpoints
	mailer    *mailer.Mailer
	periodic  []jobs.Periodic
	server    *web.Server
	url       string

	// ours has an owner, on-call staff and a viewer; theirs has an owner of its own. The admin is in neither.
	ours, theirs tenant.Project
	users        map[string]tenant.User // owner, on-call, viewer, admin, stranger
}

func setup(t *testing.T) *panel {
	t.Helper()
	p := &panel{t: t, ctx: t.Context(), pool: storetest.New(t, jobs.MigrateDSN), users: map[string]tenant.User{}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	p.policies, err = jobs.LoadPolicies("")
	must(err)
	must(p.policies.StoreVersions(p.ctx, p.pool))
	p.client, err = jobs.NewClient(jobs.ClientOptions{Pool: p.pool, Policies: p.policies, Logger: quiet, BeforeRetry: webhooks.BeforeRetry})
	must(err)
	allow, err := egress.ParseAllow("127.0.0.1")
	must(err)
	p.door, err = egress.New(egress.Options{AllowHTTP: true, Allow: allow})
	must(err)
	t.Cleanup(p.door.Close)
	p.box, err = seal.New(seal.NewKey())
	must(err)
	p.endpoints = webhooks.NewEndpoints(webhooks.EndpointsOptions{Pool: p.pool, Client: p.client, Door: p.door, Box: p.box, Logger: quiet})
	p.mailer, err = mailer.NewMailer(mailer.MailerOptions{Pool: p.pool, Client: p.client, Box: p.box, Door: p.door, Logger: quiet})
	must(err)
	p.accounts = tenant.NewAccounts(tenant.AccountsOptions{Pool: p.pool, Passwords: tenant.NewPasswords(tenant.Argon2Params{Time: 1, MemoryKiB: 64, Threads: 1})})
	p.periodic = []jobs.Periodic{jobs.LedgerPartitions(p.pool)}
	p.people()
	p.serve("http")
	return p
}

// people makes the two projects and everybody in them.
func (p *panel) people() {
	p.t.Helper()
	for _, name := range []string{"owner", "on-call", "viewer", "admin", "stranger"} {
		user, err := p.accounts.CreateUser(p.ctx, tenant.CLI("test"), tenant.NewUser{Email: name + "@example.com", Password: password, Admin: name == "admin"})
		if err != nil {
			p.t.Fatal(err)
		}
		p.users[name] = user
	}
	p.ours = p.newProject("Acme Market", "owner")
	p.theirs = p.newProject("Other Shop", "stranger")
	for name, role := range map[string]tenant.Role{"on-call": tenant.RoleOnCall, "viewer": tenant.RoleViewer} {
		if _, err := tenant.AddMember(p.ctx, p.pool, tenant.CLI("test").In(p.ours.ID), p.ours.ID, name+"@example.com", role); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *panel) newProject(name, owner string) tenant.Project {
	p.t.Helper()
	project, err := tenant.CreateProject(p.ctx, p.pool, tenant.CLI("test"), tenant.NewProject{Name: name, OwnerID: p.users[owner].ID})
	if err != nil {
		p.t.Fatal(err)
	}
	return project
}

// serve starts the server on loopback; the scheme is that of its public URL. adjust may change its options.
func (p *panel) serve(scheme string, adjust ...func(*web.Options)) {
	p.t.Helper()
	listening := httptest.NewUnstartedServer(nil)
	public := &url.URL{Scheme: scheme, Host: listening.Listener.Addr().String()}
	o := web.Options{Pool: p.pool, Client: p.client, Accounts: p.accounts, Endpoints: p.endpoints, Mailer: p.mailer, Door: p.door, Periodic: p.periodic,
		PublicURL: public, Version: "test", Logger: quiet}
	for _, change := range adjust {
		change(&o)
	}
	server, err := web.New(o)
	if err != nil {
		p.t.Fatal(err)
	}
	p.server = server
	listening.Config.Handler = server.Handler()
	listening.Start()
	p.url = listening.URL
	p.t.Cleanup(func() {
		server.Close()
		listening.Close()
	})
}

// ownerOf is the acting owner of a project, for making what a test needs.
func (p *panel) ownerOf(project tenant.Project) tenant.Actor {
	return tenant.Actor{Kind: tenant.ActorUser, ID: p.users["owner"].ID, Name: "owner@example.com", ProjectID: project.ID, Role: tenant.RoleOwner}
}

func (p *panel) newEndpoint(project tenant.Project, s webhooks.Settings) webhooks.Endpoint {
	p.t.Helper()
	created, err := p.endpoints.CreateEndpoint(p.ctx, p.ownerOf(project), webhooks.NewEndpoint{Settings: s})
	if err != nil {
		p.t.Fatal(err)
	}
	return created.Endpoint
}

func (p *panel) exec(sql string, args ...any) {
	p.t.Helper()
	if _, err := p.pool.Exec(p.ctx, sql, args...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *panel) scan(into any, sql string, args ...any) {
	p.t.Helper()
	if err := p.pool.QueryRow(p.ctx, sql, args...).Scan(into); err != nil {
		p.t.Fatal(err)
	}
}

func (p *panel) now() time.Time { return time.Now().UTC() }
