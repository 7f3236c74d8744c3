package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/rivertype"
)

const (
	// startWithin is how long a task that was started may wait for a worker of this node, before it is due for all.
	startWithin = 500 * time.Millisecond
	// giveBackTimeout bounds giving some back.
	giveBackTimeout = 5 * time.Second
)

// foundWithin is when it is looked whether a transaction without an answer was committed all the same. Its commit may have waited behind
// statements that wait themselves.
var foundWithin = [...]time.Duration{startWithin, 5 * time.Second, time.Minute}

// starter lets tasks begin on this node with the transaction that makes them: they are stored as running, and when that is committed their
// workers get them from here. To be found in the table by a fetch takes a notification and a transaction more.
//
// What no worker takes soon, as when the queue is paused or the node stops, is given back: it is due then, as if it had never begun. It is
// safe for concurrent use.
type starter struct {
	pool *pgxpool.Pool
	log  *slog.Logger

	mu   sync.Mutex
	node string // empty while no worker works
	wake func(queue string)
	// room is about how many workers of a queue are free: as many as when River asked last, less what was started since. waiting has what is
	// committed and not taken yet.
	room    map[string]int
	waiting map[string][]*rivertype.JobRow
	// at is the instant by which the last tasks started.
	at time.Time
}

func newStarter(pool *pgxpool.Pool, log *slog.Logger) *starter {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &starter{pool: pool, log: log, room: map[string]int{}, waiting: map[string][]*rivertype.JobRow{}}
}

// open lets tasks start on a node, whose producers are woken by queue, unless they start on another. Each node has a client of its own.
func (s *starter) open(node string, wake func(queue string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node == "" {
		s.node, s.wake, s.room = node, wake, map[string]int{}
	}
}

// close lets nothing start on a node any more, and gives back what none of its workers has taken: when that is done, done is closed.
func (s *starter) close(node string) (done <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node != node {
		none := make(chan struct{})
		close(none)
		return none
	}
	var left []*rivertype.JobRow
	for _, rows := range s.waiting {
		left = append(left, rows...)
	}
	s.node, s.waiting = "", map[string][]*rivertype.JobRow{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.giveBack(left)
	}()
	return ended
}

// instant is when tasks start that are about to be stored, to the microsecond. No two transactions of a process have the same, so that it
// tells what was stored by one whose answer is lost.
func (s *starter) instant() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now().UTC().Truncate(time.Microsecond)
	if !at.After(s.at) {
		at = s.at.Add(time.Microsecond)
	}
	s.at = at
	return at
}

// reserve returns the node on which a task of a queue may start, or "" where it has no worker free.
func (s *starter) reserve(queue string) (node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node == "" || s.room[queue] <= 0 {
		return ""
	}
	s.room[queue]--
	return s.node
}

// free notes how many workers of a queue are free.
func (s *starter) free(queue string, workers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room[queue] = workers - len(s.waiting[queue])
}

// take returns up to most tasks of a queue that wait for a worker.
func (s *starter) take(queue string, most int) []*rivertype.JobRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.waiting[queue]
	n := min(most, len(waiting))
	taken := waiting[:n:n]
	s.waiting[queue] = waiting[n:]
	if n == len(waiting) {
		delete(s.waiting, queue)
	}
	return taken
}

// waits reports whether tasks of a queue wait for a worker.
func (s *starter) waits(queue string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting[queue]) > 0
}

// offer hands committed tasks to the workers.
func (s *starter) offer(rows []*rivertype.JobRow) {
	queues := map[string]bool{}
	s.mu.Lock()
	works, wake := s.node != "", s.wake
	if works {
		for _, row := range rows {
			s.waiting[row.Queue] = append(s.waiting[row.Queue], row)
			queues[row.Queue] = true
		}
	}
	s.mu.Unlock()
	if !works {
		go s.giveBack(rows)
		return
	}
	for queue := range queues {
		wake(queue)
	}
	time.AfterFunc(startWithin, func() { s.giveBack(s.untaken(rows)) })
}

// untaken takes out those of rows that still wait. Their queues start nothing until River asks again.
func (s *starter) untaken(rows []*rivertype.JobRow) []*rivertype.JobRow {
	offered := make(map[int64]bool, len(rows))
	for _, row := range rows {
		offered[row.ID] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []*rivertype.JobRow
	for queue, waiting := range s.waiting {
		var keep []*rivertype.JobRow
		for _, row := range waiting {
			if offered[row.ID] {
				left = append(left, row)
			} else {
				keep = append(keep, row)
			}
		}
		if len(keep) < len(waiting) {
			s.waiting[queue], s.room[queue] = keep, 0
		}
	}
	return left
}

// giveBack makes tasks due that were started and never begun.
func (s *starter) giveBack(rows []*rivertype.JobRow) {
	ids := map[time.Time][]int64{}
	for _, row := range rows {
		ids[*row.AttemptedAt] = append(ids[*row.AttemptedAt], row.ID)
	}
	for at, some := range ids {
		s.giveBackOf(rows[0].AttemptedBy[0], at, some)
	}
}

// giveBackOf is giveBack for what a node started at an instant: some, or all where ids is nil. What has begun since, here or elsewhere, has
// another instant. What is not reached is found by River's rescuer, minutes later.
func (s *starter) giveBackOf(node string, at time.Time, ids []int64) {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTimeout)
	defer cancel()
	rows, err := s.pool.Query(ctx, `
		update river_job set attempt = 0, attempted_at = null, attempted_by = null,
			state = case when metadata ? 'cancel_attempted_at' then 'cancelled' else 'available' end::river_job_state,
			finalized_at = case when metadata ? 'cancel_attempted_at' then now() end
		where state = 'running' and attempt = 1 and attempted_by = array[$1] and attempted_at = $2 and ($3::bigint[] is null or id = any($3))
		returning queue`, node, at, ids)
	var queues []string
	if err == nil {
		queues, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	slices.Sort(queues)
	for _, queue := range slices.Compact(queues) {
		err = errors.Join(err, Nudge(ctx, s.pool, queue))
	}
	if err != nil {
		s.log.WarnContext(ctx, "tasks that no worker took could not be given back; they come again in some minutes", "error", err)
	}
}

// Started are tasks that begin on this node with the transaction that makes them. Nil is none.
type Started struct {
	starter *starter
	at      time.Time
	rows    []*rivertype.JobRow
}

// add notes one that is about to be stored; its id follows.
func (s *Started) add(row *rivertype.JobRow) {
	if s.at.IsZero() {
		s.at = s.starter.instant()
	}
	row.AttemptedAt = &s.at
	s.rows = append(s.rows, row)
}

// stored takes in what the database made of all that was inserted, in its order; places are those of what was started.
func (s *Started) stored(rows pgx.Rows, places []int) error {
	var id int64
	var at time.Time
	n, next := 0, 0
	_, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		if next < len(places) && places[next] == n {
			row := s.rows[next]
			row.ID, row.CreatedAt, row.ScheduledAt = id, at.UTC(), at.UTC()
			next++
		}
		n++
		return nil
	})
	if err != nil {
		return fmt.Errorf("start tasks: %w", err)
	}
	return nil
}

// Settle must be called when the transaction has ended, with its error: the tasks go to their workers, or are looked for and given back
// should they have been committed all the same. It does not wait for either.
func (s *Started) Settle(err error) {
	if s == nil || len(s.rows) == 0 {
		return
	}
	if err == nil {
		s.starter.offer(s.rows)
		return
	}
	node := s.rows[0].AttemptedBy[0]
	for _, later := range foundWithin {
		time.AfterFunc(later, func() { s.starter.giveBackOf(node, s.at, nil) })
	}
}
