package jobs

import (
	"errors"
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

func TestSumAttempts_IsTheSameBeforeAndAfterRollingUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.work(On(deliverKind, always(errors.New("no"))), On(fanoutKind, always(nil)))
	for range 3 {
		id := b.insert(Insert{EndpointID: "endpoint_1"})
		b.settled(id)
		b.makeDue(id)
		b.settled(id)
		b.settled(insertOf(b, fanoutKind, Insert{}))
	}
	since := time.Now().Add(-time.Hour).UTC().Truncate(time.Minute)
	read := func() []Sum {
		sums, err := SumAttempts(t.Context(), b.pool, testProject, since, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		sort.Slice(sums, func(i, j int) bool {
			return sums[i].Kind+sums[i].Reason < sums[j].Kind+sums[j].Reason || sums[i].FirstTry
		})
		return sums
	}
	before := read()
	if len(before) != 3 || before[0].Attempts != 3 {
		t.Fatalf("%+v", before)
	}
	for range 2 { // doing it again changes nothing
		if err := rollUp(t.Context(), b.pool, time.Now().Add(2*time.Minute)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, read()); diff != "" {
			t.Fatal(diff)
		}
	}
	var minutes int
	if err := b.pool.QueryRow(t.Context(), `select count(*) from attempt_minutes`).Scan(&minutes); err != nil || minutes == 0 {
		t.Fatal(minutes, err)
	}
	worst, err := WorstEndpoints(t.Context(), b.pool, testProject, since, 5)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]EndpointFailures{{EndpointID: "endpoint_1", Attempts: 6, Failures: 6}}, worst); diff != "" {
		t.Fatal(diff)
	}
}

func TestTotalAttempts_TakesWholeHoursAndWhatIsLeftAtBothEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now := time.Now().UTC().Truncate(time.Hour).Add(25 * time.Minute)
	seeder, err := NewSeeder(t.Context(), SeederOptions{Client: b.client, Pool: b.pool, Since: now.Add(-50 * time.Hour), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	var seeds []Seed
	for at := now.Add(-49 * time.Hour); at.Before(now); at = at.Add(7 * time.Minute) {
		seed, err := NewSeed(t.Context(), seeder, deliverKind, testArgs{}, Insert{ProjectID: testProject, EndpointID: "endpoint_1"}, at)
		if err != nil {
			t.Fatal(err)
		}
		failures := len(seeds) % 3
		seed.Play = func(number int, at time.Time) (Evidence, error) {
			ev := Evidence{Sent: true, StartedAt: at, FinishedAt: at.Add(time.Second)}
			if number > failures {
				return ev, nil
			}
			return ev, errors.New("no")
		}
		seeds = append(seeds, seed)
	}
	if err := store.InTx(t.Context(), b.pool, func(tx pgx.Tx) error { return seeder.Write(t.Context(), tx, seeds) }); err != nil {
		t.Fatal(err)
	}
	type key struct {
		Reason   string
		FirstTry bool
	}
	totals := func(sums []Sum, err error) map[key][2]int64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		all := map[key][2]int64{}
		for _, s := range sums {
			before := all[key{s.Reason, s.FirstTry}]
			all[key{s.Reason, s.FirstTry}] = [2]int64{before[0] + s.Attempts, before[1] + s.Charged}
		}
		return all
	}
	sinces := []time.Time{now.Add(-48 * time.Hour), now.Add(-48*time.Hour - 25*time.Minute), now.Add(-10 * time.Minute), now.Add(-80 * time.Minute), now.Add(-49 * time.Hour)}
	var want []map[key][2]int64
	for _, since := range sinces {
		sums := totals(SumAttempts(t.Context(), b.pool, testProject, since, 30*time.Minute))
		if len(sums) == 0 {
			t.Fatal("there is nothing to sum")
		}
		want = append(want, sums)
	}
	// Nothing summed up, then all but the last hours, then all.
	for _, until := range []time.Time{{}, now.Add(-3 * time.Hour), now.Add(-26 * time.Minute), now} {
		if !until.IsZero() {
			if _, err := b.pool.Exec(t.Context(), `insert into rollups (name, through) values ('attempts', $1) on conflict do nothing`, now.Add(-50*time.Hour)); err != nil {
				t.Fatal(err)
			}
			if err := rollUp(t.Context(), b.pool, until.Add(statsGrace)); err != nil {
				t.Fatal(err)
			}
		}
		for i, since := range sinces {
			if diff := cmp.Diff(want[i], totals(TotalAttempts(t.Context(), b.pool, testProject, since))); diff != "" {
				t.Errorf("since %s, summed up until %s: %s", since, until, diff)
			}
		}
	}
}

func TestPercentile_IsRightToWithinAQuarter(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := rand.New(rand.NewPCG(1, 2))
	var samples []float64
	counts := map[int]int64{}
	for range 2000 {
		ms := 1 + r.ExpFloat64()*80
		samples = append(samples, ms)
		var bucket int
		if err := b.pool.QueryRow(t.Context(), `select entrega_latency_bucket($1)`, ms).Scan(&bucket); err != nil {
			t.Fatal(err)
		}
		counts[bucket]++
	}
	sort.Float64s(samples)
	var buckets []latencyBucket
	for i := range 130 {
		if counts[i] > 0 {
			buckets = append(buckets, latencyBucket{index: i, n: counts[i]})
		}
	}
	for _, q := range []float64{0.5, 0.95} {
		want := samples[int(q*2000)]
		got := float64(percentile(buckets, q)) / float64(time.Millisecond)
		if got < want/1.25 || got > want*1.25 {
			t.Errorf("p%v is %.1f ms, sampled %.1f ms", q*100, got, want)
		}
	}
	if percentile(nil, 0.5) != 0 {
		t.Error("nothing has a percentile")
	}
}

func TestRetriesDue_CountsByMinute(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := time.Now().Add(30 * time.Minute).UTC().Truncate(time.Minute)
	for i := range 5 {
		id := b.insert(Insert{})
		b.exec(`update river_job set state = 'retryable', metadata = metadata || '{"outcome": "retry"}', scheduled_at = $2 where id = $1`, id, at.Add(time.Duration(i%2)*time.Minute))
	}
	due, err := RetriesDue(t.Context(), b.pool, testProject, time.Now().Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for i := range due {
		due[i].Minute = due[i].Minute.UTC()
	}
	if diff := cmp.Diff([]Due{{Minute: at, Tasks: 3}, {Minute: at.Add(time.Minute), Tasks: 2}}, due); diff != "" {
		t.Fatal(diff)
	}
}
