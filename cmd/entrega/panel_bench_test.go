package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"entrega/internal/localpg"
	"entrega/internal/store"
)

var (
	panelSizes  = flag.String("panel.tasks", "10000,100000,1000000", "numbers of tasks with which BenchmarkPanel measures")
	panelRounds = flag.Int("panel.rounds", 5, "rounds over all pages; the median of their figures counts")
	panelData   = flag.String("panel.data", "", "folder that keeps the filled installations for later runs; a temporary one when empty")
)

// panelRequests is how often a round asks for each page.
const panelRequests = 40

// panelFigure is what one page took.
type panelFigure struct {
	p50, p95 time.Duration
	// page and all are bytes on the wire: of the page, and of a first visit to it. The others are the same unpacked.
	page, all, plainPage, plainAll int
}

// BenchmarkPanel fills installations of several sizes and opens their pages as a browser does, one after the other, against a
// process of its own on a private Postgres with durable settings. It prints a table: milliseconds until the last byte, beside a
// round trip of `select 1` to the same Postgres in the same run.
func BenchmarkPanel(b *testing.B) {
	var sizes []string
	var names []string
	figures := map[string][]panelFigure{}
	for size := range strings.SplitSeq(*panelSizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil {
			b.Fatalf("-panel.tasks: %v", err)
		}
		b.Run("tasks="+size, func(b *testing.B) {
			for range b.N {
				pages, measured := measurePanel(b, n)
				names = pages
				for i, name := range pages {
					figures[name] = append(figures[name], measured[i])
				}
			}
		})
		sizes = append(sizes, size)
	}
	printPanel(sizes, names, figures)
}

// measurePanel fills an installation and measures its pages; the first figure is that of `select 1`.
func measurePanel(b *testing.B, tasks int) (names []string, figures []panelFigure) {
	b.Helper()
	in := install(b)
	in.fill(tasks)
	in.start("serve", "--without=work")
	pool := in.pool()
	browser := openPanel(b, in.url)
	var filled int
	if err := pool.QueryRow(context.Background(), `select count(*) from river_job where project_id is not null`).Scan(&filled); err != nil || filled != tasks {
		b.Fatalf("the installation has %d tasks instead of %d: %v", filled, tasks, err)
	}
	pages := panelPages(b, pool)

	ask := []func(){func() {
		if _, err := pool.Exec(context.Background(), `select 1`); err != nil {
			b.Fatal(err)
		}
	}}
	names, figures = []string{"`select 1`"}, []panelFigure{{}}
	for _, p := range pages {
		names = append(names, p.name)
		ask = append(ask, func() { browser.get(p.path, true) })
		var f panelFigure
		f.page, f.all = browser.weight(p.path, true)
		f.plainPage, f.plainAll = browser.weight(p.path, false)
		figures = append(figures, f)
	}
	p50, p95 := make([][]time.Duration, len(ask)), make([][]time.Duration, len(ask))
	for range *panelRounds {
		for i, once := range ask {
			took := make([]time.Duration, panelRequests)
			for k := range took {
				started := time.Now()
				once()
				took[k] = time.Since(started)
			}
			slices.Sort(took)
			p50[i], p95[i] = append(p50[i], took[len(took)/2]), append(p95[i], took[len(took)*95/100])
		}
	}
	for i := range ask {
		figures[i].p50, figures[i].p95 = median(p50[i]), median(p95[i])
	}
	return names, figures
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

func printPanel(sizes, names []string, figures map[string][]panelFigure) {
	var out strings.Builder
	out.WriteString("\n| page |")
	for _, size := range sizes {
		fmt.Fprintf(&out, " %s: p50 ms | p95 ms |", size)
	}
	out.WriteString(" growth | in `select 1` | KB | first visit | KB unpacked | first visit |\n|---|" + strings.Repeat("---|", 2*len(sizes)+6) + "\n")
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for _, name := range names {
		all := figures[name]
		if len(all) == 0 {
			continue
		}
		fmt.Fprintf(&out, "| %s |", name)
		for _, f := range all {
			fmt.Fprintf(&out, " %.2f | %.2f |", ms(f.p50), ms(f.p95))
		}
		last := all[len(all)-1]
		unit := figures[names[0]][len(all)-1].p50
		fmt.Fprintf(&out, " %.1f | %.0f | %.1f | %.1f | %.1f | %.1f |\n", float64(last.p50)/float64(all[0].p50), float64(last.p50)/float64(unit),
			float64(last.page)/1000, float64(last.all)/1000, float64(last.plainPage)/1000, float64(last.plainAll)/1000)
	}
	fmt.Print(out.String())
}

// fill runs `entrega seed`, unless an earlier run has left a filled installation.
func (in *installation) fill(tasks int) {
	in.t.Helper()
	size := strconv.Itoa(tasks)
	if *panelData != "" {
		in.data = filepath.Join(*panelData, size)
		in.env = append(in.env, "ENTREGA_DATA="+in.data)
		if _, err := os.Stat(in.data); err == nil {
			return
		}
	}
	in.patience = time.Hour
	if out, err := in.tryCommand(panelPassword+"\n", "user", "create", "--email", panelEmail, "--admin", "--password-stdin"); err != nil {
		in.t.Fatalf("%v\n%s", err, out)
	}
	fmt.Print(in.command("seed", "--tasks", size, "--owner", panelEmail))
}

// pool connects to the private Postgres beside serve.
func (in *installation) pool() *pgxpool.Pool {
	in.t.Helper()
	ctx := context.Background()
	server, err := localpg.Start(ctx, localpg.Options{Dir: in.data})
	if err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(server.Leave)
	pool, err := store.Open(ctx, server.DSN(localpg.Database), store.Options{MaxConns: 2})
	if err != nil {
		in.t.Fatal(err)
	}
	in.t.Cleanup(pool.Close)
	return pool
}
