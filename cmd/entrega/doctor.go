package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"entrega/internal/localpg"
	"entrega/internal/store"
	"entrega/internal/tenant"
	"entrega/jobs"
)

func doctorCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with the environment and how to mend it",
		Long:  "Looks at settings, database, key, policies and listen address, without changing anything, and says for each what is wrong and how to mend it.\nIt starts the private Postgres for the moment if it does not run.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return doctor(cmd.Context(), env) },
	}
}

// examination collects what the doctor finds.
type examination struct {
	out      io.Writer
	problems int
}

func (e *examination) fine(what, detail string) {
	fmt.Fprintf(e.out, "  ok    %-14s %s\n", what, detail)
}

func (e *examination) wrong(what string, err error) {
	e.problems++
	fmt.Fprintf(e.out, "  WRONG %-14s %s\n", what, err)
}

func doctor(ctx context.Context, env environment) error {
	e := &examination{out: env.out}
	c, err := LoadConfig(env.getenv)
	if err != nil {
		e.wrong("settings", err)
	} else {
		e.fine("settings", "all readable")
	}
	e.policies(c)
	e.listen(ctx, c)
	e.database(ctx, c)
	if e.problems > 0 {
		return fmt.Errorf("%d of the checks found something to mend", e.problems)
	}
	return nil
}

func (e *examination) policies(c Config) {
	set, err := jobs.LoadPolicies(c.Policies)
	if err != nil {
		e.wrong("policies", err)
		return
	}
	e.fine("policies", fmt.Sprintf("%d in force", len(set.All())))
}

func (e *examination) listen(ctx context.Context, c Config) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		e.fine("listen", c.Listen+" is taken: by a running serve, one hopes; else set ENTREGA_LISTEN to another port")
		return
	}
	l.Close()
	e.fine("listen", c.Listen+" is free")
}

func (e *examination) database(ctx context.Context, c Config) {
	dsn := c.DatabaseURL
	if dsn == "" {
		installs, err := localpg.Find(c.PgBin)
		if err != nil {
			e.wrong("postgres", err)
			return
		}
		e.fine("postgres", "server binaries in "+installs[0].Dir)
		if _, err := os.Stat(filepath.Join(c.Data, "pg")); errors.Is(err, os.ErrNotExist) {
			e.fine("database", "none yet in "+c.Data+"; serve makes it")
			return
		}
		server, err := localpg.Start(ctx, localpg.Options{Dir: c.Data, BinDir: c.PgBin})
		if err != nil {
			e.wrong("database", err)
			return
		}
		defer server.Stop(context.WithoutCancel(ctx))
		dsn = server.DSN(localpg.Database)
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	pool, err := store.Open(ctx, dsn, store.Options{MaxConns: 2})
	if err != nil {
		e.wrong("database", fmt.Errorf("%w. Check DATABASE_URL and that the server accepts this machine", err))
		return
	}
	defer pool.Close()
	var server string
	if err := pool.QueryRow(ctx, `show server_version`).Scan(&server); err != nil {
		e.wrong("database", err)
		return
	}
	e.fine("database", "Postgres "+server+" answers")
	e.contents(ctx, c, pool)
}

// contents looks at what is in the database: its clock, its schema, its admin, and whether the key opens its secrets.
func (e *examination) contents(ctx context.Context, c Config, db store.DB) {
	var theirs time.Time
	if err := db.QueryRow(ctx, `select clock_timestamp()`).Scan(&theirs); err == nil {
		if drift := time.Since(theirs).Abs(); drift > 2*time.Second {
			e.wrong("clock", fmt.Errorf("this machine's and the database's differ by %s. Set both by NTP", drift.Round(time.Second)))
		} else {
			e.fine("clock", "agrees with the database's")
		}
	}
	var version int
	if err := db.QueryRow(ctx, `select version from public.entrega_schema_version`).Scan(&version); err != nil {
		e.wrong("schema", errors.New("is not there yet. Run: entrega migrate"))
		return
	}
	e.fine("schema", fmt.Sprintf("version %d", version))
	if exists, err := tenant.AdminExists(ctx, db); err == nil && !exists {
		e.wrong("admin", errors.New("there is none. Run: entrega user create --email you@example.com --admin, or open the set-up link that serve prints"))
	} else if err == nil {
		e.fine("admin", "there is one")
	}
	e.key(ctx, c, db)
}

func (e *examination) key(ctx context.Context, c Config, db store.DB) {
	if file := filepath.Join(c.Data, keyFile); c.DatabaseURL == "" && c.SecretKey == nil {
		if _, err := os.Stat(file); err != nil {
			e.missingKey(ctx, file, db)
			return
		}
	}
	if err := c.ensureKey(); err != nil {
		e.wrong("secret key", err)
		return
	}
	box, err := newBox(c)
	if err != nil {
		e.wrong("secret key", err)
		return
	}
	rows, err := db.Query(ctx, `select id, sealed from endpoint_secrets order by created_at desc limit 20`)
	if err != nil {
		e.wrong("secret key", err)
		return
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		var sealed []byte
		if err := rows.Scan(&id, &sealed); err != nil {
			e.wrong("secret key", err)
			return
		}
		if _, err := box.Open(sealed, "endpoint_secrets", id); err != nil {
			e.wrong("secret key", fmt.Errorf("%w. Put back the key that sealed it, as ENTREGA_SECRET_KEY or ENTREGA_SECRET_KEY_OLD", err))
			return
		}
	}
	e.fine("secret key", "opens the newest secrets")
}

// missingKey tells a key that was lost from one that was never needed yet.
func (e *examination) missingKey(ctx context.Context, file string, db store.DB) {
	var sealed bool
	err := db.QueryRow(ctx, `select exists (select from endpoint_secrets) or exists (select from mail_keys)`).Scan(&sealed)
	switch {
	case err != nil:
		e.wrong("secret key", err)
	case sealed:
		e.wrong("secret key", fmt.Errorf("%s is not there. Put it back from your backup: stored secrets cannot be opened without it", file))
	default:
		e.fine("secret key", "none yet; serve makes it")
	}
}
