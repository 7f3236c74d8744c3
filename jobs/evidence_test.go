package jobs

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

func TestVerifyLedger_FindsATamperedWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.work(On(deliverKind, always(errors.New("no"))))
	first, second := b.insert(Insert{}), b.insert(Insert{})
	b.settled(first)
	b.exec(`select 1`)
	for len(b.records(second)) == 0 {
		b.settled(second)
	}
	v, err := VerifyLedger(t.Context(), b.pool, "")
	if err != nil || v.Tasks != 2 || v.Records != 2 {
		t.Fatalf("%+v, %v", v, err)
	}
	// Somebody who can switch the trigger off, and seals the record anew, still has to explain the wait.
	r := b.records(second)[0]
	*r.WaitMS = 1
	r.seal(genesis(second))
	b.exec(`alter table attempts disable trigger attempts_append_only`)
	b.exec(`update attempts set wait_ms = 1, hash = $2 where task_id = $1`, second, r.Hash)
	var chainErr *ChainError
	if _, err := VerifyLedger(t.Context(), b.pool, testProject); !errors.As(err, &chainErr) || chainErr.TaskID != second {
		t.Fatal(err)
	}
	if v, err := VerifyLedger(t.Context(), b.pool, "project_other"); err != nil || v.Records != 0 {
		t.Fatal(v, err)
	}
}

func TestRecord_ExportCanBeHashedAgainByAnyone(t *testing.T) {
	t.Parallel()
	r := sampleRecord(1, genesis(42))
	line, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var members struct {
		PrevHash string `json:"prev_hash"`
		Hash     string `json:"hash"`
	}
	if err := json.Unmarshal(line, &members); err != nil {
		t.Fatal(err)
	}
	// A stranger cuts the two hashes off and hashes the rest behind the former.
	tail := fmt.Sprintf(`,"prev_hash":"%s","hash":"%s"}`, members.PrevHash, members.Hash)
	var exported bytes.Buffer
	enc := json.NewEncoder(&exported)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		t.Fatal(err)
	}
	body, found := bytes.CutSuffix(bytes.TrimSpace(exported.Bytes()), []byte(tail))
	if !found {
		t.Fatalf("%s does not end in its hashes", exported.String())
	}
	sum := sha256.New()
	sum.Write(genesis(42))
	sum.Write(append(body, '}'))
	if got := fmt.Sprintf("%x", sum.Sum(nil)); got != members.Hash {
		t.Fatalf("hashed again it gives %s, exported is %s", got, members.Hash)
	}
}

func TestRecord_CSVIsSafeForSpreadsheets(t *testing.T) {
	t.Parallel()
	formula := "=HYPERLINK(1)"
	r := sampleRecord(1, genesis(42))
	r.Error = &formula
	row := r.CSV()
	for i, column := range RecordColumns() {
		if column == "error" && row[i] != "'"+formula {
			t.Errorf("the cell is %q", row[i])
		}
		if column == "task_id" && row[i] != "42" {
			t.Errorf("task_id is %q", row[i])
		}
		if column == "status" && row[i] != "" {
			t.Errorf("status is %q", row[i])
		}
	}
}
