package webhooks

import (
	"context"

	"entrega/jobs"
)

type args struct{}

func deliver(ctx context.Context, job *jobs.Job[args]) error {
	use(context.TODO()) // want `retryowner/handler-context: context.TODO inside a handler`
	use(context.WithoutCancel(ctx))
	go func() {
		use(context.Background()) // want `retryowner/handler-context: context.Background inside a handler`
	}()
	return nil
}

func use(context.Context) {}

// newSender starts what outlives every attempt, and is given no context.
func newSender() {
	use(context.Background())
}

var handler = func(ctx context.Context) {
	use(context.Background()) // want `retryowner/handler-context`
}
