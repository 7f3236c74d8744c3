package webhooks_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
	"entrega/jobs"
	"entrega/webhooks"
)

// TestStrips_AreTheSameHoweverMuchIsSummedUp fills the ledger with the attempts of a busy endpoint and of one that was last asked
// weeks ago, and reads their strips before, between and after the roll-ups.
func TestStrips_AreTheSameHoweverMuchIsSummedUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	busy, quiet, idle := b.create(webhooks.Settings{URL: "https://busy.example/"}).Endpoint.ID,
		b.create(webhooks.Settings{URL: "https://quiet.example/"}).Endpoint.ID, b.create(webhooks.Settings{URL: "https://idle.example/"}).Endpoint.ID
	now := time.Now().UTC().Truncate(time.Minute).Add(30 * time.Second)
	since := now.Add(-20 * 24 * time.Hour)
	seeder, err := jobs.NewSeeder(b.ctx, jobs.SeederOptions{Client: b.client, Pool: b.pool, Since: since, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	var seeds []jobs.Seed
	want := map[string][]int64{}
	add := func(endpoint string, at time.Time) {
		t.Helper()
		seed, err := jobs.NewSeed(b.ctx, seeder, webhooks.Deliver, webhooks.DeliverArgs{}, jobs.Insert{ProjectID: b.project, EndpointID: endpoint}, at)
		if err != nil {
			t.Fatal(err)
		}
		seed.Play = func(_ int, at time.Time) (jobs.Evidence, error) {
			ev := jobs.Evidence{Sent: true, StartedAt: at, FinishedAt: at.Add(2 * time.Second), ResponseClass: "client", Status: 422, ErrorType: "HttpError"}
			return ev, jobs.Discard(errors.New("no"), jobs.ReasonRejected)
		}
		seeds = append(seeds, seed)
		want[endpoint] = append(want[endpoint], seed.ID())
	}
	for i := range 40 {
		add(quiet, since.Add(time.Duration(i)*5*time.Hour))
	}
	for i := range 80 {
		add(busy, now.Add(-12*time.Minute+time.Duration(i)*8*time.Second))
	}
	if err := store.InTx(b.ctx, b.pool, func(tx pgx.Tx) error { return seeder.Write(b.ctx, tx, seeds) }); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		strips, err := webhooks.Strips(b.ctx, b.pool, b.project, []string{busy, quiet, idle})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{busy, quiet} {
			var got []int64
			for _, a := range strips[id] {
				got = append(got, a.TaskID)
			}
			if diff := cmp.Diff(want[id][len(want[id])-30:], got); diff != "" {
				t.Errorf("%s: the strip of %s: %s", when, id, diff)
			}
		}
		if len(strips[idle]) != 0 {
			t.Errorf("%s: an endpoint that was never asked has %d attempts", when, len(strips[idle]))
		}
		last := strips[busy][29]
		last.StartedAt = last.StartedAt.UTC()
		if diff := cmp.Diff(webhooks.StripAttempt{TaskID: last.TaskID, Seq: 1, Attempt: 1, StartedAt: now.Add(-12*time.Minute + 79*8*time.Second),
			Class: "client", Decision: jobs.VerdictPermanentFailure, Status: 422, ErrorType: "HttpError", TotalUS: 2_000_000}, last); diff != "" {
			t.Errorf("%s: the last attempt: %s", when, diff)
		}
	}
	check("before any roll-up")
	from := since.Truncate(time.Hour)
	for _, until := range []time.Time{now.Add(-10 * 24 * time.Hour), now.Add(-8 * time.Minute), now.Add(-7 * time.Minute), now} {
		until = until.Truncate(time.Minute)
		b.exec(`select entrega_roll_up($1, $2)`, from, until)
		b.exec(`insert into rollups (name, through) values ('attempts', $1) on conflict (name) do update set through = excluded.through`, until)
		from = until
		check("summed up until " + until.String())
	}
}
