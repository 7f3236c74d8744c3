package jobs

import (
	"context"
	"time"
)

type Job[T any] struct{ Args T }

func write() error { return nil }

// The job layer owns waiting, so its loops pass.
func flush() {
	for {
		if err := write(); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// It is bound by the other rules all the same.
func work(ctx context.Context) context.Context {
	return context.Background() // want `retryowner/handler-context: context.Background inside a handler.*context.WithoutCancel`
}

func start() context.Context {
	return context.Background()
}
