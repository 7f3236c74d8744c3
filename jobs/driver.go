package jobs

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"entrega/internal/store"
)

// insertTopic is River's name for the notification that something is due in a queue.
const insertTopic = "river_insert"

// askedEvery is how often a queue is looked at when nothing was notified; a notification may have been lost.
const askedEvery = 200 * time.Millisecond

// driver is River's, with two of its steps done our way. The queue of webhooks and the node's own part of it are fed with what was started
// here, and the latter with what the node claims; and what the ledger has completed is not completed again. River promises no stable driver, so
// driver_test.go pins what this rests on.
type driver struct {
	*riverpgxv5.Driver
	pool    *pgxpool.Pool
	log     *slog.Logger
	nodeID  string
	claimer Claimer
	starter *starter
	// own and shared are its own queue and the one of all nodes.
	own, shared *feed
	// restUntil is when the next claim may come, for the goroutine that fetches.
	restUntil time.Time
	gate      *store.Gate
	completed *completed
}

// feed is one queue that is fed from more than its table.
type feed struct {
	name string
	// due is set when something was put into the queue.
	due atomic.Bool
	// wake makes River fetch; again is readable when it should.
	wake  string
	again chan struct{}

	// What follows is for the one goroutine that fetches. askedAt is when it last asked what is due. othersNext says that what was started
	// came first, and brought something; claimsNext says that of what is due.
	askedAt                time.Time
	othersNext, claimsNext bool
}

func newFeed(name string) *feed {
	// A map of strings can be encoded.
	wake, _ := json.Marshal(map[string]string{"queue": name})
	return &feed{name: name, wake: string(wake), again: make(chan struct{}, 1)}
}

func newDriver(o WorkerOptions, nodeID string) *driver {
	d := &driver{Driver: riverpgxv5.New(o.Pool), pool: o.Pool, log: o.Logger, nodeID: nodeID, claimer: o.Claimer, gate: o.Gate,
		own: newFeed(NodeQueue(QueueWebhook, nodeID)), shared: newFeed(QueueWebhook), completed: &completed{rows: map[int64]*rivertype.JobRow{}}}
	if o.Client != nil {
		d.starter = o.Client.starter
	}
	return d
}

// GetExecutor implements riverdriver.Driver.
func (d *driver) GetExecutor() riverdriver.Executor {
	return &executor{Executor: d.Driver.GetExecutor(), driver: d}
}

// GetListener implements riverdriver.Driver.
func (d *driver) GetListener(params *riverdriver.GetListenenerParams) riverdriver.Listener {
	l := &listener{Listener: d.Driver.GetListener(params), driver: d}
	if d.claimer != nil {
		l.wanted = d.claimer.Wanted()
	}
	return l
}

// executor is River's way to the database.
type executor struct {
	riverdriver.Executor
	driver *driver
}

// JobGetAvailable fetches. River's producer of a queue is one goroutine.
func (e *executor) JobGetAvailable(ctx context.Context, params *riverdriver.JobGetAvailableParams) (*riverdriver.JobGetAvailableResult, error) {
	d := e.driver
	f := d.feed(params.Queue)
	if f == nil {
		return e.Executor.JobGetAvailable(ctx, params)
	}
	got, err := e.fetch(ctx, params, f)
	if err == nil {
		d.starter.free(f.name, params.MaxToLock-len(got.Jobs))
	}
	return got, err
}

// feed is the queue of that name, if it is one of those that are fed.
func (d *driver) feed(queue string) *feed {
	switch {
	case d.claimer == nil:
		return nil
	case queue == d.own.name:
		return d.own
	case queue == d.shared.name:
		return d.shared
	default:
		return nil
	}
}

// fetch brings what was started, what is due, or what the node may claim: none of them waits until there is no more of another.
func (e *executor) fetch(ctx context.Context, params *riverdriver.JobGetAvailableParams, f *feed) (*riverdriver.JobGetAvailableResult, error) {
	d := e.driver
	if !f.othersNext {
		if rows := d.starter.take(f.name, params.MaxToLock); len(rows) > 0 {
			f.othersNext = true
			if f.due.Load() || d.starter.waits(f.name) {
				f.rouse()
			}
			return begun{jobs: rows}.result(), nil
		}
	}
	f.othersNext = false
	got, err := e.fetchDue(ctx, params, f)
	if err != nil {
		return nil, err
	}
	if d.starter.waits(f.name) {
		if len(got.Jobs) == 0 {
			return begun{jobs: d.starter.take(f.name, params.MaxToLock)}.result(), nil
		}
		f.rouse()
	}
	return got, nil
}

// fetchDue brings what is due, or in the node's own queue what it may claim.
func (e *executor) fetchDue(ctx context.Context, params *riverdriver.JobGetAvailableParams, f *feed) (*riverdriver.JobGetAvailableResult, error) {
	d := e.driver
	if f.claimsNext {
		f.claimsNext = false
		if claimed := d.claim(ctx, params.MaxToLock, params.MaxAttemptedBy); len(claimed.jobs) > 0 {
			if f.due.Load() {
				f.rouse()
			}
			return claimed.result(), nil
		}
	}
	if now := time.Now(); f.due.Swap(false) || now.Sub(f.askedAt) > askedEvery {
		f.askedAt = now
		due, err := e.due(ctx, params, f)
		if err != nil {
			f.due.Store(true)
			return nil, err
		}
		if n := len(due.Jobs); n > 0 {
			if n == params.MaxToLock {
				f.due.Store(true)
			}
			if f == d.own {
				f.claimsNext = true
				f.rouse()
			}
			return due, nil
		}
	}
	if f != d.own {
		return begun{}.result(), nil
	}
	return d.claim(ctx, params.MaxToLock, params.MaxAttemptedBy).result(), nil
}

// due asks the table for what is due in a queue.
func (e *executor) due(ctx context.Context, params *riverdriver.JobGetAvailableParams, f *feed) (*riverdriver.JobGetAvailableResult, error) {
	if f == e.driver.own {
		return e.Executor.JobGetAvailable(ctx, params)
	}
	got, err := fetch(ctx, e.driver.pool, e.driver.nodeID, f.name, params.MaxToLock, params.MaxAttemptedBy)
	if err != nil {
		return nil, err
	}
	return got.result(), nil
}

// result is begun in River's terms.
func (b begun) result() *riverdriver.JobGetAvailableResult {
	r := &riverdriver.JobGetAvailableResult{Jobs: b.jobs, DecodeErrors: b.broken}
	if r.DecodeErrors == nil {
		r.DecodeErrors = map[int64]error{}
	}
	return r
}

// rouse makes River fetch from the queue soon.
func (f *feed) rouse() {
	select {
	case f.again <- struct{}{}:
	default: // It is about to.
	}
}

// rouse makes River fetch from a queue soon, if it is one of those that are fed.
func (d *driver) rouse(queue string) {
	if f := d.feed(queue); f != nil {
		f.rouse()
	}
}

// claim fetches what the node may take from the table, unless it rests out of courtesy. An error leaves all where it was.
func (d *driver) claim(ctx context.Context, most, keepBy int) begun {
	start := time.Now()
	if start.Before(d.restUntil) {
		return begun{} // It is roused when the rest is over.
	}
	claims := d.claimer.Claims(most)
	if len(claims) == 0 {
		return begun{}
	}
	got, done, err := claim(ctx, d.pool, d.nodeID, d.own.name, most, keepBy, claims)
	if err != nil {
		d.log.WarnContext(ctx, "what waits for the lanes here could not be claimed; it is promoted instead", "error", err)
		done = done[:0]
		for _, c := range claims {
			done = append(done, Claimed{Claim: c, Refused: true})
		}
	}
	d.claimer.Claimed(done)
	if len(got.jobs) > 0 && d.gate.Courteous() {
		rest := store.Rest(time.Since(start))
		d.restUntil = time.Now().Add(rest)
		time.AfterFunc(rest, d.own.rouse)
	}
	return got
}

// JobSetStateIfRunningMany tells the table how tasks ended, but for those that the ledger has completed with their record.
func (e *executor) JobSetStateIfRunningMany(ctx context.Context, params *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	rest, rows := e.driver.completed.without(params)
	if len(rest.ID) == 0 {
		return rows, nil
	}
	others, err := e.Executor.JobSetStateIfRunningMany(ctx, rest)
	if err != nil {
		e.driver.completed.add(rows...) // River asks again for all.
		return nil, err
	}
	return append(rows, others...), nil
}

// completed are tasks that the ledger has completed and of which River is still to tell. It is safe for concurrent use.
type completed struct {
	mu   sync.Mutex
	rows map[int64]*rivertype.JobRow
}

func (c *completed) add(rows ...*rivertype.JobRow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, row := range rows {
		c.rows[row.ID] = row
	}
}

// without returns what River tells of the others, and the rows of those that it knows, which it forgets.
func (c *completed) without(all *riverdriver.JobSetStateIfRunningManyParams) (rest *riverdriver.JobSetStateIfRunningManyParams, rows []*rivertype.JobRow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest = &riverdriver.JobSetStateIfRunningManyParams{Now: all.Now, Schema: all.Schema}
	for i, id := range all.ID {
		if row := c.rows[id]; row != nil {
			delete(c.rows, id)
			rows = append(rows, row)
			continue
		}
		rest.ID, rest.State = append(rest.ID, id), append(rest.State, all.State[i])
		rest.Attempt, rest.ErrData = append(rest.Attempt, all.Attempt[i]), append(rest.ErrData, all.ErrData[i])
		rest.FinalizedAt, rest.ScheduledAt = append(rest.FinalizedAt, all.FinalizedAt[i]), append(rest.ScheduledAt, all.ScheduledAt[i])
		rest.MetadataDoMerge = append(rest.MetadataDoMerge, all.MetadataDoMerge[i])
		rest.MetadataUpdates = append(rest.MetadataUpdates, all.MetadataUpdates[i])
	}
	return rest, rows
}

// listener is River's, and tells it also of what the node may claim, without a round trip.
type listener struct {
	riverdriver.Listener
	driver *driver
	wanted <-chan struct{}
	// reading has what comes next from the database, while somebody reads it.
	reading chan answer
}

type answer struct {
	note *riverdriver.Notification
	err  error
}

// WaitForNotification waits for either. River calls it from one goroutine at a time, and again with the same context until that is
// cancelled, before it uses the connection for anything else. So whoever reads goes on when something else came first.
func (l *listener) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	if l.reading == nil {
		reading := make(chan answer, 1)
		l.reading = reading
		go func() {
			note, err := l.Listener.WaitForNotification(ctx)
			if err == nil {
				l.note(note)
			}
			reading <- answer{note, err}
		}()
	}
	select {
	case a := <-l.reading:
		l.reading = nil
		return a.note, a.err
	case <-l.wanted:
	case <-l.driver.own.again:
	case <-l.driver.shared.again:
		return &riverdriver.Notification{Topic: insertTopic, Payload: l.driver.shared.wake}, nil
	}
	return &riverdriver.Notification{Topic: insertTopic, Payload: l.driver.own.wake}, nil
}

// note looks whether something is due in a queue that is fed.
func (l *listener) note(n *riverdriver.Notification) {
	var of struct {
		Queue string `json:"queue"`
	}
	if n.Topic != insertTopic || json.Unmarshal([]byte(n.Payload), &of) != nil {
		return
	}
	if f := l.driver.feed(of.Queue); f != nil {
		f.due.Store(true)
	}
}
