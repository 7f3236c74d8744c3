package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
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
	// wake makes River fetch.
	wake      []byte
	completed *completed
}

func newDriver(pool *pgxpool.Pool, log *slog.Logger, nodeID string, claimer Claimer) *driver {
	d := &driver{Driver: riverpgxv5.New(pool), pool: pool, log: log, nodeID: nodeID, queue: NodeQueue(QueueWebhook, nodeID), claimer: claimer,
		due: new(atomic.Bool), completed: &completed{rows: map[int64]*rivertype.JobRow{}}}
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
	driver  *driver
	askedAt time.Time
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
	claimed := d.claim(ctx, params.MaxToLock, params.MaxAttemptedBy)
	rest := *params
	rest.MaxToLock -= len(claimed.jobs)
	now := time.Now()
	if rest.MaxToLock <= 0 || !d.due.Swap(false) && now.Sub(e.askedAt) <= askedEvery {
		return claimed.result(), nil
	}
	e.askedAt = now
	due, err := e.Executor.JobGetAvailable(ctx, &rest)
	switch {
	case err != nil && len(claimed.jobs) == 0:
		return nil, err
	case err != nil: // What was claimed runs; the next fetch meets the error again or not.
		return claimed.result(), nil
	case len(due.Jobs) > 0:
		d.due.Store(true) // There may be more.
	}
	result := claimed.result()
	result.Jobs = append(result.Jobs, due.Jobs...)
	maps.Copy(result.DecodeErrors, due.DecodeErrors)
	return result, nil
}

// result is begun in River's terms.
func (b begun) result() *riverdriver.JobGetAvailableResult {
	r := &riverdriver.JobGetAvailableResult{Jobs: b.jobs, DecodeErrors: b.broken}
	if r.DecodeErrors == nil {
		r.DecodeErrors = map[int64]error{}
	}
	return r
}

// claim fetches what the node may take from the table. An error leaves all where it was.
func (d *driver) claim(ctx context.Context, most, keepBy int) begun {
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
	// kept came in the moment in which the node wanted something.
	kept *riverdriver.Notification
}

// WaitForNotification waits for either. River calls it from one goroutine at a time.
func (l *listener) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	if n := l.kept; n != nil {
		l.kept = nil
		return n, nil
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	type answer struct {
		note *riverdriver.Notification
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		note, err := l.Listener.WaitForNotification(waiting)
		if err == nil {
			l.note(note)
		}
		got <- answer{note, err}
	}()
	select {
	case a := <-got:
		return a.note, a.err
	case <-l.wanted:
		stop()
		a := <-got
		if a.err != nil && !errors.Is(a.err, context.Canceled) || ctx.Err() != nil {
			return a.note, a.err
		}
		l.kept = a.note
		return &riverdriver.Notification{Topic: insertTopic, Payload: string(l.driver.wake)}, nil
	}
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
