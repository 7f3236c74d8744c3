package events

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	publishGroup   = 250              // events in one statement at most
	publishBytes   = 2 << 20          // of payloads in one statement, about
	publishWriters = 1                // statements at once: with more of them each has fewer events
	publishTimeout = 10 * time.Second // for one statement
)

// PublisherOptions are what a Publisher needs.
type PublisherOptions struct {
	Pool   *pgxpool.Pool
	Logger *slog.Logger
	// Relay is that of this process. While it runs it is told of what is published, so that the database need not tell all relays;
	// nil is none.
	Relay *Relay
}

// Publisher publishes single events of many callers with few statements, each of them a transaction: what comes while the ones
// before are under way shares the next. Every caller gets the answer that Publish would have given. A lone event waits for nobody.
// It is safe for concurrent use.
type Publisher struct {
	pool   *pgxpool.Pool
	logger *slog.Logger
	relay  *Relay

	mu      sync.Mutex
	waiting []*posted
	writers int
}

// posted is an event on its way; done closes when its result is there.
type posted struct {
	post
	answer Result
	err    error
	done   chan struct{}
}

// NewPublisher makes a Publisher.
func NewPublisher(o PublisherOptions) *Publisher {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Publisher{pool: o.Pool, logger: o.Logger, relay: o.Relay}
}

// Publish stores an event as the function of that name does, unless the project's API key was revoked: then it is store.ErrNotFound, or
// what the function answers where nothing is stored. When ctx ends first, the event may be stored all the same.
func (p *Publisher) Publish(ctx context.Context, project, apiKey string, n New) (Published, error) {
	if err := n.check(); err != nil {
		return Published{}, err
	}
	e := &posted{done: make(chan struct{})}
	e.post = post{row: n.row(project), apiKey: apiKey, expired: n.expired(time.Now()), result: &e.answer}
	p.add(e)
	select {
	case <-e.done:
	case <-ctx.Done():
		return Published{}, fmt.Errorf("wait for an event to be stored: %w", context.Cause(ctx))
	}
	if e.err != nil {
		return Published{}, e.err
	}
	return e.answer.Published, e.answer.Err
}

// PublishBatch is the function of that name.
func (p *Publisher) PublishBatch(ctx context.Context, project string, batch []New) ([]Result, error) {
	return publishBatch(ctx, p.pool, project, batch, p.telling(ctx, project))
}

func (p *Publisher) add(e *posted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, e)
	if p.writers < publishWriters {
		p.writers++
		go p.write()
	}
}

// write stores what waits until nothing does.
func (p *Publisher) write() {
	for group := p.next(); group != nil; group = p.next() {
		p.store(group)
	}
}

// next takes the next group, in the order of coming. Nil ends the writer.
func (p *Publisher) next() []*posted {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, size := 0, 0
	for n < len(p.waiting) && n < publishGroup && (n == 0 || size+len(p.waiting[n].row.data) <= publishBytes) {
		size += len(p.waiting[n].row.data)
		n++
	}
	if n == 0 {
		p.writers--
		return nil
	}
	group := p.waiting[:n:n]
	p.waiting = append([]*posted(nil), p.waiting[n:]...)
	return group
}

// store writes a group. One statement stores it; should that fail for what one event brings, each is stored by itself, so that
// nobody is refused for another's sake.
func (p *Publisher) store(group []*posted) {
	ctx, cancel := context.WithTimeout(context.Background(), publishTimeout)
	defer cancel()
	posts := make([]post, len(group))
	for i, e := range group {
		posts[i] = e.post
	}
	err := publishAll(ctx, p.pool, posts, p.telling(ctx, projectsOf(posts)...))
	if err != nil && len(group) > 1 && blamesEvent(ctx, err) {
		p.logger.WarnContext(ctx, "a statement of many events failed; storing them one by one", "events", len(group), "error", err)
		for _, e := range group {
			e.answer.Published, e.answer.Err = publishPost(ctx, p.pool, e.post)
		}
		err = nil
	}
	for _, e := range group {
		e.err = err
		close(e.done)
	}
}

// telling returns what tells the relay of this process that projects published, or nil where the database must tell all. Where an error is
// all that came back, the events may be stored all the same, now or a moment later.
func (p *Publisher) telling(ctx context.Context, projects ...string) func(error) {
	if !p.relay.works() {
		return nil
	}
	return func(err error) {
		p.relay.tell(ctx, projects...)
		if err != nil {
			time.AfterFunc(publishTimeout, func() { p.relay.published("") })
		}
	}
}

func projectsOf(posts []post) []string {
	var projects []string
	for _, p := range posts {
		if !slices.Contains(projects, p.row.project) {
			projects = append(projects, p.row.project)
		}
	}
	return projects
}
