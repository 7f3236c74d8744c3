package jobs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// CountLimit is where counting stops: a count above it reads "more than 10,000".
const CountLimit = 10_000

const countsFresh = 2 * time.Second

// TaskCounts are the tasks of a project by state, each at most CountLimit+1.
type TaskCounts map[TaskState]int

// Total is the sum; where a part is above CountLimit it is only a lower bound.
func (c TaskCounts) Total() int {
	n := 0
	for _, v := range c {
		n += v
	}
	return n
}

// CountTasks counts a project's tasks by state under the filter, whose State is not looked at. Unfiltered counts are kept for 2 s.
func (c *Client) CountTasks(ctx context.Context, db store.DB, project string, f TaskFilter) (TaskCounts, error) {
	f.State, f.OrState = "", ""
	if f == (TaskFilter{}) {
		if counts, ok := c.counts.get(project, c.now()); ok {
			return counts, nil
		}
	}
	ids, err := f.idRange(ctx, db)
	if err != nil {
		return nil, err
	}
	args := pgx.StrictNamedArgs{"project": project, "most": CountLimit + 1}
	where := f.where(args) + ids.where(args)
	var b strings.Builder
	for _, s := range TaskStates() {
		parts := f.parts(s)
		if len(parts) == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(" union all ")
		}
		fmt.Fprintf(&b, "select '%s' as state, count(*) as n from (select 1 from (", s)
		for j, part := range parts {
			if j > 0 {
				b.WriteString(" union all ")
			}
			fmt.Fprintf(&b, "(select 1 from river_job where state = '%s'%s%s limit @most)", part.state, and(part.where), where)
		}
		b.WriteString(") as parts limit @most) as counted")
	}
	rows, err := db.Query(ctx, b.String(), args)
	if err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	counts := TaskCounts{}
	var state string
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		counts[TaskState(state)] = n
		return nil
	}); err != nil {
		return nil, fmt.Errorf("count tasks: %w", err)
	}
	if f == (TaskFilter{}) {
		c.counts.put(project, counts, c.now())
	}
	return counts, nil
}

// countCache keeps unfiltered counts for a moment, since every page of the panel asks for them.
type countCache struct {
	mu      sync.Mutex
	entries map[string]countEntry
}

type countEntry struct {
	counts TaskCounts
	at     time.Time
}

func (c *countCache) get(project string, now time.Time) (TaskCounts, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[project]
	return e.counts, ok && now.Sub(e.at) < countsFresh
}

func (c *countCache) put(project string, counts TaskCounts, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) > 10_000 {
		c.entries = map[string]countEntry{}
	}
	c.entries[project] = countEntry{counts: counts, at: now}
}

// forget makes the next count fresh, as after a person's action.
func (c *countCache) forget(project string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, project)
}
