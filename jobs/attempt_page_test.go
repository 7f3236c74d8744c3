package jobs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"entrega/internal/store"
)

func TestListAttempts_PagesBothWaysWithTheExcerptOfEach(t *testing.T) {
	t.Parallel()
	b := setup(t)
	prev := genesis(42)
	for seq := 1; seq <= 7; seq++ {
		r := sampleRecord(seq, prev)
		r.ProjectID = testProject
		r.StartedAt = time.Now().Truncate(time.Microsecond)
		r.FinishedAt = r.StartedAt
		r.seal(prev)
		prev = r.Hash
		// The fourth attempt asked nobody.
		evidence := &Evidence{Sent: seq != 4, Response: Excerpt{Body: fmt.Append(nil, "answer ", seq)}}
		if err := b.ledger.append(context.WithoutCancel(t.Context()), r, evidence); err != nil {
			t.Fatal(err)
		}
	}
	read := func(cursor string) (bodies []string, list store.List[AttemptWithExcerpt]) {
		t.Helper()
		list, err := ListAttempts(t.Context(), b.pool, testProject, 42, store.Page{Limit: 3, Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list.Rows {
			body := "none"
			if a.Excerpt != nil {
				body = string(a.Excerpt.ResponseBody)
			}
			bodies = append(bodies, fmt.Sprint(a.Seq, ": ", body))
		}
		return bodies, list
	}

	first, list := read("")
	second, list := read(list.Next)
	third, last := read(list.Next)
	back, _ := read(last.Prev)
	want := [][]string{{"1: answer 1", "2: answer 2", "3: answer 3"}, {"4: none", "5: answer 5", "6: answer 6"}, {"7: answer 7"}}
	if diff := cmp.Diff(append(want, want[1]), [][]string{first, second, third, back}); diff != "" {
		t.Fatal(diff)
	}
	if last.Next != "" {
		t.Error("there is a page behind the last")
	}
	if foreign, err := ListAttempts(t.Context(), b.pool, "project_other", 42, store.Page{}); err != nil || len(foreign.Rows) != 0 {
		t.Errorf("another project sees %d attempts, %v", len(foreign.Rows), err)
	}
}

func TestListTasks_OrStateTakesTasksOfBothStates(t *testing.T) {
	t.Parallel()
	b := setup(t)
	failed, snoozed, pending := b.insert(Insert{}), b.insert(Insert{}), b.insert(Insert{})
	b.exec(`update river_job set state = 'retryable', metadata = metadata || '{"outcome": "retry"}' where id = $1`, failed)
	b.exec(`update river_job set state = 'scheduled', metadata = metadata || '{"outcome": "snooze"}' where id = $1`, snoozed)
	list, err := b.client.ListTasks(t.Context(), b.pool, testProject, TaskFilter{State: StateRetryable, OrState: StateSnoozed}, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for _, task := range list.Rows {
		got = append(got, task.ID)
	}
	if diff := cmp.Diff([]int64{snoozed, failed}, got); diff != "" {
		t.Fatalf("%s; %d is pending", diff, pending)
	}
}
