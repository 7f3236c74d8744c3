package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"
)

func sampleRecord(seq int, prev []byte) Record {
	text := "a “quote”, <tag> & \\ back\tslash"
	r := Record{ProjectID: "project_1", TaskID: 42, Seq: seq, Attempt: seq, Charged: true, Kind: "webhook.deliver", Trigger: TriggerSchedule,
		Error: &text, PolicyProfile: "standard", PolicyVersion: 1, PolicyHash: make([]byte, 32), StartedAt: time.Date(2026, 11, 29, 18, 7, 16, 702000, time.UTC),
		FinishedAt: time.Date(2026, 11, 29, 18, 7, 16, 740000, time.UTC), TotalUS: 38, Class: "server", Decision: VerdictRetryScheduled, Reason: ReasonFailed, NodeID: "node_1"}
	r.seal(prev)
	return r
}

// The canonical form is fixed for good: ledgers of every age verify against it. The hash was computed with Python's
// hashlib over the same text.
func TestRecord_CanonicalFormIsFixed(t *testing.T) {
	t.Parallel()
	r := sampleRecord(1, genesis(42))
	want := `{"attempt":1,"base_wait_ms":null,"cap":null,"charged":true,"class":"server","connect_us":0,"decision":"retry_scheduled","dns_us":0,` +
		`"endpoint_id":null,"error":"a “quote”, <tag> & \\ back\tslash","error_type":null,"event_id":null,"finished_at":"2026-11-29T18:07:16.000740Z",` +
		`"first_byte_us":0,"idempotency_key":null,"kind":"webhook.deliver","next_attempt_at":null,"node_id":"node_1","order_id":null,"peer":null,"phase":null,` +
		`"policy_hash":"` + strings.Repeat("0", 64) + `","policy_profile":"standard","policy_version":1,"project_id":"project_1","reason":"failed",` +
		`"recipient_ref":null,"request_sha256":null,"response_sha256":null,"retry_after_raw":null,"retry_after_read":null,"seq":1,` +
		`"started_at":"2026-11-29T18:07:16.000702Z","status":null,"task_id":42,"tls_us":0,"total_us":38,"trigger":"schedule","wait_ms":null}`
	if got := string(r.Canonical()); got != want {
		t.Fatalf("canonical form\n got %s\nwant %s", got, want)
	}
	sum := sha256.New()
	sum.Write(genesis(42))
	sum.Write([]byte(want))
	if got := hex.EncodeToString(r.Hash); got != hex.EncodeToString(sum.Sum(nil)) {
		t.Fatal(got)
	}
}

func TestVerifyChain_FindsTheFirstDifference(t *testing.T) {
	t.Parallel()
	chain := func() []Record {
		records := []Record{sampleRecord(1, genesis(42))}
		for seq := 2; seq <= 4; seq++ {
			records = append(records, sampleRecord(seq, records[len(records)-1].Hash))
		}
		return records
	}
	if err := VerifyChain(chain()); err != nil {
		t.Fatal(err)
	}
	status := 200
	for name, c := range map[string]struct {
		spoil func([]Record) []Record
		seq   int
	}{
		"a changed status":       {func(r []Record) []Record { r[1].Status = &status; return r }, 2},
		"a changed time":         {func(r []Record) []Record { r[2].StartedAt = r[2].StartedAt.Add(time.Microsecond); return r }, 3},
		"a removed record":       {func(r []Record) []Record { return append(r[:1], r[2:]...) }, 2},
		"a removed first record": {func(r []Record) []Record { return r[1:] }, 1},
		"an exchanged hash":      {func(r []Record) []Record { r[0].Hash = r[3].Hash; return r }, 1},
		"a record sealed anew":   {func(r []Record) []Record { r[1].Reason = "x"; r[1].seal(r[0].Hash); return r }, 3},
		"a chain of other roots": {func(r []Record) []Record { r[0].seal(genesis(7)); return r }, 1},
		"a record of other task": {func(r []Record) []Record { r[3].TaskID = 43; return r }, 4},
		"a doubled record":       {func(r []Record) []Record { return append(r[:2], r[1:]...) }, 3},
		"an order turned around": {func(r []Record) []Record { r[1], r[2] = r[2], r[1]; return r }, 2},
	} {
		err := VerifyChain(c.spoil(chain()))
		var chainErr *ChainError
		if !errors.As(err, &chainErr) || chainErr.Seq != c.seq {
			t.Errorf("%s: %v, want record %d", name, err, c.seq)
		}
	}
}

func TestLedger_RefusesChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.work(On(deliverKind, always(nil)))
	id := b.insert(Insert{})
	b.settled(id)
	for _, sql := range []string{`update attempts set status = 200`, `delete from attempts`, `truncate attempts`} {
		if _, err := b.pool.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestLedger_APoisonedRowFailsAloneInItsGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	results := make(chan error, 40)
	for i := range 40 {
		r := sampleRecord(1, genesis(42))
		r.TaskID = int64(i + 1)
		if i == 20 {
			r.Class = "no such class"
		}
		go func() { results <- b.ledger.append(t.Context(), r, nil) }()
	}
	failed := 0
	for range 40 {
		if err := <-results; err != nil {
			failed++
		}
	}
	var stored int
	if err := b.pool.QueryRow(t.Context(), `select count(*) from attempts`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if failed != 1 || stored != 39 {
		t.Fatalf("%d failed, %d stored", failed, stored)
	}
}
