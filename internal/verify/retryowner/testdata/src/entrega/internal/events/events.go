package events

import "context"

func relay(ctx context.Context) {
	for range 3 {
		publish(context.Background()) // want `retryowner/handler-context`
	}
}

func publish(context.Context) {}
