package egress_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain fails the run when anything of an attempt or of the transport outlives the tests: each of them closes its
// doors and servers, so every goroutine of theirs must end by itself.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leftOver(); code == 0 && left != "" {
		fmt.Fprintf(os.Stderr, "goroutines outlive the tests:\n%s\n", left)
		code = 1
	}
	os.Exit(code)
}

// leftOver waits for the goroutines of doors to end, and returns the stacks of those that do not.
func leftOver() string {
	end := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var left []string
		buf := make([]byte, 4<<20)
		for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, "net/http.(*") || strings.Contains(stack, "egress.(*") || strings.Contains(stack, "net.(*Resolver)") {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return ""
		}
		select {
		case <-end:
			return strings.Join(left, "\n\n")
		case <-tick.C:
		}
	}
}
