package loopbad

import (
	"context"
	"errors"
	"log"
	"time"
)

var errGone = errors.New("gone")

func send() error          { return nil }
func temporary(error) bool { return true }
func poll() (bool, error)  { return false, nil }
func list() (int, error)   { return 0, nil }

func sleepBetween() {
	for {
		if err := send(); err == nil {
			return
		}
		time.Sleep(time.Second) // want `retryowner/retry-loop: this loop waits here and goes on after an error.*return the error and let the kind's policy decide`
	}
}

func sleepFirst() {
	for range 5 {
		time.Sleep(time.Second) // want `retryowner/retry-loop`
		err := send()
		if err != nil {
			log.Print(err)
			continue
		}
		break
	}
}

func inCondition() {
	for err := send(); err != nil; err = send() {
		time.Sleep(time.Second) // want `retryowner/retry-loop`
	}
}

func after(ctx context.Context) error {
	for attempt := 0; attempt < 3; attempt++ {
		err := send()
		if err == nil || errors.Is(err, errGone) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second << attempt): // want `retryowner/retry-loop`
		}
	}
	return nil
}

func timer() {
	timer := time.NewTimer(time.Second)
	for {
		<-timer.C // want `retryowner/retry-loop`
		if err := send(); err != nil {
			timer.Reset(2 * time.Second)
			continue
		}
		return
	}
}

func periodicTimer(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Minute): // want `retryowner/retry-loop`
		}
		if err := send(); err != nil {
			log.Print(err)
		}
	}
}

func onlyTemporary() error {
	for {
		err := send()
		if err != nil && !temporary(err) {
			return err
		}
		if err == nil {
			return nil
		}
		time.Sleep(time.Second) // want `retryowner/retry-loop`
	}
}

func bySwitch() error {
	for {
		switch err := send(); {
		case err == nil:
			return nil
		case errors.Is(err, errGone):
			return err
		default:
			time.Sleep(time.Second) // want `retryowner/retry-loop`
		}
	}
}

func byTag() {
	for {
		switch err := send(); err {
		case nil:
			return
		case errGone:
			log.Print(err)
		}
		time.Sleep(time.Second) // want `retryowner/retry-loop`
	}
}

func untilTicked() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for range ticker.C { // want `retryowner/retry-loop`
		if err := send(); err == nil {
			return
		}
	}
}

func untilTickedInSelect(ctx context.Context) error {
	ticker := time.NewTicker(time.Second)
	for {
		err := send()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C: // want `retryowner/retry-loop`
		}
	}
}

func byGoto() {
again:
	if err := send(); err != nil {
		time.Sleep(time.Second) // want `retryowner/retry-loop`
		goto again
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func pauseTwice(ctx context.Context, d time.Duration) {
	pause(ctx, d)
	pause(ctx, d)
}

func byHelper(ctx context.Context) {
	for send() != nil {
		pauseTwice(ctx, time.Second) // want `retryowner/retry-loop`
	}
}

func byName(sleepFor func(time.Duration) bool) {
	for {
		if err := send(); err != nil && sleepFor(time.Second) { // want `retryowner/retry-loop`
			continue
		}
		return
	}
}

func inLiteral() {
	go func() {
		for {
			if err := send(); err != nil {
				time.Sleep(time.Second) // want `retryowner/retry-loop`
			}
		}
	}()
}

func aroundInnerLoop() {
	for {
		for range 3 {
			if _, err := list(); err != nil {
				break
			}
		}
		time.Sleep(time.Second) // want `retryowner/retry-loop`
	}
}

func pollForever() {
	for {
		done, err := poll()
		if err != nil {
			log.Print(err)
		} else if done {
			return
		}
		time.Sleep(time.Second) // want `retryowner/retry-loop`
	}
}

// The second error is another one, and its success says nothing of the first.
func firstIgnored() error {
	for {
		err := send()
		if err != nil {
			log.Print(err)
		}
		err = send()
		if err != nil {
			return err
		}
		time.Sleep(time.Second) // want `retryowner/retry-loop`
	}
}

func untilNotGone() error {
	ticker := time.NewTicker(time.Second)
	for range ticker.C { // want `retryowner/retry-loop`
		err := send()
		if errors.Is(err, errGone) {
			continue
		}
		return err
	}
	return nil
}
