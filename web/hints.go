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
	watchers map[string]map[*watcher]bool // by project
	known    map[string]string            // the last pulse of each watched project
	streams  map[string]int               // by session
}

// watcher is one open stream. changed holds one hint at most: a page that is slow needs no second one.
type watcher struct {
	project, session string
	changed          chan struct{}
}

func newHints(p pulseReader, log *slog.Logger) *hints {
	ctx, cancel := context.WithCancel(context.Background())
	h := &hints{pulses: p, log: log, cancel: cancel, done: ctx.Done(),
		watchers: map[string]map[*watcher]bool{}, known: map[string]string{}, streams: map[string]int{}}
	go h.run(ctx)
	return h
}

// close ends every stream.
func (h *hints) close() { h.cancel() }

// pulse is the project's pulse at this moment.
func (h *hints) pulse(ctx context.Context, project string) (string, error) {
	found, err := h.pulses.read(ctx, []string{project})
	return found[project], err
}

// watch opens a stream from a pulse that was just read: it hints at whatever moves it. It is refused when the session has as
// many streams as it may.
func (h *hints) watch(project, session, pulse string, most int) (*watcher, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.streams[session] >= most {
		return nil, false
	}
	w := &watcher{project: project, session: session, changed: make(chan struct{}, 1)}
	h.streams[session]++
	if h.watchers[project] == nil {
		h.watchers[project] = map[*watcher]bool{}
		h.known[project] = pulse
	}
	h.watchers[project][w] = true
	return w, true
}

// leave ends a stream.
func (h *hints) leave(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if delete(h.watchers[w.project], w); len(h.watchers[w.project]) == 0 {
		delete(h.watchers, w.project)
		delete(h.known, w.project)
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
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			h.look(ctx)
		}
	}
}

// look takes the pulse of every watched project and hints where it moved. Where the database does not answer, the next look
// finds what changed meanwhile.
func (h *hints) look(ctx context.Context) {
	projects := h.projects()
	if len(projects) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, hintTimeout)
	defer cancel()
	found, err := h.pulses.read(ctx, projects)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			h.log.WarnContext(ctx, "pages are not told of changes right now", "error", err)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for project, pulse := range found {
		if before, watched := h.known[project]; watched && before != pulse {
			h.known[project] = pulse
			h.hint(project)
		}
	}
}

// hint must be called with the lock held.
func (h *hints) hint(project string) {
	for w := range h.watchers[project] {
		select {
		case w.changed <- struct{}{}:
		default:
		}
	}
}
