package alerts

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

func TestLedger_ARowThatCommitsAfterALaterOneIsCounted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://api.lumen.example/")
	late, commit, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- store.InTx(b.ctx, b.pool, func(tx pgx.Tx) error {
			recordIn(b, tx, attempt{endpoint: e, at: b.now, status: 401, class: "client", decision: "permanent_failure", reason: "rejected"})
			close(late)
			<-commit
			return nil
		})
	}()
	<-late
	b.refuse(e, 401, b.now)
	b.look()
	close(commit)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(ledgerSettled)
	b.look()
	if a := b.one(ReceiverRefuses); a.Count != 2 {
		t.Errorf("the alert counts %d, want both", a.Count)
	}
}

func TestLedger_ForgetsWhatNoScanLooksAtAnyMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	e := b.newEndpoint("https://api.lumen.example/")
	for range 3 {
		b.refuse(e, 401, b.now)
		b.look()
	}
	left := func() int { return scan[int](b, `select count(*) from alert_counted where rule = 'receiver_refuses'`) }
	if n := left(); n != 3 {
		t.Fatalf("%d answers are remembered, want 3", n)
	}
	for range 2 {
		b.now = b.now.Add(ledgerSettled + time.Second)
		b.look()
	}
	if n := left(); n != 0 {
		t.Errorf("%d answers are remembered, want none", n)
	}
	if a := b.one(ReceiverRefuses); a.Count != 3 {
		t.Errorf("the alert counts %d, want 3", a.Count)
	}
}
