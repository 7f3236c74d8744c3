package jobs

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"entrega/internal/store"
	"entrega/internal/store/storetest"
)

func TestPolicyVersions_AreStoredOnceAndNeverChange(t *testing.T) {
	t.Parallel()
	tx := storetest.Tx(t, MigrateDSN)
	first := shipped(t)
	if err := first.StoreVersions(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	for _, p := range first.All() {
		if p.Version != 1 {
			t.Errorf("%s/%s has version %d, want 1", p.Kind, p.Profile, p.Version)
		}
	}

	again := shipped(t)
	if err := again.StoreVersions(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	var stored int
	if err := tx.QueryRow(t.Context(), `select count(*) from policy_versions`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.All(), again.All()); diff != "" || stored != len(first.All()) {
		t.Errorf("a second boot leaves %d versions of %d policies: %s", stored, len(first.All()), diff)
	}
}

func TestPolicyVersions_CountPerKindAndProfile(t *testing.T) {
	t.Parallel()
	tx := storetest.Tx(t, MigrateDSN)
	one := Policy{Kind: "a.b", Attempts: 2, Waits: []time.Duration{time.Second}}
	other := one
	other.Attempts = 3
	// A policy that comes back keeps the number that its decisions were recorded under.
	for i, step := range []struct {
		policy  Policy
		version int
	}{{one, 1}, {other, 2}, {one, 1}} {
		set, err := NewPolicySet(step.policy, Policy{Kind: "c", Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := set.StoreVersions(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		changed, _ := set.For("a.b", "")
		same, _ := set.For("c", "")
		if changed.Version != step.version || same.Version != 1 {
			t.Errorf("boot %d: versions %d and %d, want %d and 1", i+1, changed.Version, same.Version, step.version)
		}
	}

	history, err := ListPolicyVersions(t.Context(), tx, "a.b", DefaultProfile)
	if err != nil {
		t.Fatal(err)
	}
	if len(history) != 2 || history[0].Version != 2 || history[0].Attempts != 3 || history[1].Version != 1 || history[1].CreatedAt.IsZero() {
		t.Errorf("the history is %+v", history)
	}
}

func TestPolicyVersions_ReadBackAsTheSamePolicy(t *testing.T) {
	t.Parallel()
	tx := storetest.Tx(t, MigrateDSN)
	set := shipped(t)
	if err := set.StoreVersions(t.Context(), tx); err != nil {
		t.Fatal(err)
	}
	for _, want := range set.All() {
		got, err := PolicyByVersion(t.Context(), tx, want.Kind, want.Profile, 1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s/%s: %s", want.Kind, want.Profile, diff)
		}
	}
	if _, err := PolicyByVersion(t.Context(), tx, "webhook.deliver", "standard", 2); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a version that was never stored: %v", err)
	}
}

func TestPolicyVersions_NodesThatBootAtOnceAgree(t *testing.T) {
	t.Parallel()
	pool := storetest.New(t, MigrateDSN)
	const nodes = 8
	sets := make([]*PolicySet, nodes)
	errs := make([]error, nodes)
	var wg sync.WaitGroup
	for i := range nodes {
		// Half of them come with another policy of the same kind, so that they race for the next number as well.
		set, err := NewPolicySet(Policy{Kind: "a.b", Attempts: 1 + i%2, Waits: []time.Duration{time.Second}}, Policy{Kind: "c", Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		sets[i] = set
		wg.Go(func() { errs[i] = set.StoreVersions(t.Context(), pool) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	numbers := map[int]int{}
	for i, set := range sets {
		p, _ := set.For("a.b", "")
		if known, ok := numbers[i%2]; ok && known != p.Version {
			t.Errorf("the same policy is version %d and %d", known, p.Version)
		}
		numbers[i%2] = p.Version
	}
	if numbers[0]+numbers[1] != 3 {
		t.Errorf("two policies have the versions %v, want 1 and 2", numbers)
	}
}

func TestPolicyVersions_ForgedDocumentIsAnError(t *testing.T) {
	t.Parallel()
	tx := storetest.Tx(t, MigrateDSN)
	p := policyOf(t, "periodic", "standard")
	forged := p
	forged.Attempts = 5
	_, err := tx.Exec(t.Context(), `insert into policy_versions (kind, profile, version, hash, document) values ($1, $2, 1, $3, $4)`,
		p.Kind, p.Profile, p.Hash[:], string(forged.Canonical()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := PolicyByVersion(t.Context(), tx, p.Kind, p.Profile, 1); err == nil {
		t.Error("a document with another hash is taken")
	}
}

func TestPolicyVersions_CannotBeChanged(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{`update policy_versions set document = '{}'`, `delete from policy_versions`} {
		tx := storetest.Tx(t, MigrateDSN)
		set, err := NewPolicySet(Policy{Kind: "a.b", Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := set.StoreVersions(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), statement); err == nil {
			t.Errorf("%s is allowed", statement)
		}
	}
}
