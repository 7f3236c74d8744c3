package jobs

import (
	"log/slog"
	"testing"
	"time"

	"entrega/internal/store"
)

func TestLedger_ALargeGroupPassesTheGate(t *testing.T) {
	t.Parallel()
	const many = 16
	b := setup(t)
	gate := store.NewGate(2)
	l := NewLedger(LedgerOptions{Pool: b.pool, Logger: slog.New(slog.DiscardHandler), Gate: gate})
	t.Cleanup(l.Close)
	commit := func(n int) time.Duration {
		t.Helper()
		group := make([]*entry, n)
		for i := range group {
			r := Record{ProjectID: testProject, TaskID: int64(1000*n + i), Seq: 1, Attempt: 1, Kind: "test", Trigger: TriggerSchedule, PolicyHash: []byte{1},
				StartedAt: time.Now(), FinishedAt: time.Now(), Class: "success", Decision: VerdictAccepted, NodeID: "node_a"}
			r.seal(genesis(r.TaskID))
			group[i] = &entry{record: r, written: make(chan error, 1)}
		}
		start := time.Now()
		l.commit(group)
		took := time.Since(start)
		for _, e := range group {
			if err := <-e.written; err != nil {
				t.Fatal(err)
			}
		}
		return took
	}
	full := []func(){gate.Enter(t.Context(), many), gate.Enter(t.Context(), many)}
	if took := commit(many); took < 250*time.Millisecond {
		t.Errorf("%d records were written in %s, past a full gate", many, took)
	}
	for _, leave := range full {
		leave()
	}
}
