package egress

import (
	"sync"
	"time"
)

// sweepEvery is how often idle connections are looked at. Nobody reads from them, so one that the other side closed is found then.
const sweepEvery = 5 * time.Second

// origin is where a connection leads: scheme, host and port of a URL (RFC 6454).
type origin struct {
	secure bool
	host   string // with the port
}

// pool keeps idle HTTP/1.1 connections, and which origins speak HTTP/2, whose connections are kept elsewhere. It is safe for concurrent use.
type pool struct {
	perOrigin, most int

	mu       sync.Mutex
	idle     map[origin][]*conn // the last one was used last
	n        int
	sweeping bool
	http2    map[origin]bool
}

// newPool makes a pool for so many idle connections to one origin, and for most to all.
func newPool(perOrigin, most int) *pool {
	return &pool{perOrigin: perOrigin, most: most, idle: map[origin][]*conn{}, http2: map[origin]bool{}}
}

// take returns the connection that was used last, nil when none is idle. Whoever takes it asks whether it is alive.
func (p *pool) take(o origin) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[o]
	last := len(list) - 1
	if last < 0 {
		return nil
	}
	c := list[last]
	list[last] = nil
	p.idle[o] = list[:last]
	p.n--
	return c
}

// put keeps a connection for later, and closes another where there are too many.
func (p *pool) put(o origin, c *conn) {
	c.idleAt = time.Now()
	c.SetDeadline(time.Time{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle[o]) >= p.perOrigin {
		p.closeFirst(o)
	} else if p.n >= p.most {
		p.closeAny()
	}
	p.idle[o] = append(p.idle[o], c)
	p.n++
	if !p.sweeping {
		p.sweeping = true
		time.AfterFunc(sweepEvery, p.sweep)
	}
}

// sweep closes what has been idle for too long, and what the other side has closed, and comes again while there is anything.
func (p *pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	rested := time.Now().Add(-sweepEvery)
	for o, list := range p.idle {
		kept := list[:0]
		for _, c := range list {
			if c.idleAt.Before(rested) && (time.Since(c.idleAt) >= idleTimeout || !c.alive()) {
				c.hangUp()
			} else {
				kept = append(kept, c)
			}
		}
		clear(list[len(kept):])
		p.idle[o] = kept
		p.n -= len(list) - len(kept)
		if len(kept) == 0 {
			delete(p.idle, o)
		}
	}
	if p.sweeping = p.n > 0; p.sweeping {
		time.AfterFunc(sweepEvery, p.sweep)
	}
}

// close closes all that is idle.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for o := range p.idle {
		for len(p.idle[o]) > 0 {
			p.closeFirst(o)
		}
	}
}

// closeFirst closes the connection of an origin that has been idle longest. The caller holds the lock.
func (p *pool) closeFirst(o origin) {
	list := p.idle[o]
	list[0].hangUp()
	list[0] = nil
	p.idle[o] = list[1:]
	p.n--
}

// closeAny closes a connection of some origin. The caller holds the lock.
func (p *pool) closeAny() {
	for o, list := range p.idle {
		if len(list) > 0 {
			p.closeFirst(o)
			return
		}
	}
}

// speaks notes which protocol an origin has chosen.
func (p *pool) speaks(o origin, http2 bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !http2 {
		delete(p.http2, o)
		return
	}
	if len(p.http2) >= mostTargets && !p.http2[o] {
		clear(p.http2)
	}
	p.http2[o] = true
}

// speaksHTTP2 reports what an origin chose last.
func (p *pool) speaksHTTP2(o origin) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.http2[o]
}
