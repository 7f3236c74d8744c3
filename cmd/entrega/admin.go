package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// startAdmin serves /metrics and pprof on a listener of their own, which is off unless ENTREGA_ADMIN_LISTEN names it: both tell more
// than the public should know.
func (a *app) startAdmin(ctx context.Context, running *sync.WaitGroup, fail context.CancelCauseFunc) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.config.AdminListen)
	if err != nil {
		return fmt.Errorf("ENTREGA_ADMIN_LISTEN: %w", err)
	}
	server := &http.Server{Handler: adminHandler(a.db.pool), ReadHeaderTimeout: 10 * time.Second}
	running.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serve /metrics: %w", err))
		}
	})
	running.Go(func() {
		<-ctx.Done()
		_ = server.Close() // a scrape that is cut off is scraped again
	})
	return nil
}

func adminHandler(pool *pgxpool.Pool) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for name, read := range map[string]func(*pgxpool.Stat) int32{
		"acquired": (*pgxpool.Stat).AcquiredConns, "idle": (*pgxpool.Stat).IdleConns, "max": (*pgxpool.Stat).MaxConns,
	} {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "entrega_pool_connections_" + name, Help: "Database connections of this node: " + name + "."},
			func() float64 { return float64(read(pool.Stat())) }))
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
