package jobs

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
	"entrega/internal/tenant"
)

// stateSQL is the table of 1-product.md once more, in the words of Postgres.
const stateSQL = `case
	when state = 'available' and scheduled_at > now() and outcome = 'retry' then 'retryable'
	when state = 'available' and scheduled_at > now() and outcome = 'snooze' then 'snoozed'
	when state = 'scheduled' and outcome in ('retry', 'snooze') then 'snoozed'
	when state in ('available', 'scheduled') then 'pending'
	else state::text end`

func TestStateOf_AgreesWithItsSQLForEveryCombination(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	for _, river := range []string{"available", "cancelled", "completed", "discarded", "pending", "retryable", "running", "scheduled"} {
		for _, outcome := range []string{"", "retry", "snooze", "done"} {
			for name, at := range map[string]time.Time{"due": now.Add(-time.Hour), "later": now.Add(time.Hour)} {
				id := b.insert(Insert{})
				b.exec(`update river_job set state = $2::river_job_state, scheduled_at = $3,
					finalized_at = case when $2 in ('cancelled', 'completed', 'discarded') then now() end,
					metadata = case when $4 = '' then metadata else metadata || jsonb_build_object('outcome', $4) end where id = $1`, id, river, at, outcome)
				var sql string
				if err := b.pool.QueryRow(t.Context(), `select `+stateSQL+` from river_job where id = $1`, id).Scan(&sql); err != nil {
					t.Fatal(err)
				}
				want := StateOf(river, outcome, at, now)
				if TaskState(sql) != want {
					t.Errorf("%s, %q, %s: Go says %s, SQL says %s", river, outcome, name, want, sql)
				}
				// The list of a state finds exactly the rows that have it.
				for _, s := range TaskStates() {
					list, err := b.client.ListTasks(t.Context(), b.pool, testProject, TaskFilter{State: s, ID: id}, store.Page{})
					if err != nil {
						t.Fatal(err)
					}
					if (len(list.Rows) == 1) != (s == want) {
						t.Errorf("%s, %q, %s is %s, and the list of %s has %d rows", river, outcome, name, want, s, len(list.Rows))
					}
				}
				b.exec(`delete from river_job where id = $1`, id)
			}
		}
	}
}

func TestListTasks_PagesBothWaysWithoutGapsOrForeignRows(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var want []int64
	for i := range 25 {
		b.insert(Insert{ProjectID: "project_other"})
		id := b.insert(Insert{ScheduledAt: time.Now().Add(time.Duration(i%2) * time.Hour)})
		want = append([]int64{id}, want...)
	}
	page, got := store.Page{Limit: 10}, []int64{}
	var lastPrev string
	for {
		list, err := b.client.ListTasks(t.Context(), b.pool, testProject, TaskFilter{}, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range list.Rows {
			got = append(got, task.ID)
		}
		lastPrev = list.Prev
		if list.Next == "" {
			break
		}
		page.Cursor = list.Next
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	back, err := b.client.ListTasks(t.Context(), b.pool, testProject, TaskFilter{}, store.Page{Limit: 10, Cursor: lastPrev})
	if err != nil {
		t.Fatal(err)
	}
	if len(back.Rows) != 10 || back.Rows[0].ID != want[10] {
		t.Fatalf("the page before starts with %d, want %d", back.Rows[0].ID, want[10])
	}
}

func TestListTasks_OfAPeriodLooksOnlyAtItsIds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	var ids []int64
	for i := range 40 { // 40 h ago, 39 h ago, …, one hour ago
		id := b.insert(Insert{})
		ids = append(ids, id)
		b.exec(`update river_job set created_at = $2 where id = $1`, id, ago(time.Duration(40-i)*time.Hour))
	}
	const half = 30 * time.Minute
	for _, c := range []struct {
		name        string
		f           TaskFilter
		first, last int // places in ids; the first is behind the last where there are none
	}{
		{"since", TaskFilter{Since: ago(10*time.Hour + half)}, 30, 39},
		{"until", TaskFilter{Until: ago(10*time.Hour + half)}, 0, 29},
		{"both", TaskFilter{Since: ago(20*time.Hour + half), Until: ago(10*time.Hour + half)}, 20, 29},
		{"until is exclusive", TaskFilter{Since: ago(20 * time.Hour), Until: ago(19 * time.Hour)}, 20, 20},
		{"before all", TaskFilter{Until: ago(50 * time.Hour)}, 0, -1},
		{"after all", TaskFilter{Since: now}, 40, 39},
		{"all", TaskFilter{Since: ago(50 * time.Hour), Until: now}, 0, 39},
	} {
		want := []int64{}
		for i := c.last; i >= c.first; i-- {
			want = append(want, ids[i])
		}
		got := []int64{}
		list, err := b.client.ListTasks(t.Context(), b.pool, testProject, c.f, store.Page{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range list.Rows {
			got = append(got, task.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		counts, err := b.client.CountTasks(t.Context(), b.pool, testProject, c.f)
		if err != nil || counts.Total() != len(want) {
			t.Errorf("%s: counted %d, want %d, %v", c.name, counts.Total(), len(want), err)
		}
		n, err := b.client.CountBulk(t.Context(), b.pool, testProject, BulkCancel, c.f)
		if err != nil || int(n) != len(want) {
			t.Errorf("%s: a bulk action would touch %d, want %d, %v", c.name, n, len(want), err)
		}
	}
	r, err := TaskFilter{Since: ago(20*time.Hour + half), Until: ago(10*time.Hour + half)}.idRange(t.Context(), b.pool)
	if err != nil {
		t.Fatal(err)
	}
	if r.first < ids[18] || r.first > ids[20] || r.last < ids[29] || r.last > ids[31] {
		t.Fatalf("%+v is not close around %d to %d", r, ids[20], ids[29])
	}
}

func TestListTasks_ACompletedTaskHasNoErrorAndNoOtherReason(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.insert(Insert{})
	b.exec(`update river_job set state = 'completed', finalized_at = now(),
		metadata = metadata || '{"outcome": "done", "reason": "accepted", "last": {"at": "2026-01-01T00:00:00Z", "status": 200, "ms": 1, "decision": "accepted"}}' where id = $1`, id)
	failed := b.insert(Insert{})
	b.exec(`update river_job set state = 'discarded', finalized_at = now(),
		metadata = metadata || '{"outcome": "done", "reason": "gone", "last": {"at": "2026-01-01T00:00:00Z", "status": 410, "errorType": "HttpError", "ms": 1, "decision": "permanent_failure"}}' where id = $1`, failed)
	for _, c := range []struct {
		f    TaskFilter
		want []int64
	}{
		{TaskFilter{Reason: ReasonAccepted}, []int64{id}},
		{TaskFilter{Reason: ReasonGone}, []int64{failed}},
		{TaskFilter{Reason: ReasonGone, State: StateCompleted}, []int64{}},
		{TaskFilter{ErrorType: "HttpError"}, []int64{failed}},
		{TaskFilter{ErrorType: "HttpError", State: StateCompleted}, []int64{}},
		{TaskFilter{ErrorType: "HttpError", State: StateCompleted, OrState: StateDiscarded}, []int64{failed}},
		{TaskFilter{ErrorType: "Timeout"}, []int64{}},
	} {
		list, err := b.client.ListTasks(t.Context(), b.pool, testProject, c.f, store.Page{})
		if err != nil {
			t.Fatal(err)
		}
		got := []int64{}
		for _, task := range list.Rows {
			got = append(got, task.ID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%+v: %s", c.f, diff)
		}
	}
}

func TestCountTasks_StopsAtItsLimitAndSeesOnlyItsProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.insert(Insert{ProjectID: "project_other"})
	b.insert(Insert{})
	b.exec(`insert into river_job (kind, queue, max_attempts, args, metadata, state, finalized_at)
		select 'webhook.deliver', 'webhook', 21, '{}', '{"project_id": "project_test"}', 'completed', now() from generate_series(1, 10500)`)
	counts, err := b.client.CountTasks(t.Context(), b.pool, testProject, TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if counts[StatePending] != 1 || counts[StateCompleted] != CountLimit+1 || counts[StateRunning] != 0 {
		t.Fatal(counts)
	}
}

func TestRetry_FiftyClicksMakeOneAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.insert(Insert{})
	b.exec(`update river_job set state = 'discarded', finalized_at = now(), attempt = 1 where id = $1`, id)
	var clicks sync.WaitGroup
	errs := make(chan error, 50)
	for range 50 {
		clicks.Go(func() {
			_, err := b.client.Retry(t.Context(), testActor, testProject, id)
			errs <- err
		})
	}
	clicks.Wait()
	close(errs)
	won := 0
	for err := range errs {
		switch {
		case err == nil:
			won++
		case !IsConflict(err, CodeAlreadyQueued):
			t.Error(err)
		}
	}
	if won != 1 {
		t.Fatalf("%d clicks won", won)
	}
	audit, err := tenant.AuditOfSubject(t.Context(), b.pool, testProject, "task", fmt.Sprint(id), 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(audit) != 1 || audit[0].Action != "task.retry" {
		t.Fatalf("%+v", audit)
	}
}

func TestRetry_SaysWhyNot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for state, code := range map[string]string{"completed": CodeCompleted, "running": CodeRunning, "available": CodeAlreadyQueued} {
		id := b.insert(Insert{})
		b.exec(`update river_job set state = $2::river_job_state, finalized_at = case when $2 = 'completed' then now() end where id = $1`, id, state)
		if _, err := b.client.Retry(t.Context(), testActor, testProject, id); !IsConflict(err, code) {
			t.Errorf("%s: %v", state, err)
		}
	}
	foreign := b.insert(Insert{ProjectID: "project_other"})
	if _, err := b.client.Retry(t.Context(), testActor, testProject, foreign); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a foreign id: %v", err)
	}
	viewer := testActor
	viewer.Role = tenant.RoleViewer
	own := b.insert(Insert{})
	if _, err := b.client.Retry(t.Context(), viewer, testProject, own); !errors.Is(err, tenant.ErrForbidden) {
		t.Errorf("a viewer: %v", err)
	}
	if _, err := b.client.Cancel(t.Context(), viewer, testProject, own); !errors.Is(err, tenant.ErrForbidden) {
		t.Errorf("a viewer: %v", err)
	}
}

func TestTask_RunningShowsTheNumberOfItsAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for decision, want := range map[Verdict]int{"": 1, VerdictSnoozed: 2, VerdictRetryScheduled: 3} {
		id := b.insert(Insert{})
		if decision != "" {
			b.exec(`update river_job set metadata = metadata || jsonb_build_object('attempt', 2, 'last', jsonb_build_object('at', now(), 'decision', $2::text)) where id = $1`, id, string(decision))
		}
		b.exec(`update river_job set state = 'running' where id = $1`, id)
		if task := b.task(id); task.Attempt != want {
			t.Errorf("after %q it shows %d, want %d", decision, task.Attempt, want)
		}
	}
}
