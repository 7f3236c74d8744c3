package library

import (
	"fmt"

	"github.com/cenkalti/backoff/v5"      // want `retryowner/retry-library: github.com/cenkalti/backoff/v5 retries by itself.*let the kind's policy decide`
	retry "github.com/sethvargo/go-retry" // want `retryowner/retry-library: github.com/sethvargo/go-retry retries by itself`
)

func send() error { return nil }

func both() {
	fmt.Println(backoff.Retry(send), retry.Do(send))
}
