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

// askedEvery is how often a node's own queue is looked at when nothing was notified; a notification may have been lost.
const askedEvery = 200 * time.Millisecond

// driver is River's, with two of its steps done our way for one queue, the node's own: it is fed with what the node claims, and it does
// not complete again what the ledger has completed. River promises no stable driver, so TestDriver pins what this rests on.
type driver struct {
	*riverpgxv5.Driver
	pool    *pgxpool.Pool
	log     *slog.Logger
	nodeID  string
	queue   string
	claimer Claimer
	// due is set when something was put into the queue.
	due *atomic.Bool
	// wake makes River fetch; again is readable when it should.
	wake  []byte
	again chan struct{}
	// restUntil is when the next claim may come, for the goroutine that fetches.
	restUntil time.Time
	gate      *store.Gate
	completed *completed
}

func newDriver(o WorkerOptions, nodeID string) *driver {
	d := &driver{Driver: riverpgxv5.New(o.Pool), pool: o.Pool, log: o.Logger, nodeID: nodeID, queue: NodeQueue(QueueWebhook, nodeID),
		claimer: o.Claimer, gate: o.Gate, due: new(atomic.Bool), again: make(chan struct{}, 1), completed: &completed{rows: map[int64]*rivertype.JobRow{}}}
	// A map of strings can be encoded.
	d.wake, _ = json.Marshal(map[string]string{"queue": d.queue})
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
	// askedAt is when it was last asked what is due in the node's own queue; claimsNext says that this came first, and brought something.
	askedAt    time.Time
	claimsNext bool
}

// JobGetAvailable fetches. River's producer of a queue is one goroutine.
func (e *executor) JobGetAvailable(ctx context.Context, params *riverdriver.JobGetAvailableParams) (*riverdriver.JobGetAvailableResult, error) {
	d := e.driver
	switch {
	case d.claimer == nil || params.Queue != d.queue && params.Queue != QueueWebhook:
		return e.Executor.JobGetAvailable(ctx, params)
	case params.Queue == QueueWebhook:
		got, err := fetch(ctx, d.pool, d.nodeID, params.Queue, params.MaxToLock, params.MaxAttemptedBy)
		return got.result(), err
	}
	return e.fetchOwn(ctx, params)
}

// fetchOwn brings what is due in the node's own queue, or what the node may claim: what is due does not wait until many are claimed, nor
// the other way round.
func (e *executor) fetchOwn(ctx context.Context, params *riverdriver.JobGetAvailableParams) (*riverdriver.JobGetAvailableResult, error) {
	d := e.driver
	if e.claimsNext {
		e.claimsNext = false
		if claimed := d.claim(ctx, params.MaxToLock, params.MaxAttemptedBy); len(claimed.jobs) > 0 {
			if d.due.Load() {
				d.rouse()
			}
			return claimed.result(), nil
		}
	}
	if now := time.Now(); d.due.Swap(false) || now.Sub(e.askedAt) > askedEvery {
		e.askedAt = now
		due, err := e.Executor.JobGetAvailable(ctx, params)
		if err != nil {
			d.due.Store(true)
			return nil, err
		}
		if n := len(due.Jobs); n > 0 {
			if n == params.MaxToLock {
				d.due.Store(true)
			}
			e.claimsNext = true
			d.rouse()
			return due, nil
		}
	}
	return d.claim(ctx, params.MaxToLock, params.MaxAttemptedBy).result(), nil
}

// result is begun in River's terms.
func (b begun) result() *riverdriver.JobGetAvailableResult {
	r := &riverdriver.JobGetAvailableResult{Jobs: b.jobs, DecodeErrors: b.broken}
	if r.DecodeErrors == nil {
		r.DecodeErrors = map[int64]error{}
	}
	return r
}

// rouse makes River fetch from the node's own queue soon.
func (d *driver) rouse() {
	select {
	case d.again <- struct{}{}:
	default: // It is about to.
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
	got, done, err := claim(ctx, d.pool, d.nodeID, d.queue, most, keepBy, claims)
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
		time.AfterFunc(rest, d.rouse)
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
	case <-l.driver.again:
	}
	return &riverdriver.Notification{Topic: insertTopic, Payload: string(l.driver.wake)}, nil
}

// note looks whether something is due in the node's own queue.
func (l *listener) note(n *riverdriver.Notification) {
	var of struct {
		Queue string `json:"queue"`
	}
	if n.Topic == insertTopic && json.Unmarshal([]byte(n.Payload), &of) == nil && of.Queue == l.driver.queue {
		l.driver.due.Store(true)
	}
}
