package loopgood

import (
	"context"
	"errors"
	"log"
	"os"
	"time"
)

var errGone = errors.New("gone")

func send() error         { return nil }
func poll() (bool, error) { return false, nil }

// An error ends the loop.
func untilDone() error {
	for {
		done, err := poll()
		if err != nil {
			return err
		}
		if done {
			return nil
		}
		time.Sleep(time.Second)
	}
}

// One error is an answer, and so the end; the next is the end too.
func twoAnswers() error {
	for {
		err := send()
		if errors.Is(err, errGone) {
			return nil
		}
		if err != nil {
			return err
		}
		time.Sleep(time.Second)
	}
}

// Nothing waits.
func eachOnce(urls []string) {
	for range urls {
		if err := send(); err != nil {
			log.Print(err)
		}
	}
}

// The wait comes after the loop.
func waitLast() {
	for range 3 {
		if err := send(); err != nil {
			log.Print(err)
		}
	}
	time.Sleep(time.Second)
}

// A ticker goes on at its pace, whether or not the last round worked.
func periodic(ctx context.Context) {
	ticker := time.NewTicker(time.Minute)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := send(); err != nil {
				log.Print(err)
			}
		}
	}
}

// A timer that ends the loop is a deadline.
func deadline() error {
	timeout := time.After(time.Minute)
	results := make(chan error)
	for {
		select {
		case err := <-results:
			if err == nil {
				return nil
			}
			log.Print(err)
		case <-timeout:
			return errGone
		}
	}
}

// What does not return does not go on.
func orDie() {
	for {
		if err := send(); err != nil {
			log.Fatal(err)
		}
		if err := send(); err != nil {
			os.Exit(1)
		}
		if err := send(); err != nil {
			panic(err)
		}
		time.Sleep(time.Second)
	}
}

// A computed back-off is a number.
func backoff(int) time.Duration { return time.Second }

func numbers() (total time.Duration) {
	for i := range 3 {
		if err := send(); err != nil {
			total += backoff(i)
		}
	}
	return total
}

// A closure that waits runs elsewhere.
func closures() []func() {
	var all []func()
	for range 3 {
		if err := send(); err != nil {
			all = append(all, func() { time.Sleep(time.Second) })
		}
	}
	return all
}
