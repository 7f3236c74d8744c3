package jobs

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"entrega/internal/store"
)

// Verified is what a verification has looked at.
type Verified struct {
	Tasks, Records int64
	// Through is the last task whose chain held.
	Through int64
}

// VerifyLedger recomputes every chain, in the order of tasks, and every wait from the policy version that its record names. It stops at
// the first difference, a *ChainError. An empty project means all projects. It reads the ledger once, as a stream.
func VerifyLedger(ctx context.Context, db store.DB, project string) (Verified, error) {
	policies, err := policyVersions(ctx, db)
	if err != nil {
		return Verified{}, err
	}
	rows, err := db.Query(ctx, `select `+recordSelect+` from attempts where ($1 = '' or project_id = $1) order by task_id, seq, started_at`, project)
	if err != nil {
		return Verified{}, fmt.Errorf("read the ledger: %w", err)
	}
	defer rows.Close()
	var v Verified
	var chain []Record
	check := func() error {
		if len(chain) == 0 {
			return nil
		}
		if err := VerifyChain(chain); err != nil {
			return err
		}
		for _, r := range chain {
			if err := verifyWait(r, policies); err != nil {
				return err
			}
		}
		v.Tasks, v.Records, v.Through = v.Tasks+1, v.Records+int64(len(chain)), chain[0].TaskID
		chain = chain[:0]
		return nil
	}
	for rows.Next() {
		r, err := pgx.RowToStructByName[Record](rows)
		if err != nil {
			return v, fmt.Errorf("read a record: %w", err)
		}
		r.toUTC()
		if len(chain) > 0 && chain[0].TaskID != r.TaskID {
			if err := check(); err != nil {
				return v, err
			}
		}
		chain = append(chain, r)
	}
	if err := rows.Err(); err != nil {
		return v, fmt.Errorf("read the ledger: %w", err)
	}
	return v, check()
}

// verifyWait recomputes the wait of a scheduled retry: the policy's own, or a longer one that the receiver asked for.
func verifyWait(r Record, policies map[versionKey]Policy) error {
	if r.Decision != VerdictRetryScheduled {
		return nil
	}
	p, ok := policies[versionKey{hash: [32]byte(r.PolicyHash), version: r.PolicyVersion}]
	if !ok {
		return &ChainError{TaskID: r.TaskID, Seq: r.Seq, Sentence: fmt.Sprintf("names version %d of profile %s, which is not stored", r.PolicyVersion, r.PolicyProfile)}
	}
	if r.BaseWaitMS == nil || r.WaitMS == nil {
		return &ChainError{TaskID: r.TaskID, Seq: r.Seq, Sentence: "schedules a retry without a wait"}
	}
	base, wait := p.Wait(r.TaskID, r.Attempt)
	asked := r.RetryAfterRead != nil && *r.RetryAfterRead != RetryAfterIgnored
	if *r.BaseWaitMS != base.Milliseconds() || *r.WaitMS < wait.Milliseconds() || *r.WaitMS > wait.Milliseconds() && !asked {
		return &ChainError{TaskID: r.TaskID, Seq: r.Seq, Sentence: fmt.Sprintf("waits %d ms (base %d ms), but its policy gives %d ms (base %d ms)",
			*r.WaitMS, *r.BaseWaitMS, wait.Milliseconds(), base.Milliseconds())}
	}
	return nil
}

type versionKey struct {
	hash    [32]byte
	version int
}

func policyVersions(ctx context.Context, db store.DB) (map[versionKey]Policy, error) {
	versions, err := queryVersions(ctx, db, "")
	if err != nil {
		return nil, err
	}
	out := make(map[versionKey]Policy, len(versions))
	for _, v := range versions {
		out[versionKey{hash: v.Hash, version: v.Version}] = v.Policy
	}
	return out, nil
}
