package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"entrega/internal/localpg"
)

// bench is one benchmark: a private Postgres, a receiver, and the figures so far.
type bench struct {
	settings
	temporary bool
	server    *localpg.Server
	receiver  *receiver
	figures   *figures
	databases int
}

func newBench(ctx context.Context, s settings) (b *bench, err error) {
	b = &bench{settings: s, figures: newFigures()}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.binary, err = filepath.Abs(s.binary); err != nil {
		return b, err
	}
	if b.data == "" {
		if b.data, err = os.MkdirTemp("", "entrega-bench-"); err != nil {
			return b, err
		}
		b.temporary = true
		if err := os.Chmod(b.data, 0o755); err != nil { // Postgres runs as another user when this runs as root.
			return b, err
		}
	}
	options := localpg.Options{Dir: b.data}
	if b.statements != "" {
		options.Settings = statementSettings()
	}
	if b.server, err = localpg.Start(ctx, options); err != nil {
		return b, err
	}
	if err := b.ageLog(ctx); err != nil {
		return b, err
	}
	b.receiver, err = startReceiver(ctx)
	return b, err
}

func (b *bench) close() error {
	if b.receiver != nil {
		b.receiver.stop()
	}
	var err error
	if b.server != nil {
		err = b.server.Stop(context.Background())
	}
	if b.temporary {
		err = errors.Join(err, os.RemoveAll(b.data))
	}
	return err
}

// measure runs everything as often as asked, and writes the table after each run.
func (b *bench) measure(ctx context.Context) error {
	for n := range b.runs {
		fmt.Printf("run %d of %d\n", n+1, b.runs)
		if err := b.limits(ctx); err != nil {
			return fmt.Errorf("measure the limits: %w", err)
		}
		if err := b.entrega(ctx); err != nil {
			return err
		}
		fmt.Println(b.figures.table())
	}
	if b.growthDir != "" {
		if err := b.growth(ctx); err != nil {
			return err
		}
	}
	if b.out == "" {
		return nil
	}
	return b.figures.write(b.out)
}
