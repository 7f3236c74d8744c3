package web_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"entrega/internal/events"
	"entrega/views"
)

// listening is one open stream.
type listening struct {
	t      *testing.T
	lines  chan string // what comes in; closed at the end
	cancel context.CancelFunc
}

// listen opens the stream of a project and waits until it has begun.
func (b *browser) listen(project string) *listening {
	b.t.Helper()
	l, status := b.tryListen(views.StreamURL(project))
	if status != http.StatusOK {
		b.t.Fatalf("the stream answers %d, want 200", status)
	}
	l.next(": here")
	return l
}

func (b *browser) tryListen(address string) (*listening, int) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	l := &listening{t: b.t, lines: make(chan string, 100), cancel: cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(l.lines)
		scanner := bufio.NewScanner(resp.Body)
		for scanner.Scan() {
			if line := scanner.Text(); line != "" {
				l.lines <- line
			}
		}
	}()
	b.t.Cleanup(func() {
		cancel()
		_ = resp.Body.Close() // It may have ended.
		<-done
	})
	return l, resp.StatusCode
}

// next waits for a line.
func (l *listening) next(want string) {
	l.t.Helper()
	select {
	case line, open := <-l.lines:
		if !open || line != want {
			l.t.Fatalf("the stream says %q (open: %t), want %q", line, open, want)
		}
	case <-time.After(patience):
		l.t.Fatalf("the stream says nothing, want %q", want)
	}
}

// ends waits for the end of the stream; heartbeats may come before.
func (l *listening) ends() {
	l.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line, open := <-l.lines:
			if !open {
				return
			}
			if !strings.HasPrefix(line, ":") {
				l.t.Fatalf("the stream says %q, want its end", line)
			}
		case <-timeout:
			l.t.Fatal("the stream goes on, want its end")
		}
	}
}

func TestStream_HintsAtChangesOfItsOwnProjectOnly(t *testing.T) {
	t.Parallel()
	p := setup(t)
	ours, theirs := p.as("owner").listen(p.ours.ID), p.as("stranger").listen(p.theirs.ID)
	p.publish(p.ours, events.New{Type: "order.created", Data: []byte(`{}`)})
	ours.next("data: changed")
	p.publish(p.theirs, events.New{Type: "order.created", Data: []byte(`{}`)})
	theirs.next("data: changed")
	select {
	case line := <-ours.lines:
		t.Errorf("the stream of one project says %q about the other", line)
	default:
	}
}

func TestStream_HintsAtOnceAtWhatItsPageMissed(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	page := b.open(views.TasksURL(p.ours.ID, views.TaskFilter{}))
	address := attr(page.byID("main"), "data-stream")
	still, status := b.tryListen(address)
	if status != http.StatusOK {
		t.Fatalf("the page's stream answers %d, want 200", status)
	}
	still.next(": here")
	p.publish(p.ours, events.New{Type: "order.created", Data: []byte(`{}`)})
	late, _ := b.tryListen(address)
	late.next("data: changed")
}

func TestStream_EndsWithItsSessionAndWithMembership(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.server.BeatEvery(20 * time.Millisecond)
	owner, viewer := p.as("owner"), p.as("viewer")
	first, second := owner.listen(p.ours.ID), viewer.listen(p.ours.ID)
	owner.post("/logout", nil)
	first.ends()
	p.exec(`delete from members where user_id = $1`, p.users["viewer"].ID)
	second.ends()
}

func TestStream_LeavesConnectionsForPages(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	for range 4 {
		b.listen(p.ours.ID)
	}
	fifth, status := b.tryListen(views.StreamURL(p.ours.ID))
	if status != http.StatusNoContent {
		t.Errorf("the fifth stream over HTTP/1.1 answers %d, want 204: it tells the page to ask by itself", status)
	}
	fifth.ends()
	p.as("on-call").listen(p.ours.ID) // Another session has its own.
}

func TestServer_CloseEndsStreamsAndReadiness(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.as("owner")
	l := b.listen(p.ours.ID)
	if got := b.get("/readyz").status; got != http.StatusOK {
		t.Errorf("ready: %d, want 200", got)
	}
	p.server.Close()
	l.ends()
	if got := b.get("/readyz").status; got != http.StatusServiceUnavailable {
		t.Errorf("ready after Close: %d, want 503", got)
	}
	if got := b.get("/livez").status; got != http.StatusOK {
		t.Errorf("live after Close: %d, want 200", got)
	}
}
