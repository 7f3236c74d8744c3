package jobs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/rivertype"

	"entrega/internal/store"
)

// lanes makes two live nodes, and endpoints whose lanes are held by the given nodes; "" is nobody.
func (b *bundle) lanes(holders map[string]string) {
	b.t.Helper()
	exec := func(sql string, args ...any) {
		if _, err := b.pool.Exec(b.t.Context(), sql, args...); err != nil {
			b.t.Fatal(err)
		}
	}
	exec(`insert into projects (id, name) values ($1, 'Test')`, testProject)
	exec(`insert into nodes (id, host, version) values ('node_a', 'h', '1'), ('node_b', 'h', '1')`)
	for endpoint, holder := range holders {
		exec(`insert into endpoints (id, project_id, url) values ($1, $2, 'https://example.com')`, endpoint, testProject)
		exec(`insert into endpoint_lanes (endpoint_id, project_id) values ($1, $2) on conflict do nothing`, endpoint, testProject)
		exec(`update endpoint_lanes set holder = nullif($2, ''), busy_until = now() + interval '30 seconds' where endpoint_id = $1`, endpoint, holder)
	}
}

func (b *bundle) waiting(n int, endpoint string) (ids []int64) {
	b.t.Helper()
	for range n {
		ids = append(ids, b.insert(Insert{ProjectID: testProject, EndpointID: endpoint, Pending: true}))
	}
	return ids
}

func (b *bundle) due(n int, endpoint string) (ids []int64) {
	b.t.Helper()
	for range n {
		ids = append(ids, b.insert(Insert{ProjectID: testProject, EndpointID: endpoint}))
	}
	return ids
}

func idsOf(rows []*rivertype.JobRow) (ids []int64) {
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}

func (b *bundle) claim(most int, claims ...Claim) ([]int64, []Claimed) {
	b.t.Helper()
	got, done, err := claim(b.t.Context(), b.pool, "node_a", NodeQueue(QueueWebhook, "node_a"), most, 100, claims)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, row := range got.jobs {
		if row.State != rivertype.JobStateRunning || row.Attempt != 1 || row.Queue != NodeQueue(QueueWebhook, "node_a") || len(row.AttemptedBy) != 1 ||
			row.Kind != deliverKind.Name || len(row.EncodedArgs) == 0 || row.AttemptedAt == nil {
			b.t.Errorf("task %d began as %+v", row.ID, row)
		}
	}
	return idsOf(got.jobs), done
}

func TestClaim_TakesTheFirstAsFarAsTheWindowHasRoom(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lanes(map[string]string{"endpoint_1": "node_a"})
	due := b.due(2, "endpoint_1")
	waiting := b.waiting(5, "endpoint_1")

	ids, done := b.claim(100, Claim{EndpointID: "endpoint_1", Window: 4})
	if diff := cmp.Diff([]int64{due[0], due[1], waiting[0], waiting[1]}, ids); diff != "" {
		t.Errorf("claimed (-want +got):\n%s", diff)
	}
	if done[0].Refused || done[0].Room != 4 {
		t.Errorf("what came of it: %+v", done[0])
	}
	if ids, done = b.claim(100, Claim{EndpointID: "endpoint_1", Window: 4}); len(ids) != 0 || done[0].Room != 0 || done[0].Refused {
		t.Errorf("claimed %v with a full window: %+v", ids, done)
	}
	if ids, _ = b.claim(1, Claim{EndpointID: "endpoint_1", Window: 100, After: waiting[2]}); len(ids) != 1 || ids[0] != waiting[3] {
		t.Errorf("claimed %v, want %d: one, behind %d", ids, waiting[3], waiting[2])
	}
}

func TestClaim_TellsTheOrderWhereNothingComesBetween(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lanes(map[string]string{"endpoint_1": "node_a"})
	late, low := b.due(1, "endpoint_1"), b.due(3, "endpoint_1")
	waiting := b.waiting(4, "endpoint_1")
	claim := func(window int, known int64) Claimed {
		_, done := b.claim(100, Claim{EndpointID: "endpoint_1", Window: window, Soon: 1100 * time.Millisecond, Known: known})
		return done[0]
	}
	b.exec(`update river_job set state = 'running', attempt = 1 where id = $1`, low[0])

	b.exec(`update river_job set scheduled_at = now() + interval '1 second' where id = $1`, late[0])
	if got := claim(2, 0); len(got.IDs) != 1 || got.Order != nil {
		t.Errorf("%+v, want no order: %d comes in a second", got, late[0])
	}
	b.exec(`update river_job set state = 'scheduled', metadata = metadata || '{"outcome": "snooze"}' where id = $1`, late[0])
	if got := claim(3, 0); len(got.IDs) != 1 || got.Order != nil {
		t.Errorf("%+v, want no order: %d was snoozed for a second", got, late[0])
	}
	b.exec(`update river_job set scheduled_at = now() + interval '1 hour' where id = $1`, late[0])
	if diff := cmp.Diff([]int64{low[0], low[1], low[2], waiting[0]}, claim(4, 0).Order); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int64{low[2], waiting[0], waiting[1]}, claim(5, low[1]).Order); diff != "" {
		t.Errorf("the order behind %d (-want +got):\n%s", low[1], diff)
	}
	due := b.due(2, "endpoint_1")
	if got := claim(7, 0); got.Order != nil || got.IDs[0] != due[0] {
		t.Errorf("%+v, want no order: %v wait before %v", got, waiting[2:], due)
	}
	if _, done := b.claim(100, Claim{EndpointID: "endpoint_1", Window: 9}); len(done[0].IDs) != 2 || done[0].Order != nil {
		t.Errorf("%+v, want no order, which nobody asked for", done[0])
	}
}

func TestClaim_KnowsThatMoreWaitsWhenAnotherNodeTookSomeInTheSameMoment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lanes(map[string]string{"endpoint_1": "node_a"})
	due := b.due(2, "endpoint_1")
	waiting := b.waiting(5, "endpoint_1")
	claimed := make(chan []Claimed, 1)
	err := store.InTx(t.Context(), b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `update river_job set state = 'running' where id = $1`, due[0]); err != nil {
			return err
		}
		go func() {
			_, done := b.claim(100, Claim{EndpointID: "endpoint_1", Window: 4})
			claimed <- done
		}()
		for waits := false; !waits; {
			err := b.pool.QueryRow(t.Context(), `select exists (select from pg_locks where not granted and locktype = 'transactionid'
				and pid in (select pid from pg_stat_activity where datname = current_database()))`).Scan(&waits)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	done := <-claimed
	if diff := cmp.Diff([]int64{due[1], waiting[0], waiting[1]}, done[0].IDs); diff != "" {
		t.Errorf("claimed (-want +got):\n%s", diff)
	}
	if done[0].Room != 4 || done[0].Found != 4 {
		t.Errorf("what came of it: %+v, want four found for four places", done[0])
	}
}

func TestClaim_LeavesWhatIsDueItsPlaces(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lanes(map[string]string{"endpoint_1": "node_a"})
	waiting, due := b.waiting(3, "endpoint_1"), b.due(3, "endpoint_1")
	ids, _ := b.claim(100, Claim{EndpointID: "endpoint_1", Window: 4})
	if diff := cmp.Diff(append(waiting[:1:1], due...), ids); diff != "" {
		t.Errorf("claimed (-want +got):\n%s", diff)
	}
}

func TestClaim_CountsWhatIsNotDueYet(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lanes(map[string]string{"endpoint_1": "node_a"})
	waiting := b.waiting(3, "endpoint_1")
	b.due(3, "endpoint_1")
	if _, err := b.pool.Exec(t.Context(), `update river_job set scheduled_at = now() + interval '1 hour' where state = 'available'`); err != nil {
		t.Fatal(err)
	}
	ids, done := b.claim(100, Claim{EndpointID: "endpoint_1", Window: 4})
	if len(ids) != 1 || ids[0] != waiting[0] || done[0].Room != 1 {
		t.Errorf("claimed %v, %+v, want %d: three of four places are taken", ids, done, waiting[0])
	}
}

func TestClaim_AnErrorThatCannotBeReadIsThatOfOneTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lanes(map[string]string{"endpoint_1": "node_a"})
	waiting := b.waiting(3, "endpoint_1")
	if _, err := b.pool.Exec(t.Context(), `update river_job set errors = array[null::jsonb] where id = $1`, waiting[1]); err != nil {
		t.Fatal(err)
	}
	got, done, err := claim(t.Context(), b.pool, "node_a", NodeQueue(QueueWebhook, "node_a"), 100, 100, []Claim{{EndpointID: "endpoint_1", Window: 100}})
	if err != nil || len(got.jobs) != 3 || len(done[0].IDs) != 3 {
		t.Fatalf("%d began, %+v, %v", len(got.jobs), done, err)
	}
	if r := got.result(); len(r.DecodeErrors) != 1 || r.DecodeErrors[waiting[1]] == nil {
		t.Errorf("broken are %v, want task %d", r.DecodeErrors, waiting[1])
	}
}

func TestClaim_RefusedTakesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lanes(map[string]string{"endpoint_other": "node_b", "endpoint_free": "", "endpoint_paused": "node_a", "endpoint_failing": "node_a", "endpoint_disabled": "node_a"})
	for _, sql := range []string{
		`update endpoints set paused_at = now() where id = 'endpoint_paused'`,
		`update endpoint_lanes set failing_since = now() where endpoint_id = 'endpoint_failing'`,
		`update endpoints set disabled_at = now(), disabled_reason = 'test' where id = 'endpoint_disabled'`,
	} {
		if _, err := b.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, endpoint := range []string{"endpoint_other", "endpoint_free", "endpoint_paused", "endpoint_failing", "endpoint_disabled", "endpoint_unknown"} {
		b.waiting(2, endpoint)
		if ids, done := b.claim(100, Claim{EndpointID: endpoint, Window: 100}); len(ids) != 0 || !done[0].Refused {
			t.Errorf("%s: claimed %v, %+v", endpoint, ids, done)
		}
	}
	var begun int
	if err := b.pool.QueryRow(t.Context(), `select count(*) from river_job where state <> 'pending'`).Scan(&begun); err != nil || begun != 0 {
		t.Errorf("%d tasks left the table, %v", begun, err)
	}
}

func TestFetch_LeavesLanesToTheirHolders(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lanes(map[string]string{"endpoint_mine": "node_a", "endpoint_other": "node_b", "endpoint_free": ""})
	mine, others, free := b.due(enterWith+2, "endpoint_mine"), b.due(3, "endpoint_other"), b.due(enterWith+2, "endpoint_free")
	plain := b.insert(Insert{ProjectID: testProject})

	fetched := func() []int64 {
		got, err := fetch(t.Context(), b.pool, "node_a", QueueWebhook, 100, 100)
		if err != nil {
			t.Fatal(err)
		}
		return idsOf(got.jobs)
	}
	want := append(append(append([]int64{}, mine...), free[:enterWith]...), plain)
	if diff := cmp.Diff(want, fetched()); diff != "" {
		t.Errorf("fetched (-want +got):\n%s", diff)
	}
	if _, err := b.pool.Exec(t.Context(), `update nodes set seen_at = now() - interval '6 seconds' where id = 'node_b'`); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(append(append([]int64{}, others...), free[enterWith:]...), fetched()); diff != "" {
		t.Errorf("fetched once the other node was silent (-want +got):\n%s", diff)
	}
}

func TestFetch_WaitsForTheDiskOnlyWhereSomethingMayBeSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lanes(map[string]string{"endpoint_mine": "node_a"})
	setting := func(fill func(), want int) (value string) {
		t.Helper()
		fill()
		tx, err := b.pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }() // The test has seen what it wants.
		if _, err := tx.Exec(t.Context(), `set local synchronous_commit = on`); err != nil {
			t.Fatal(err)
		}
		if got, err := fetch(t.Context(), tx, "node_a", QueueWebhook, 100, 100); err != nil || len(got.jobs) != want {
			t.Fatalf("fetched %d tasks, %v; want %d", len(got.jobs), err, want)
		}
		if err := tx.QueryRow(t.Context(), `show synchronous_commit`).Scan(&value); err != nil {
			t.Fatal(err)
		}
		return value
	}
	if got := setting(func() { b.insert(Insert{ProjectID: testProject}) }, 1); got != "off" {
		t.Errorf("the commit of what has no endpoint: synchronous_commit is %s", got)
	}
	if got := setting(func() { b.due(1, "endpoint_mine") }, 2); got != "on" {
		t.Errorf("the commit with a delivery among others: synchronous_commit is %s", got)
	}
}

func TestTakeOwn_FindsWhatOthersLeaveAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.lanes(map[string]string{"endpoint_mine": "node_a", "endpoint_other": "node_b"})
	b.due(1, "endpoint_mine")
	b.due(1, "endpoint_other")
	if err := TakeOwn(t.Context(), b.pool, "node_a"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{QueueWebhook, QueueWebhook}, b.queues(t)); diff != "" {
		t.Errorf("what came a moment ago (-want +got):\n%s", diff)
	}
	if _, err := b.pool.Exec(t.Context(), `update river_job set scheduled_at = now() - interval '3 seconds'`); err != nil {
		t.Fatal(err)
	}
	if err := TakeOwn(t.Context(), b.pool, "node_a"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{NodeQueue(QueueWebhook, "node_a"), QueueWebhook}, b.queues(t)); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}
