package web

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// hintEvery is how often the database is asked, and so how often at most a page is told that something changed.
	hintEvery = time.Second
	// hintTimeout bounds one look at the database.
	hintTimeout = 5 * time.Second
)

// pulseReader reads a text per project that differs when something changed.
type pulseReader interface {
	read(ctx context.Context, projects []string) (map[string]string, error)
}

// hints tells open pages that their project changed. One goroutine of the process looks at the database for all of them, and
// only while a page is open.
type hints struct {
	pulses pulseReader
	log    *slog.Logger
	cancel context.CancelFunc
	done   <-chan struct{}

	mu       sync.Mutex
	wake     chan struct{}
	watchers map[string]map[*watcher]bool // by project
	streams  map[string]int               // by session
}

// watcher is one open stream. changed holds one hint at most: a page that is slow needs no second one.
type watcher struct {
	project, session string
	changed          chan struct{}
}

func newHints(p pulseReader, log *slog.Logger) *hints {
	ctx, cancel := context.WithCancel(context.Background())
	h := &hints{pulses: p, log: log, cancel: cancel, done: ctx.Done(), wake: make(chan struct{}, 1),
		watchers: map[string]map[*watcher]bool{}, streams: map[string]int{}}
	go h.run(ctx)
	return h
}

// close ends every stream.
func (h *hints) close() { h.cancel() }

// watch opens a stream, unless the session has as many as it may.
func (h *hints) watch(project, session string, most int) (*watcher, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams[session] >= most {
		return nil, false
	}
	w := &watcher{project: project, session: session, changed: make(chan struct{}, 1)}
	h.streams[session]++
	if h.watchers[project] == nil {
		h.watchers[project] = map[*watcher]bool{}
	}
	h.watchers[project][w] = true
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return w, true
}

// leave ends a stream.
func (h *hints) leave(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.watchers[w.project], w); len(h.watchers[w.project]) == 0 {
		delete(h.watchers, w.project)
	}
	if h.streams[w.session]--; h.streams[w.session] <= 0 {
		delete(h.streams, w.session)
	}
}

func (h *hints) projects() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Keys(h.watchers))
}

func (h *hints) run(ctx context.Context) {
	tick := time.NewTicker(hintEvery)
	defer tick.Stop()
	known := map[string]string{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.wake:
			h.meet(ctx, known)
		case <-tick.C:
			h.look(ctx, known)
		}
	}
}

// meet takes the first pulse of projects that a page has just opened, so that no change after it is missed. Projects that are
// watched already wait for their turn: they get a hint a second at most.
func (h *hints) meet(ctx context.Context, known map[string]string) {
	fresh := slices.DeleteFunc(h.projects(), func(project string) bool { _, watched := known[project]; return watched })
	maps.Copy(known, h.read(ctx, fresh))
}

// look takes the pulse of every watched project, hints where it moved, and forgets projects that nobody watches any more.
func (h *hints) look(ctx context.Context, known map[string]string) {
	projects := h.projects()
	maps.DeleteFunc(known, func(project, _ string) bool { return !slices.Contains(projects, project) })
	for project, pulse := range h.read(ctx, projects) {
		if before, watched := known[project]; watched && before != pulse {
			h.hint(project)
		}
		known[project] = pulse
	}
}

// read is nothing where the database does not answer: the next look finds what changed meanwhile.
func (h *hints) read(ctx context.Context, projects []string) map[string]string {
	if len(projects) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	found, err := h.pulses.read(ctx, projects)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		h.log.WarnContext(ctx, "pages are not told of changes right now", "error", err)
	}
	return found
}

func (h *hints) hint(project string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[project] {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}
