package loopbad

import (
	"testing"
	"time"
)

func TestSend_Works(t *testing.T) {
	for send() != nil {
		time.Sleep(time.Second) // want `retryowner/retry-loop`
	}
}
