package loopgood

import (
	"testing"
	"time"
)

func TestSend_Works(t *testing.T) {
	for range 3 {
		if err := send(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
}
